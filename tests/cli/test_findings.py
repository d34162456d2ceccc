"""`assay findings`, and the scan that a date names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map, policy

Write = Callable[[str, str], Path]
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-web}
"""
SET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: shop
  uid: u-set
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-web, controller: true}]
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: NAME
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: u-set, controller: true}]
"""
PODS = bound("pods").replace("configmaps", "pods")


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    """The database of `twice`, once it is made: every test gets a copy."""
    return {}


@pytest.fixture
def twice(assay: Assay, write: Write, home: Path, made: dict[str, bytes]) -> Assay:
    """A database of two scans: `a` and `b` of shop and `c` of bank, then `a` and the new `d`; the pods were replaced."""
    database = home / ".local" / "share" / "assay" / "assay.db"
    if made:
        database.parent.mkdir(parents=True)
        database.write_bytes(made["database"])
        return assay
    rules = f"{bound('maps')}---\n{PODS}---\n{DEPLOYMENT}---\n{SET}"
    write("cluster/rules.yaml", rules)
    first = [config_map("a"), config_map("b"), config_map("c", namespace="bank"), *pods("web-1-x", "web-1-y")]
    write("cluster/all.yaml", "---\n".join(first))
    assert 0 == assay("scan", "--from", "cluster", "-q").code
    write("cluster/all.yaml", "---\n".join([config_map("a"), config_map("d"), *pods("web-1-z", "web-1-y")]))
    assert 0 == assay("scan", "--from", "cluster", "-q").code
    made["database"] = database.read_bytes()
    return assay


def pods(*names: str) -> list[str]:
    """Pods of the replica set."""
    return [POD.replace("NAME", name) for name in names]


def listed(assay: Assay, *flags: str, form: str = "findings") -> list[dict[str, Any]]:
    """The rows of the JSON list."""
    ran = assay("findings", "-o", "json", *flags)
    assert (0, "") == (ran.code, ran.stderr)
    rows: list[dict[str, Any]] = json.loads(ran.stdout)[form]
    return rows


def names(assay: Assay, *flags: str) -> set[str]:
    """The names of the objects of the listed findings."""
    return {row["object"]["name"] for row in listed(assay, *flags)}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), {"a", "d", "web-1-y", "web-1-z"}),
        (("--policy", "maps"), {"a", "d"}),
        (("--policy", "ma*"), {"a", "d"}),
        (("--kind", "Pod"), {"web-1-y", "web-1-z"}),
        (("--workload", "Deployment/web"), {"web-1-y", "web-1-z"}),
        (("--workload", "deployment/w*"), {"web-1-y", "web-1-z"}),
        (("--workload", "ConfigMap/d"), {"d"}),
        (("--status", "new"), {"d", "web-1-z"}),
        (("--status", "resolved"), {"b", "c", "web-1-x"}),
        (("--status", "resolved", "-n", "bank"), {"c"}),
        (("--action", "Deny"), {"a", "d", "web-1-y", "web-1-z"}),
        (("--action", "Audit"), set()),
        (("--action", "refused"), {"a", "d", "web-1-y", "web-1-z"}),
        (("--workload", "Deployment shop/w*"), {"web-1-y", "web-1-z"}),
        (("--status", "open"), {"a", "d", "web-1-y", "web-1-z"}),
        (("--status", "unresolved"), {"a", "d", "web-1-y", "web-1-z"}),
        (("--status", "unchecked"), set()),
        (("--text", "DEPLOYMENT web-1-y"), {"web-1-y"}),
        (("--severity", "medium"), {"a", "d", "web-1-y", "web-1-z"}),
        (("--severity", "high"), set()),
        (("--scan", "last~1"), {"a", "b", "c", "web-1-x", "web-1-y"}),
        (("--at", "2100-01-01"), {"a", "d", "web-1-y", "web-1-z"}),
    ],
)
def test_filters_choose_findings(twice: Assay, flags: tuple[str, ...], expected: set[str]) -> None:
    """Names are globs; resolved findings are listed on request."""
    assert expected == names(twice, *flags)


def test_ids_choose_findings_and_problems(twice: Assay) -> None:
    """A resolved finding is listed by its id, too."""
    [gone] = listed(twice, "--status", "resolved", "-n", "bank")
    assert {"c"} == names(twice, gone["id"][:8])
    assert {"c"} == names(twice, gone["problem"])


def test_problems_outlive_their_pods(twice: Assay) -> None:
    """The rollout of a pod leaves the problem of its workload open."""
    rows = listed(twice, "--problems", form="problems")
    [web] = [row for row in rows if row["workload"]["name"] == "web"]
    assert ("open", 2, "Deny") == (web["status"], web["findings"], web["action"])
    assert {"a": "open", "d": "new"} == {
        row["workload"]["name"]: row["status"] for row in rows if row["policy"] == "maps"
    }
    gone = listed(twice, "--problems", "--status", "resolved", form="problems")
    assert {"b", "c"} == {row["workload"]["name"] for row in gone}


def test_the_table_fits_a_terminal(twice: Assay) -> None:
    """The columns that choose the next command; the last one is the message, which begins before column 130 with short names."""
    lines = twice("findings").stdout.decode().splitlines()
    head = ["FINDING", "STATUS", "SINCE", "WOULD", "BE", "SEVERITY", "OWNER", "RULE", "OBJECT", "MESSAGE"]
    assert lines[0].split() == head
    assert lines[0].index("MESSAGE") < 130
    problems = twice("findings", "--problems").stdout.decode().splitlines()
    head = ["PROBLEM", "STATUS", "SINCE", "FINDINGS", "WOULD", "BE", "SEVERITY", "OWNER", "RULE", "WORKLOAD", "MESSAGE"]
    assert problems[0].split() == head
    assert problems[0].index("MESSAGE") < 130


def test_what_is_left_out_is_counted(twice: Assay) -> None:
    """No line is lost without a word."""
    ran = twice("findings", "--limit", "1")
    assert 2 == len(ran.stdout.splitlines())
    assert ran.stderr == "assay: 3 more findings are left out: choose with filters, or print all with --limit 0\n"


def test_csv_has_a_column_for_each_part(twice: Assay) -> None:
    """It is read as it was written."""
    rows = list(csv.DictReader(io.StringIO(twice("findings", "-o", "csv", "--kind", "Pod").stdout.decode())))
    assert {("shop", "web-1-y", "Deployment web"), ("shop", "web-1-z", "Deployment web")} == {
        (row["namespace"], row["name"], row["workload"]) for row in rows
    }
    problems = list(csv.DictReader(io.StringIO(twice("findings", "--problems", "-o", "csv").stdout.decode())))
    assert {"web", "a", "d"} == {row["name"] for row in problems}


def test_a_message_is_no_formula(assay: Assay, write: Write) -> None:
    """A spreadsheet would evaluate it."""
    write("cluster/all.yaml", f"{bound('named', message='=1+1')}---\n{config_map('a')}")
    assay("scan", "--from", "cluster", "-q")
    [row] = csv.DictReader(io.StringIO(assay("findings", "-o", "csv").stdout.decode()))
    assert row["message"] == "'=1+1"


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--at", "31.3.2026"), "write a date such as 2026-03-31"),
        (("--at", "2026-03-31T12:00:00"), "a time needs a zone"),
        (("--at", "2020-01-01"), "No scan had ended by 2020-01-01"),
        (("--at", "2100-01-01", "--scan", "last~1"), "--at cannot be combined with --scan: leave one of them out"),
        (("--workload", "web"), "write KIND/NAME"),
        (("--scan", "nothing"), "There is no scan"),
    ],
)
def test_mistakes_are_usage_errors(twice: Assay, flags: tuple[str, ...], text: str) -> None:
    """The message names the flag and what to write."""
    ran = twice("findings", *flags)
    assert (2, True) == (ran.code, text in ran.stderr)


def test_reports_and_policies_are_those_of_a_date(twice: Assay) -> None:
    """The same scan as with its id."""
    first, last = ((json.loads(twice("report", scan, "-o", "json").stdout)) for scan in ("last~1", "last"))
    moment = first["provenance"]["finishedAt"]
    assert (
        first["provenance"]["scanId"]
        == json.loads(twice("report", "--at", moment, "-o", "json").stdout)["provenance"]["scanId"]
    )
    assert (
        last["provenance"]["scanId"]
        == json.loads(twice("report", "--at", "2100-01-01", "-o", "json").stdout)["provenance"]["scanId"]
    )
    assert 0 == twice("policies", "--at", moment).code == twice("policies", "--scan", "last~1").code


def test_wide_characters_keep_columns_together(assay: Assay, write: Write) -> None:
    """A terminal gives them two columns each."""
    labelled = config_map("b").replace("metadata:", "metadata:\n  labels: {team: 決済}")
    write("all.yaml", f"{config_map('a')}---\n{labelled}---\n{bound('p')}")
    assay("scan", "--from", "all.yaml", "-q")

    head, *lines = assay("findings").stdout.decode().splitlines()

    at = head.index("RULE")
    assert [at, at] == [cell_len(line[: line.index(" p validations[0]") + 1]) for line in lines]


def test_problems_of_a_preview_are_listed(assay: Assay, write: Write) -> None:
    """One for each check and workload, beside the problems of policies in force."""
    write("all.yaml", f"{config_map('a')}---\n{config_map('b')}---\n{bound('p')}---\n{policy('later')}")
    assay("scan", "--from", "all.yaml", "--assume-bound", "later", "-q")
    previews = listed(assay, "--problems", "--status", "preview", form="problems")

    assert [("later", "preview", 1), ("later", "preview", 1)] == [
        (row["policy"], row["status"], row["findings"]) for row in previews
    ]
    assert {row["problem"] for row in listed(assay, "--status", "preview")} == {row["id"] for row in previews}
    assert ["later", "later", "p", "p"] == sorted(row["policy"] for row in listed(assay, "--problems", form="problems"))
    assert {"p"} == {row["policy"] for row in listed(assay, "--problems", "--status", "new", form="problems")}


@pytest.mark.parametrize("command", [("findings",), ("findings", "--problems"), ("waiver", "propose")])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--policy", "mops"), "--policy mops: scan {scan} has no such policy. It has maps, pods"),
        (("-n", "shpo"), "--namespace shpo: scan {scan} has no such namespace. It evaluated objects in shop"),
        (
            ("-n", "shop", "-n", "b?t"),
            "--namespace b?t: scan {scan} has no such namespace. It evaluated objects in shop",
        ),
    ],
)
def test_a_name_that_the_scan_does_not_have_is_an_error(
    twice: Assay, command: tuple[str, ...], flags: tuple[str, ...], message: str
) -> None:
    """A typing error must not look like a clean cluster."""
    scan = json.loads(twice("report", "-o", "json").stdout)["provenance"]["scanId"]
    ran = twice(*command, *flags)

    assert (2, b"") == (ran.code, ran.stdout)
    assert message.format(scan=scan) in " ".join(ran.stderr.split())


@pytest.mark.parametrize("flags", [("-n", "bank"), ("-n", "sh*"), ("--policy", "pods", "-n", "shop")])
def test_names_of_resolved_findings_are_known(twice: Assay, flags: tuple[str, ...]) -> None:
    """Their namespace may be gone."""
    assert 0 == twice("findings", *flags).code


def test_a_namespace_without_an_evaluated_object_is_known(assay: Assay, write: Write) -> None:
    """It has a Namespace."""
    quiet = "apiVersion: v1\nkind: Namespace\nmetadata: {name: quiet}\n"
    write("all.yaml", f"{config_map('a')}---\n{quiet}---\n{bound('p')}")
    assay("scan", "--from", "all.yaml", "-q")

    assert [0, 2] == [assay("findings", "-n", name).code for name in ("quiet", "quite")]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize("flags", [(), ("--fixes",)])
def test_a_trend_of_an_unknown_policy_is_an_error(twice: Assay, form: str, flags: tuple[str, ...]) -> None:
    """In every form."""
    ran = twice("trend", "--policy", "mops", "-o", form, *flags)

    assert (2, b"") == (ran.code, ran.stdout)
    assert "No daily tally is of a policy 'mops'" in " ".join(ran.stderr.split())
