"""Owners and severities on the command line: from manifests to reports, lists and gates."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scanner.model.json import dig
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata: {name: NAME, labels: {team: TEAM}}
"""
TEXTS = """\
  annotations:
    assay.dev/severity: SEVERITY
    assay.dev/title: Better maps
    policies.kyverno.io/category: Maps
    assay.dev/remediation: Write a better map.
"""


def described(name: str, severity: str) -> str:
    """A policy of this severity that every ConfigMap violates, and its binding."""
    texts = TEXTS.replace("SEVERITY", severity)
    return bound(name).replace(f"  name: {name}\n", f"  name: {name}\n{texts}", 1)


def owned(name: str, team: str) -> str:
    """A ConfigMap of shop with a team of its own."""
    return config_map(name).replace("metadata:", f"metadata:\n  labels: {{team: {team}}}")


@pytest.fixture
def scanned(assay: Assay, write: Write) -> Assay:
    """A scan of maps of three teams, under a critical, a low and a medium policy."""
    policies = [described("worst", "critical"), described("harmless", "low"), bound("plain")]
    namespaces = [NAMESPACE.replace("NAME", "shop").replace("TEAM", "blue")]
    maps = [config_map("a"), owned("b", "red"), config_map("c", namespace="bank")]
    write("cluster/all.yaml", "---\n".join([*policies, *namespaces, *maps]))
    assert 0 == assay("scan", "--from", "cluster", "-q").code
    return assay


def names(ran_out: bytes, form: str = "findings") -> list[tuple[str, str]]:
    """Policy and object of the rows of a JSON list."""
    return [(row["policy"], row["object"]["name"]) for row in json.loads(ran_out)[form]]


def test_every_finding_has_a_severity_and_an_owner(scanned: Assay) -> None:
    """The label of the object comes before that of its namespace; without either, it is unowned."""
    rows: list[dict[str, Any]] = json.loads(scanned("findings", "-o", "json").stdout)["findings"]

    assert {"a": "blue", "b": "red", "c": None} == {row["object"]["name"]: row["owner"] for row in rows}
    assert {"worst": "critical", "harmless": "low", "plain": "medium"} == {
        row["policy"]: row["severity"] for row in rows
    }


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--owner", "red"), {"b"}),
        (("--owner", "b*"), {"a"}),
        (("--owner", "unowned"), {"c"}),
        (("--owner", ""), {"c"}),
        (("--owner", "*"), {"a", "b"}),
        (("--owner", "red", "--owner", ""), {"b", "c"}),
        (("--owner", "purple"), set()),
    ],
)
def test_findings_are_chosen_by_owner(scanned: Assay, flags: tuple[str, ...], expected: set[str]) -> None:
    """Names are globs; no glob chooses unowned objects."""
    assert expected == {name for _, name in names(scanned("findings", "-o", "json", *flags).stdout)}


@pytest.mark.parametrize(
    ("minimum", "expected"),
    [("critical", {"worst"}), ("medium", {"worst", "plain"}), ("info", {"worst", "plain", "harmless"})],
)
def test_findings_are_chosen_by_severity(scanned: Assay, minimum: str, expected: set[str]) -> None:
    """That severity and worse ones; the list of problems alike."""
    findings = scanned("findings", "-o", "json", "--min-severity", minimum)
    problems = scanned("findings", "--problems", "-o", "json", "--min-severity", minimum)

    assert expected == {policy for policy, _ in names(findings.stdout)}
    assert expected == {row["policy"] for row in json.loads(problems.stdout)["problems"]}


def test_the_worst_findings_come_first(scanned: Assay) -> None:
    """Also if fewer lines are printed than there are; the rest is counted."""
    ran = scanned("findings", "--sort", "severity", "--limit", "4", "-o", "json")

    assert ["worst"] * 3 + ["plain"] == [policy for policy, _ in names(ran.stdout)]
    assert "5 more findings are left out" in ran.stderr


def test_findings_are_sorted_by_owner(scanned: Assay) -> None:
    """Unowned objects come last; those of an owner begin with the worst."""
    ran = scanned("findings", "--sort", "owner", "--limit", "0", "-o", "json")
    expected = [(policy, name) for name in "abc" for policy in ("worst", "plain", "harmless")]

    assert expected == names(ran.stdout)


def test_a_spreadsheet_has_owners_and_descriptions(scanned: Assay) -> None:
    """A column has each of them."""
    ran = scanned("findings", "-o", "csv", "--policy", "worst", "--owner", "red")
    [row] = csv.DictReader(io.StringIO(ran.stdout.decode()))

    columns = ("severity", "title", "category", "owner", "waiver")
    assert ["critical", "Better maps", "Maps", "red", ""] == [row[column] for column in columns]


@pytest.mark.parametrize("minimum", ["critical", "high", "medium"])
def test_a_gate_fails_for_bad_policies(scanned: Assay, minimum: str) -> None:
    """The worst policy is critical."""
    assert 1 == scanned("report", "--fail-on", "violated", "--min-severity", minimum).code


