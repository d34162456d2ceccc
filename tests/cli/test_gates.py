"""The gates of `--fail-on`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.model.json import dig
from tests.cli.conftest import Assay
from tests.cli.manifests import config_map

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: team}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}
  reinvocationPolicy: Never
  mutations:
    - {patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"t": "x"}}}'}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: team}
spec: {policyName: team}
"""
AS_WANTED = config_map("b").replace("  name:", '  labels: {t: "x"}\n  name:')
Write = Callable[[str, str], Path]


@pytest.mark.parametrize(("objects", "expected"), [(config_map("a"), 1), (AS_WANTED, 0)])
def test_drift_can_be_a_gate(assay: Assay, write: Write, objects: str, expected: int) -> None:
    """A scan with the gate `drift` ends with 1 if it finds drift."""
    write("cluster/all.yaml", f"{POLICY}---\n{objects}")

    assert expected == assay("scan", "--from", "cluster", "--fail-on", "drift").code


def test_previewed_drift_fails_no_gate(assay: Assay, write: Write) -> None:
    """A policy without a binding changes no object; the report shows a preview."""
    write("cluster/all.yaml", f"{POLICY.partition('---')[0]}---\n{config_map('a')}")
    ran = assay("scan", "--from", "cluster", "--assume-bound", "team", "--fail-on", "drift", "-o", "json")

    assert (0, 1) == (ran.code, dig(ran.report, "changes", "preview"))


def test_without_a_gate_drift_does_not_fail(assay: Assay, write: Write) -> None:
    """Drift is no violation, and no gate is set."""
    write("cluster/all.yaml", f"{POLICY}---\n{config_map('a')}")
    ran = assay("scan", "--from", "cluster")

    assert 0 == ran.code
    assert b"Drift     1 mutation would change an object" in ran.stdout


def test_an_incomplete_scan_comes_before_a_gate(assay: Assay, write: Write) -> None:
    """The exit code is that of an incomplete scan, because the gate has not evaluated the whole cluster."""
    write("cluster/all.yaml", f"{POLICY}---\n{config_map('a')}---\nkind: Broken\n")

    assert 3 == assay("scan", "--from", "cluster", "--fail-on", "drift").code


def test_drift_of_one_object_is_explained(assay: Assay, write: Write) -> None:
    """The finding has the change, and the policy its mutations."""
    write("cluster/all.yaml", f"{POLICY}---\n{config_map('a')}")
    assay("scan", "--from", "cluster")
    text = assay("explain", "team").stdout.decode()

    assert "ApplyConfiguration" in text
    assert 'labels: {"t": "x"}' in text
