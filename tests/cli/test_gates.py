"""The gates of `--fail-on`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.model.json import dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy

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


def cluster_of(*documents: str) -> str:
    """The text of a file with these documents."""
    return "---\n".join(documents)


RULE, OBJECTS = bound("named", expression="object.metadata.name == 'good'"), config_map("a")


@pytest.mark.long
@pytest.mark.parametrize(
    ("documents", "gate", "line"),
    [
        pytest.param((RULE, OBJECTS), "new", "new (1 new problem)", id="new"),
        pytest.param((RULE, OBJECTS), "deny", "deny (1 problem that admission would refuse)", id="deny"),
        pytest.param((RULE, OBJECTS), "violated", "violated (1 problem with violations)", id="violated"),
        pytest.param((RULE, OBJECTS, config_map("b")), "deny", "deny (2 problems that admission", id="two"),
        pytest.param((RULE.replace("Deny", "Audit"), OBJECTS), "violated", "violated (1 problem", id="audited"),
        pytest.param((RULE.replace("Deny", "Audit"), OBJECTS), "deny", "", id="audited, so not refused"),
        pytest.param((bound("e", expression="object.data.x == 'y'"), OBJECTS), "errored", "errored (1 problem with", id="error"),
        pytest.param((bound("e", expression="object.data.x == 'y'"), OBJECTS), "deny", "deny (1 problem", id="error denies"),
        pytest.param((bound("e", expression="object.data.x == 'y'"), OBJECTS), "violated", "", id="error, no violation"),
        pytest.param((bound("good", expression="true"), OBJECTS), "violated", "", id="pass"),
        pytest.param((bound("good", expression="true"), policy("alone"), OBJECTS), "health", "health (1 entry", id="health"),
        pytest.param((bound("good", expression="true"), OBJECTS), "health", "", id="healthy"),
    ],
)  # fmt: skip
def test_a_gate_fails_for_what_it_names(
    assay: Assay, write: Write, documents: tuple[str, ...], gate: str, line: str
) -> None:
    """The exit code is 1, and stderr names the gate with its numbers; in every output format."""
    write("cluster/all.yaml", cluster_of(*documents))
    for output in ("table", "json"):
        ran = assay("scan", "--from", "cluster", "--db", f"{output}.db", "--fail-on", gate, "-o", output, "-q")
        assert (1 if line else 0) == ran.code
        assert bool(line) == (f"gate failed: {line}" in ran.stderr)


def test_several_failed_gates_are_one_line(assay: Assay, write: Write) -> None:
    """A gate that is given twice is named once."""
    write("cluster/all.yaml", cluster_of(RULE, OBJECTS))
    ran = assay(
        "scan", "--from", "cluster", "-q", *("--fail-on", "deny") * 2, "--fail-on", "errored", "--fail-on", "violated"
    )
    assert ran.stderr.splitlines() == [
        "assay: gates failed: deny (1 problem that admission would refuse); violated (1 problem with violations)"
    ]


def test_an_old_problem_is_not_new(assay: Assay, write: Write) -> None:
    """The second scan is compared with the first."""
    write("cluster/all.yaml", cluster_of(RULE, OBJECTS))
    first = assay("scan", "--from", "cluster", "-q", "--fail-on", "new")
    assert (1, True) == (first.code, "no earlier scan is comparable, so every problem is new" in first.stderr)

    again = assay("scan", "--from", "cluster", "-q", "--fail-on", "new")
    assert (0, "") == (again.code, again.stderr)

    write("cluster/more.yaml", config_map("b"))
    grown = assay("scan", "--from", "cluster", "-q", "--fail-on", "new")
    assert (1, True) == (grown.code, "gate failed: new (1 new problem since scan " in grown.stderr)


def test_a_scan_of_another_scope_is_no_baseline(assay: Assay, write: Write) -> None:
    """It is compared on request only."""
    write("cluster/all.yaml", cluster_of(RULE, OBJECTS))
    assay("scan", "--from", "cluster", "-q")
    narrowed = ("scan", "--from", "cluster", "-q", "-n", "shop", "--fail-on", "new")
    assert 1 == assay(*narrowed).code
    assert 0 == assay(*narrowed, "--baseline", "last~1").code


def test_a_report_is_a_baseline(assay: Assay, write: Write, home: Path) -> None:
    """The ids of problems are the same in another database."""
    write("cluster/all.yaml", cluster_of(RULE, OBJECTS))
    (home / "main.json").write_bytes(assay("scan", "--from", "cluster", "--db", "main.db", "-o", "json", "-q").stdout)
    compared = ("scan", "--from", "cluster", "--db", "branch.db", "-q", "--fail-on", "new", "--baseline", "main.json")
    assert 0 == assay(*compared).code

    write("cluster/more.yaml", config_map("b"))
    assert 1 == assay(*compared).code


def test_a_stored_scan_has_gates_too(assay: Assay, write: Write) -> None:
    """`last` as the baseline of the last scan would find nothing new, so it is refused."""
    write("cluster/all.yaml", cluster_of(RULE, OBJECTS))
    assay("scan", "--from", "cluster", "-q")
    assert 1 == assay("report", "--fail-on", "deny").code
    assert 0 == assay("report").code
    assert 2 == assay("report", "--fail-on", "new", "--baseline", "last").code


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--baseline", "main.json"), "there is no such file. Make it with: assay scan … --export json=main.json"),
        (("--fail-on", "new", "--baseline", "last"), "There is no scan"),
        (("--fail-on", "new", "--baseline", "cluster/all.yaml"), "cannot be read as a JSON report"),
        (("--fail-on", "new", "--baseline", "other.json"), "is no JSON report of Assay"),
        (("--fail-on", "anything"), "anything"),
    ],
)
def test_a_wrong_baseline_is_refused_before_the_scan(
    assay: Assay, write: Write, flags: tuple[str, ...], text: str
) -> None:
    """A mistyped baseline must not pass."""
    write("cluster/all.yaml", cluster_of(RULE, OBJECTS))
    write("other.json", "{}")
    ran = assay("scan", "--from", "cluster", "-q", *flags)
    assert 2 == ran.code
    assert text in ran.stderr


def test_previews_and_exceptions_fail_no_gate(assay: Assay, write: Write) -> None:
    """The policy is not bound."""
    write("cluster/all.yaml", cluster_of(policy("named"), OBJECTS))
    gates = [flag for gate in ("new", "deny", "violated") for flag in ("--fail-on", gate)]
    ran = assay("scan", "--from", "cluster", "--assume-bound", "named", "-q", *gates)
    assert 0 == ran.code