def test_a_gate_leaves_out_lower_severities(assay: Assay, write: Write) -> None:
    """On a scan and on its report, for every gate that counts problems."""
    write("cluster/all.yaml", f"{described('harmless', 'low')}---\n{config_map('a')}")
    gates = [flag for name in ("new", "deny", "violated", "errored", "health") for flag in ("--fail-on", name)]

    assert 1 == assay("scan", "--from", "cluster", *gates, "--min-severity", "low").code
    assert 0 == assay("scan", "--from", "cluster", *gates, "--min-severity", "medium").code
    assert 0 == assay("report", *gates, "--min-severity", "medium").code


def test_a_gate_names_the_problems_that_count(scanned: Assay) -> None:
    """Those of lower severities are not among them."""
    ran = scanned("report", "--fail-on", "violated", "--min-severity", "medium")

    assert "gate failed: violated (6 problems with violations)" in ran.stderr


def test_a_severity_needs_no_gate(scanned: Assay) -> None:
    """It also chooses what Markdown, JUnit and SARIF show."""
    assert 0 == scanned("report", "--min-severity", "high").code


def test_an_incomplete_scan_stays_incomplete(assay: Assay, write: Write) -> None:
    """No severity changes exit code 3."""
    write("cluster/all.yaml", f"{described('harmless', 'low')}---\n{config_map('a')}---\nkind: Broken\n")

    assert 3 == assay("scan", "--from", "cluster", "--fail-on", "violated", "--min-severity", "critical").code


def test_policies_are_listed_with_their_severity(scanned: Assay) -> None:
    """In the order of their severity, or those that are bad enough."""
    ran = scanned("policies", "--sort", "severity")
    bad = scanned("policies", "--min-severity", "medium").stdout.decode().splitlines()
    lines = ran.stdout.decode().splitlines()

    assert ["POLICY", "worst", "plain", "harmless"] == [line.split()[0] for line in lines]
    assert "critical" in lines[1]
    assert lines[1].endswith("Maps      Better maps")
    assert 3 == len(bad)


def test_a_policy_is_explained_with_its_description(scanned: Assay) -> None:
    """Severity, category, title and remediation."""
    text = scanned("explain", "worst").stdout.decode()

    for line in ("Severity critical, category Maps", "Title: Better maps", "Remediation: Write a better map."):
        assert line in text


def test_a_finding_is_explained_with_its_owner(scanned: Assay) -> None:
    """And with the severity of its policy."""
    [row] = json.loads(scanned("findings", "-o", "json", "--policy", "worst", "--owner", "red").stdout)["findings"]
    text = scanned("explain", row["id"]).stdout.decode()

    assert "\nOwner red\n" in text
    assert "\nSeverity critical, category Maps\n" in text


def test_the_report_counts_by_owner_and_severity(scanned: Assay) -> None:
    """In the table and in JSON, where every owner has a score."""
    table = scanned("report", "--wide").stdout.decode()
    report: Any = scanned("report", "-o", "json").report
    owners = {owner["owner"]: (owner["findings"]["total"], owner["score"]["decided"]) for owner in report["owners"]}

    assert "Severity  3 critical, 3 medium, 3 low" in table
    assert "\nunowned " in table
    assert {"blue": (3, 3), "red": (3, 3), None: (3, 3)} == owners
    assert [3, 0, 3, 3, 0] == [dig(each, "findings", "total") for each in report["severities"]]
    assert 3 * (10 + 3 + 1) == report["score"]["weighted"]["decided"]


def test_an_edited_title_is_no_change_of_rules(scanned: Assay, write: Write) -> None:
    """The digest of the descriptions changes, and no report says that the rules changed."""
    before: Any = scanned("report", "-o", "json").report
    path = Path("cluster/all.yaml")
    write(str(path), path.read_text().replace("Better maps", "The best maps"))
    assert 0 == scanned("scan", "--from", "cluster", "-q").code
    after: Any = scanned("report", "-o", "json").report

    assert before["provenance"]["policySetDigest"] == after["provenance"]["policySetDigest"]
    assert before["provenance"]["descriptionDigest"] != after["provenance"]["descriptionDigest"]
    assert [] == after["changes"]["rulesChanged"]
    assert 9 == after["changes"]["open"]


def test_a_difference_names_severities(scanned: Assay, write: Write) -> None:
    """Of resolved problems too, in every form."""
    write("cluster/more.yaml", config_map("d"))
    assert 0 == scanned("scan", "--from", "cluster", "-q").code
    problems = json.loads(scanned("diff", "-o", "json").stdout)["problems"]

    assert {"worst": "critical", "harmless": "low", "plain": "medium"} == {
        row["policy"]: row["severity"] for row in problems
    }
    assert "  critical  worst" in scanned("diff").stdout.decode()
    assert "| critical | worst |" in scanned("diff", "-o", "markdown").stdout.decode()
