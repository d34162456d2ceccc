"""`--kyverno-resource-filters`, and the report of findings that Kyverno's configuration exempts."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from scanner.model.json import as_list, dig
from tests.cli.conftest import Assay

POLICY = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: named}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [replicasets]}]
  validations: [{expression: "object.metadata.name == 'x'", message: "call it x"}]
"""
REPLICA_SETS = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rs, namespace: kube-system}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: x, namespace: kube-system}
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kyverno, namespace: kyverno}
data: {resourceFilters: "[Event,*,*] [ReplicaSet,*,*]"}
"""
FILTERED = "Kyverno's resourceFilters [ReplicaSet,*,*]"


@pytest.fixture
def files(home: Path) -> Path:
    """A policy and two ReplicaSets, one of which violates it."""
    folder = home / "cluster"
    folder.mkdir()
    (folder / "all.yaml").write_text(f"{POLICY}---{REPLICA_SETS}")
    return folder


def _exempted(report: object) -> list[object]:
    findings = as_list(dig(report, "findings"))  # type: ignore[arg-type]
    return [(dig(finding, "exceptedBy"), dig(finding, "wouldDeny")) for finding in findings]


@pytest.mark.parametrize(
    ("expected", "flags"),
    [
        ([], []),
        ([], ["none"]),
        ([FILTERED], ["[Pod,*,*][ReplicaSet,*,*]"]),
        (["Kyverno's resourceFilters [*/*,kube-*,*]"], ["[Pod,*,*]", "[*/*,kube-*,*]"]),
        (["the namespaceSelector of Kyverno's webhooks"], ["default", "[ReplicaSet,*,*]"]),
        ([], ["other/settings"]),
    ],
)
def test_filters_are_given_in_the_form_of_the_config_map(
    assay: Assay, files: Path, expected: list[str], flags: list[str]
) -> None:
    """The value may also be a word, or the ConfigMap with the filters."""
    given = [part for flag in flags for part in ("--kyverno-resource-filters", flag)]
    ran = assay("scan", "--from", files, *given, "-o", "json")
    assert [(expected, not expected)] == _exempted(ran.report)


def test_a_config_map_among_the_files_is_read(assay: Assay, files: Path) -> None:
    """It is read as on a cluster; every report of the stored scan states the exemption."""
    (files / "kyverno.yaml").write_text(CONFIG_MAP)
    scanned = assay("scan", "--from", files, "--html", files.parent / "site")
    again = assay("report", "last", "-o", "json")
    counted = "1 check would not pass without a policy exception or a filter in Kyverno's configuration"
    pages = "".join(page.read_text() for page in (files.parent / "site").rglob("*.html"))
    assert ([([FILTERED], False)], 1, 0) == (
        _exempted(again.report),
        dig(again.report, "totals", "excepted"),
        dig(again.report, "findingsTotal", "wouldDeny"),
    )
    assert counted in " ".join(scanned.stdout.decode().split())
    assert f"[excepted by {FILTERED}]" in html.unescape(pages)


def test_a_report_without_a_known_configuration_states_it(assay: Assay, files: Path) -> None:
    """The line is among the objects out of scope."""
    ran = assay("scan", "--from", files, "-o", "json")
    kinds = [dig(webhook, "kind") for webhook in as_list(dig(ran.report, "outside"))]
    assert ["KyvernoConfiguration"] == kinds


@pytest.mark.parametrize(
    ("expected", "flags"),
    [
        ("write default, none, filters", ["--kyverno-resource-filters", "all"]),
        ("write default, none, filters", ["--kyverno-resource-filters", "[Pod]"]),
        ("write default, none, filters", ["--kyverno-resource-filters", "Pod,*,*"]),
        ("write default, none, filters", ["--kyverno-resource-filters", ""]),
        ("combined", ["--kyverno-resource-filters", "none", "--kyverno-resource-filters", "default"]),
        ("combined", ["--kyverno-resource-filters", "a/b", "--kyverno-resource-filters", "[Pod,*,*]"]),
        ("cannot be combined", ["--kyverno-resource-filters", "none", "--kyverno-compat", "cli"]),
    ],
)
def test_invalid_values_are_usage_errors(assay: Assay, files: Path, expected: str, flags: list[str]) -> None:
    """The message has a valid value."""
    ran = assay("scan", "--from", files, *flags)
    assert (2, True) == (ran.code, expected in ran.stderr)
