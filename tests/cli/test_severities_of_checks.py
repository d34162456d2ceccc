"""Severities and remediations of single checks on the command line: those of Pod Security."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Assay

DOCUMENTS = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: baseline}}
---
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: shop}
spec:
  hostNetwork: true
  containers:
  - {name: app, image: a, securityContext: {privileged: true}}
"""


@pytest.fixture
def scanned(assay: Assay, write: Callable[[str, str], Path]) -> Assay:
    """A scan of a privileged pod in the network of its host."""
    write("pods.yaml", DOCUMENTS)
    assert 0 == assay("scan", "--from", "pods.yaml", "-q").code
    return assay


def listed(ran_out: bytes) -> list[tuple[str, str]]:
    """The severity and the check of the rows of a JSON list."""
    return [(row["severity"], row["check"]["expression"]) for row in json.loads(ran_out)["problems"]]


def test_lists_have_the_severity_of_the_check(scanned: Assay) -> None:
    """The worst problem comes first, and a minimum leaves out the others."""
    lists = [
        listed(scanned("findings", "--problems", "-o", "json", *more).stdout)
        for more in ((), ("--min-severity=critical",))
    ]

    assert [[("critical", "privileged"), ("high", "hostNamespaces")], [("critical", "privileged")]] == lists


def test_a_gate_leaves_out_less_severe_checks(scanned: Assay) -> None:
    """The policy has a check of the minimum, and fails the gate with the problem of that check alone."""
    ran = scanned("report", "--fail-on", "deny", "--min-severity", "critical", "-o", "sarif")

    assert (1, 1) == (ran.code, ran.stderr.count("1 problem that admission would refuse"))
    assert {"pod-security/privileged"} == {each["ruleId"] for each in json.loads(ran.stdout)["runs"][0]["results"]}


def test_the_gate_tells_pods_from_objects(assay: Assay, write: Callable[[str, str], Path]) -> None:
    """The gate deny counts both, and its line names each number."""
    template = "{metadata: {labels: {a: b}}, spec: {hostPID: true, containers: [{name: app, image: a}]}}"
    spec = f"{{selector: {{matchLabels: {{a: b}}}}, template: {template}}}"
    workload = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec: {spec}\n"
    write("pods.yaml", f"{DOCUMENTS}---\n{workload}")
    ran = assay("scan", "--from", "pods.yaml", "-q", "--fail-on", "deny")

    assert 1 == ran.code
    assert (
        "gate failed: deny (2 problems that admission would refuse and 1 problem whose pods admission would refuse)"
        in ran.stderr
    )


def test_a_rule_of_sarif_has_the_severity_of_its_check(scanned: Assay) -> None:
    """GitHub takes the severity of an alert from its rule."""
    [run] = json.loads(scanned("report", "-o", "sarif").stdout)["runs"]
    severities = {each["id"]: each["properties"]["security-severity"] for each in run["tool"]["driver"]["rules"]}

    assert {"pod-security/privileged": "9.5", "pod-security/hostNamespaces": "8.0"} == {
        each["ruleId"]: severities[each["ruleId"]] for each in run["results"]
    }


def test_explain_has_the_remediation_of_the_check(scanned: Assay) -> None:
    """A problem has that of its check, the policy those of all checks."""
    [problem] = json.loads(scanned("findings", "--problems", "--severity=high", "-o", "json").stdout)["problems"]
    one, every = (scanned("explain", name).stdout.decode() for name in (problem["id"], "pod-security"))

    assert "Severity high" in one
    assert "Remediation: Remove hostNetwork, hostPID and hostIPC" in one
    assert "hostNamespaces: Pods share no namespace with the host" in one
    assert "check privileged, critical: Containers are not privileged" in every
    assert "Remove hostNetwork, hostPID and hostIPC" in every


def test_reports_have_the_severity_of_each_check(scanned: Assay) -> None:
    """In the checks of a policy, in the results of a policy report, and in the numbers by severity."""
    report = json.loads(scanned("report", "-o", "json").stdout)
    checks = {each["check"]["expression"]: each for each in report["policies"][0]["checks"]}

    assert ("critical", "high") == tuple(checks[name]["severity"] for name in ("privileged", "hostNamespaces"))
    assert checks["hostPorts"]["remediation"].startswith("Remove hostPort")
    assert {"critical": 2, "high": 2} == {
        each["severity"]: each["findings"]["total"] for each in report["severities"] if each["findings"]["total"]
    }


def test_a_configured_severity_is_that_of_every_check(assay: Assay, write: Callable[[str, str], Path]) -> None:
    """A configuration names policies, not checks."""
    write("assay.yaml", "descriptions: [{policy: pod-security, severity: low}]\n")
    write("pods.yaml", DOCUMENTS)
    assert 0 == assay("scan", "--from", "pods.yaml", "-q").code

    assert {"low"} == {severity for severity, _ in listed(assay("findings", "--problems", "-o", "json").stdout)}
