"""`assay trend` prints the daily tallies as a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from scanner.model.json import as_list, as_object, dig
from scanner.model.scans.scan import ClusterIdentity, ScanStart, Scope
from scanner.store import open_store
from tests.cli.conftest import Assay
from tests.cli.test_db import record
from tests.command import assay as assay_process
from tests.docs.pages import ROOT
from tests.store.made import PROD, Round, finding
from tests.store.test_fixes import fixing

A, B = finding("a"), finding("b")
FORMULA = finding("c", namespace="-bank", policy="=1+1")
SCHEMA = json.loads((ROOT / "docs" / "trend.schema.json").read_text("utf-8"))


def day(days_ago: int) -> str:
    """The date of some days ago."""
    return (datetime.now(UTC) - timedelta(days=days_ago)).date().isoformat()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A database with scans of three days, and with a day without one."""
    path = tmp_path / "history.db"
    with open_store(str(path)) as store:
        for number, days_ago, findings in ((1, 3, (A,)), (2, 1, (A, B, FORMULA)), (3, 0, (B,))):
            record(store, number, days_ago, Round(findings, policies=("replicas", "=1+1"), bound=("replicas", "=1+1")))
    return path


def test_a_row_for_each_policy(assay: Assay, db: Path) -> None:
    """Its failing outcomes as a line, and those of the first and the last day; above them the open findings as bars.

    Both begin with the first day that has a scan.
    """
    ran = assay("trend", "--days", "5", "--db", db)

    title, *bars, _, about, _, head, one, other, _, changes = ran.stdout.decode().splitlines()
    policies = [one, other]
    assert title.endswith("; 3 of 5 days have a scan.")
    assert "Failing outcomes by policy:" == about
    assert ["", "4 ┤", "  │  ▄", "  │  █", "2 ┤  █", "  │▄ █▄", "  │█ ██", "0 └─ ──"] == bars[:-1]
    assert [day(3)[5:], day(0)[5:]] == bars[-1].split()
    assert ["POLICY", "DAYS", "FIRST", "LAST"] == head.split()
    assert ["=1+1        █   -      -", "replicas  ▅ █▅  1      1"] == policies
    assert changes.startswith("3 findings are new and 2 are resolved from")


def test_a_row_for_each_day_of_a_policy(assay: Assay, db: Path) -> None:
    """Days without a complete scan are left out."""
    ran = assay("trend", "--policy", "rep*", "--days", "5", "--db", db)

    lines = ran.stdout.decode().splitlines()
    assert "Failing outcomes by day:" == lines[0]
    assert "2 ┤  █" == lines[2]
    assert [["DAY", "VIOLATED"], [day(3), "1"], [day(1), "2"], [day(0), "1"]] == [line.split() for line in lines[11:]]


def test_the_table_fits_a_terminal(assay: Assay, tmp_path: Path) -> None:
    """With a long name and many days."""
    path = tmp_path / "long.db"
    name = "require-" + "very-" * 20 + "long"
    with open_store(str(path)) as store:
        for number in range(1, 4):
            each = Round((finding("a", policy=name),), policies=(name,), bound=(name,))
            record(store, number, 200 * (3 - number), each)
    lines = assay("trend", "--days", "500", "--db", path).stdout.decode().splitlines()

    assert max(map(len, lines)) <= 80


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """A database with scans of three days; the rules of the last day are others, and so is the server."""
    path = tmp_path / "edited.db"
    with open_store(str(path)) as store:
        for number, days_ago, rules, server in ((1, 3, "a", "v1.35.0"), (2, 1, "a", "v1.35.0"), (3, 0, "b", "v1.36.0")):
            record(store, number, days_ago, Versioned((A,), rules=rules, cluster=replace(PROD, server_version=server)))
    return path


@dataclass(frozen=True)
class Versioned(Round):
    """A scan whose rules have a digest."""

    rules: str = ""

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        return replace(super().start(number), policy_set_digest=self.rules)


