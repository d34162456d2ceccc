"""`--kyverno-version`: the release of Kyverno whose rules apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import as_list, dig
from tests.cli.conftest import Assay
from tests.cli.test_scan_from_files import Write

POLICY = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: prod-images}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {env: prod}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "object.spec.containers.all(c, c.image.startsWith('reg.example.com/'))", message: wrong registry}
"""
NOT_SHOP = """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: not-shop}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  validations:
  - {expression: "object.metadata.namespace != 'shop'", message: not in shop}
"""
OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {env: prod}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: shop}
spec: {containers: [{name: c, image: reg.example.com/web}]}
"""
KYVERNO = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: kyverno-admission-controller, namespace: kyverno}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: kyverno, image: "ghcr.io/kyverno/kyverno:v1.18.2"}]}
"""
SUITE = """
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: images}
policies: [../policy.yaml]
resources: [../objects/objects.yaml]
variables: values.yaml
results:
- {policy: prod-images, resources: [web], kind: Deployment, result: RESULT, isValidatingPolicy: true}
"""
VALUES = """
apiVersion: cli.kyverno.io/v1alpha1
kind: Values
metadata: {name: values}
namespaceSelector:
- {name: shop, labels: {env: prod}}
"""


@pytest.fixture
def folder(write: Write) -> Path:
    """A policy with a namespace selector, and a Deployment in such a namespace."""
    write("policy.yaml", POLICY)
    write("objects/objects.yaml", OBJECTS)
    return Path("objects")


def scanned(assay: Assay, folder: Path, *flags: str, **environment: str) -> tuple[Any, list[Any], int]:
    """The release and the outcomes of a scan, and the number of its gaps."""
    report = assay("scan", "--from", folder, "-f", "policy.yaml", *flags, "-o", "json", **environment).report
    outcomes = [dig(finding, "outcome") for finding in as_list(report["findings"])]
    return dig(report, "method", "kyvernoRelease"), outcomes, len(as_list(report["gaps"]))


@pytest.mark.parametrize(
    ("version", "release", "outcomes"),
    [("1.16", "1.16", []), ("v1.18.2", "1.18", []), ("1.19", "1.19", ["violated"]), ("1.99", "1.19", ["violated"])],
)
def test_a_release_decides(assay: Assay, folder: Path, version: str, release: str, outcomes: list[str]) -> None:
    """A policy with a namespace selector has variants since 1.19."""
    assert (release, outcomes, 0) == scanned(assay, folder, "--kyverno-version", version)


def test_the_newest_release_decides_by_default(assay: Assay, folder: Path) -> None:
    """Files have no server."""
    assert ("1.19", ["violated"], 0) == scanned(assay, folder)


def test_the_deployment_of_kyverno_decides(assay: Assay, folder: Path, write: Write) -> None:
    """It may be among the files."""
    write("objects/kyverno.yaml", KYVERNO)
    assert ("1.18", [], 0) == scanned(assay, folder)


def test_the_configuration_can_name_the_release(assay: Assay, folder: Path, write: Write) -> None:
    """The key of the file."""
    write("assay.yaml", "kyvernoVersion: '1.17'\n")
    assert ("1.17", [], 0) == scanned(assay, folder)


@pytest.mark.parametrize(("version", "result"), [("1.18", "skip"), ("1.19", "fail")])
def test_a_suite_is_evaluated_by_the_rules_of_a_release(
    assay: Assay, folder: Path, write: Write, version: str, result: str
) -> None:
    """As Kyverno's command line of that release."""
    write("suite/kyverno-test.yaml", SUITE.replace("RESULT", result))
    write("suite/values.yaml", VALUES)
    ran = assay("test", folder.parent / "suite", "--kyverno-version", version)
    assert (0, b"1 expectation in 1 suite: 1 as expected, 0 different\n") == (ran.code, ran.stdout)


@pytest.mark.parametrize("command", [("scan", "--from", "objects"), ("test", "."), ("rbac", "generate")])
def test_an_invalid_release_is_a_usage_error(assay: Assay, folder: Path, command: tuple[str, ...]) -> None:
    """The message has an example of a release."""
    ran = assay(*command, "--kyverno-version", "latest")
    assert (2, "assay: --kyverno-version latest: write a release such as 1.19\n") == (ran.code, ran.stderr)
    assert folder.is_dir()


def test_a_change_of_the_release_is_a_cause(assay: Assay, folder: Path, write: Write) -> None:
    """A finding that appears, changes or ends with a release was neither made nor fixed by its object."""
    write("policy.yaml", f"{POLICY}---{NOT_SHOP}")
    reports = [
        assay("scan", "--from", folder, "-f", "policy.yaml", "--kyverno-version", release, "-o", "json").report
        for release in ("1.18", "1.19", "1.18")
    ]
    later = [*as_list(reports[1]["findings"]), *as_list(reports[2]["resolved"])]
    causes = [
        (dig(finding, "policy"), dig(finding, "object", "kind"), dig(finding, "cause", "kind")) for finding in later
    ]
    assert [
        ("not-shop", "Deployment", "kyverno"),
        ("not-shop", "Pod", None),
        ("prod-images", "Deployment", "kyverno"),
        ("prod-images", "Deployment", "kyverno"),
    ] == sorted(causes, key=str)
    assert [True, True] == ["kyverno" in as_list(dig(report, "changes", "rulesChanged")) for report in reports[1:]]


def test_a_comparison_names_both_releases(assay: Assay, folder: Path, write: Write) -> None:
    """The scans are comparable."""
    write("policy.yaml", f"{POLICY}---{NOT_SHOP}")
    for release in ("1.18", "1.19"):
        assay("scan", "--from", folder, "-f", "policy.yaml", "--kyverno-version", release)
    compared = assay("diff").stdout.decode()
    assert "changed  release of Kyverno: 1.18; now 1.19" in compared
    assert "the release of Kyverno changed" in compared