def test_days_with_other_rules_are_marked(assay: Assay, edited: Path) -> None:
    """In every form; the first day has none before it."""
    policies = assay("trend", "--days", "5", "--db", edited).stdout.decode().splitlines()
    days = assay("trend", "--days", "5", "--policy", "replicas", "--db", edited).stdout.decode().splitlines()
    document = assay("trend", "-o", "json", "--db", edited).report
    rows = list(csv.DictReader(io.StringIO(assay("trend", "-o", "csv", "--db", edited).stdout.decode())))

    assert "(rules changed)     ^" in policies
    sentence = next(line for line in policies if line.startswith("The rules changed on the marked days"))
    assert ", compared with the day before: policies," in sentence
    assert f"{day(0)}  1         changed" in days
    assert 1 == sum("changed" in line for line in days[12:16])
    assert "      ^" == policies[9]
    assert [None, [], ["rules", "server"]] == [dig(day, "rulesChanged") for day in as_list(document["days"])]
    assert ["", "false", "true"] == [row["rules_changed"] for row in rows]
    assert 80 >= max(len(line) for line in (*policies, *days) if line != sentence)


def test_the_day_before_the_period_counts(assay: Assay, edited: Path) -> None:
    """So that a period can begin on any day."""
    [day] = as_list(assay("trend", "--days", "1", "-o", "json", "--db", edited).report["days"])
    assert ["rules", "server"] == dig(day, "rulesChanged")


def test_a_terminal_without_blocks_gets_plain_characters(db: Path, tmp_path: Path) -> None:
    """The line is of ASCII."""
    ran = assay_process("trend", "--days", "5", "--db", db, home=tmp_path, variables={"PYTHONIOENCODING": "ascii"})

    assert b"replicas  = #=  1      1" in ran.stdout
    assert 0 == ran.code


def test_json_has_the_days_with_their_tallies(assay: Assay, db: Path) -> None:
    """And the scan of each day, with its findings."""
    document = assay("trend", "-o", "json", "--db", db).report
    days = as_list(document["days"])

    assert "prod" == document["cluster"]
    assert {
        "day": day(0),
        "scanId": "scan-3",
        "findings": 1,
        "new": 0,
        "resolved": 2,
        "rulesChanged": None,
        "digest": "6fd08bb6561c163fae1b0eac769a543c724891a71af5dcfeb64363dcf63a0756",
        "tallies": [
            {
                "language": "ValidatingAdmissionPolicy",
                "policy": "replicas",
                "namespace": "shop",
                "outcome": "violated",
                "dependsOnRequester": False,
                "count": 1,
            }
        ],
    } == days[-1]


def test_an_outsider_computes_the_digest_of_a_day(assay: Assay, db: Path) -> None:
    """From the tallies in the JSON of the trend, with the standard library alone."""
    days = as_list(assay("trend", "-o", "json", "--db", db).report["days"])
    for each in days:
        tallies = [as_object(tally) for tally in as_list(dig(each, "tallies"))]
        rows = [{name: value for name, value in tally.items() if value} for tally in tallies]
        lines = sorted(json.dumps(row, sort_keys=True, separators=(",", ":")) for row in rows)
        assert dig(each, "digest") == hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    assert 1 < len({dig(each, "digest") for each in days})


def test_csv_has_no_formulas(assay: Assay, db: Path) -> None:
    """A name that a spreadsheet would evaluate begins with an apostrophe."""
    ran = assay("trend", "-o", "csv", "--db", db)
    head, *rows = csv.reader(io.StringIO(ran.stdout.decode()))

    assert [
        "day",
        "cluster",
        "language",
        "policy",
        "namespace",
        "outcome",
        "depends_on_requester",
        "count",
        "rules_changed",
    ] == head
    assert [day(1), "prod", "ValidatingAdmissionPolicy", "'=1+1", "'-bank", "violated", "false", "1", ""] in rows
    assert 4 == len(rows)


def test_a_cluster_is_chosen_by_name(assay: Assay, db: Path) -> None:
    """Else the newest scan chooses it, and stderr names it."""
    with open_store(str(db)) as store:
        record(store, 9, 0, Round((A,), cluster=ClusterIdentity("depot")))
    newest = assay("trend", "-o", "json", "--db", db)
    chosen = assay("trend", "-o", "json", "--cluster-name", "prod", "--db", db)

    assert ("depot", "prod") == (newest.report["cluster"], chosen.report["cluster"])
    assert ("the last scan is of depot" in newest.stderr, chosen.stderr) == (True, "")


def test_no_day_is_no_error(assay: Assay, tmp_path: Path) -> None:
    """Stderr names the remedy."""
    path = tmp_path / "narrowed.db"
    with open_store(str(path)) as store:
        record(store, 1, 0, Round((A,), scope=Scope(namespaces=("shop",))))
    ran = assay("trend", "--db", path)

    assert (0, b"") == (ran.code, ran.stdout)
    assert ran.stderr.startswith("No complete scan of the whole cluster since ")


def test_an_unknown_policy_is_a_usage_error(assay: Assay, db: Path) -> None:
    """The message names the command that lists the policies."""
    ran = assay("trend", "--policy", "none", "--db", db)

    assert (2, b"") == (ran.code, ran.stdout)
    assert "No daily tally is of a policy 'none'. `assay trend` lists the policies." in ran.stderr


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """A database in which one problem was fixed after a day, and one after ten days."""
    path = tmp_path / "fixed.db"
    now = datetime.now(UTC)
    with open_store(str(path)) as store:
        for number, days_ago, fixed in ((1, 20, ()), (2, 10, (FORMULA,)), (3, 9, (FORMULA, A))):
            each = fixing((A, FORMULA), fixed)
            scan = replace(each, policies=("replicas", "=1+1"), bound=("replicas", "=1+1"))
            record(store, number, days_ago, scan, now=now)
    return path


def test_times_to_fix_follow_the_tallies(assay: Assay, fixed: Path) -> None:
    """By policy, for the fixes of the shown days."""
    lines = assay("trend", "--db", fixed).stdout.decode().splitlines()
    recent = assay("trend", "--days", "10", "--fixes", "--db", fixed).stdout.decode().splitlines()

    assert ["POLICY    FIXED  MEDIAN  90 %", "=1+1      1      10 d    10 d", "replicas  1      11 d    11 d"] == lines[
        -3:
    ]
    assert "Failing outcomes by policy:" in lines
    assert ["replicas  1      11 d    11 d"] == recent[3:]
    assert recent[0].startswith("Time to fix of the problems fixed since ")


def test_times_to_fix_of_a_policy(assay: Assay, fixed: Path) -> None:
    """Others are left out."""
    lines = assay("trend", "--policy", "rep*", "--db", fixed).stdout.decode().splitlines()

    assert not [line for line in lines if line.startswith("=")]
    assert "replicas  1      11 d    11 d" == lines[-1]


def test_json_follows_its_schema(assay: Assay, db: Path, fixed: Path) -> None:
    """With days and fixes, with fixes alone, and with neither."""
    reports = [
        assay("trend", "-o", "json", *flags, "--db", each).report
        for each in (db, fixed)
        for flags in ((), ("--fixes",))
    ]

    assert [[], [], [], []] == [list(Draft202012Validator(SCHEMA).iter_errors(report)) for report in reports]
    assert [True, False, True, False] == ["days" in report for report in reports]
    assert {
        "language": "ValidatingAdmissionPolicy",
        "policy": "replicas",
        "problems": 1,
        "medianSeconds": 11 * 24 * 3600,
        "p90Seconds": 11 * 24 * 3600,
    } == as_list(reports[2]["fixes"])[1]
    assert reports[2]["fixes"] == reports[3]["fixes"]
    assert ([], day(0)) == (reports[0]["fixes"], reports[0]["until"])


def test_csv_has_tallies_or_fixes(assay: Assay, fixed: Path) -> None:
    """One table in one file."""
    ran = assay("trend", "-o", "csv", "--fixes", "--db", fixed)
    head, *rows = csv.reader(io.StringIO(ran.stdout.decode()))

    assert ["cluster", "since", "until", "language", "policy", "fixed", "median_seconds", "p90_seconds"] == head
    assert [["'=1+1", "1", "864000", "864000"], ["replicas", "1", "950400", "950400"]] == [row[4:] for row in rows]


def test_no_fix_is_no_error(assay: Assay, db: Path) -> None:
    """Stderr states it."""
    ran = assay("trend", "--fixes", "--db", db)

    assert (0, b"") == (ran.code, ran.stdout)
    assert ran.stderr.endswith(f"No scan saw a problem fixed since {day(89)}.\n")
