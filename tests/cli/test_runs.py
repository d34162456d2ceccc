"""`assay runs`: the run register, and the completeness sheet of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scanner.report.runs.json import VERSION
from scanner.store import open_store
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map
from tests.report.test_json import strict

Write = Callable[[str, str], Path]
DOCS = Path(__file__).parents[2] / "docs"
SCHEMAS = {name: json.loads((DOCS / f"{name}.schema.json").read_text("utf-8")) for name in ("runs", "run")}
TODAY = datetime.combine(datetime.now(UTC), time(2, 17), UTC)
FIRST = TODAY - timedelta(days=6)
"""The first of the expected runs, long enough ago."""
NIGHTLY = ("--expect", "17 2 * * *", "--db", "assay.db")


def ended(started: datetime, exit_code: int, reason: str = "", name: str = "prod") -> None:
    """Record a run without a scan."""
    with open_store("assay.db", lambda: started) as store:
        store.end_run(store.begin_run(name, ("assay", "scan")), exit_code=exit_code, reason=reason)


@pytest.fixture
def nights(home: Path) -> None:
    """Four nights: in time, failed and repeated, missed, late."""
    ended(FIRST + timedelta(seconds=9), 0)
    ended(FIRST + timedelta(days=1), 4, "https://10.0.0.1:6443 cannot be reached (Connection refused).")
    ended(FIRST + timedelta(days=1, minutes=1), 0)
    ended(FIRST + timedelta(days=3, minutes=25), 0)


def checked(name: str, out: bytes) -> dict[str, Any]:
    """A document that follows its schema, and has no property besides."""
    document: dict[str, Any] = json.loads(out)
    Draft202012Validator(strict(SCHEMAS[name])).validate(document)
    return document


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas(name: str) -> None:
    """They have the version of the documents."""
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert VERSION == SCHEMAS[name]["properties"]["schemaVersion"]["const"]


def test_every_expected_run_has_a_state(assay: Assay, nights: None) -> None:
    """The first recorded run begins the register; the entries have the newest first."""
    ran = assay("runs", *NIGHTLY, "-o", "json")
    document = checked("runs", ran.stdout)
    entries = document["runs"][::-1]

    assert 0 == ran.code
    assert ["complete", "complete", "failed", "missed", "late"] == [entry["state"] for entry in entries[:5]]
    assert [1, 3, 2, None, 4] == [entry["run"] and entry["run"]["number"] for entry in entries[:5]]
    assert [1500] == [entry["lateSeconds"] for entry in entries if entry["lateSeconds"]]
    assert {"missed": 3, "late": 1, "complete": 2} == {
        state: min(number, 3) for state, number in document["expected"].items() if number and state != "due"
    }
    assert 1 == document["other"]["failed"]


def test_the_sentences_of_the_register_fit_a_narrow_terminal(
    assay: Assay, nights: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are as wide as their columns."""
    monkeypatch.setenv("COLUMNS", "50")
    lines = assay("runs", "--limit", "1", "--db", "assay.db").stdout.decode().splitlines()
    assert 50 >= max(map(len, lines[lines.index("") :]))


def test_the_register_fits_a_terminal(assay: Assay, nights: None) -> None:
    """Reasons are wrapped below their run."""
    out = assay("runs", *NIGHTLY, "--tolerance", "30m").stdout.decode()

    assert 80 >= max(map(len, out.splitlines()))
    assert f"{FIRST + timedelta(days=3):%Y-%m-%d} 02:17Z  complete" in out
    assert "    https://10.0.0.1:6443 cannot be reached (Connection refused)\n" in out
    assert "A run is late after 30 min. 1 run besides the schedule: 1 failed." in " ".join(out.split())


def test_a_period_begins_with_its_date(assay: Assay, nights: None) -> None:
    """At its beginning in UTC; runs and times before it are left out."""
    since = f"{FIRST + timedelta(days=3):%Y-%m-%d}"
    document = checked("runs", assay("runs", *NIGHTLY, "--since", since, "-o", "json").stdout)

    assert (f"{since}T00:00:00Z", "late", 4) == (
        document["since"],
        document["runs"][-1]["state"],
        document["runs"][-1]["run"]["number"],
    )


def test_a_period_may_begin_with_a_time(assay: Assay, nights: None) -> None:
    """In any zone."""
    since = f"{FIRST + timedelta(hours=2):%Y-%m-%dT%H:%M:%S}+02:00"
    document = checked("runs", assay("runs", *NIGHTLY, "--since", since, "-o", "json").stdout)

    assert (f"{FIRST:%Y-%m-%dT%H:%M:%SZ}", 1) == (document["since"], document["runs"][-1]["run"]["number"])


def test_without_a_schedule_runs_are_listed_as_recorded(assay: Assay, nights: None) -> None:
    """The newest first, at most the requested number; the summary counts all."""
    out = assay("runs", "--limit", "2", "--db", "assay.db").stdout.decode()

    assert ["4", "3"] == [line.split()[1] for line in out.splitlines()[1:3]]
    assert "4 runs: 3 complete, 1 failed. The newest 2 of 4 are listed; see --limit." in out


def test_a_database_without_runs_has_nothing_to_list(assay: Assay, home: Path) -> None:
    """It is no error, and the message names the command to run."""
    open_store("assay.db").close()
    ran = assay("runs", *NIGHTLY)

    assert (0, b"", "The database has no runs in this period. Run: assay scan\n") == (ran.code, ran.stdout, ran.stderr)


def test_a_schedule_without_any_run_is_missed(assay: Assay, home: Path) -> None:
    """From the date that the user gives."""
    open_store("assay.db").close()
    document = checked("runs", assay("runs", *NIGHTLY, "--since", f"{FIRST:%Y-%m-%d}", "-o", "json").stdout)

    assert ("missed", None) == (document["runs"][-1]["state"], document["runs"][-1]["run"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--expect", "61 * * * *"), "schedule '61 * * * *': minute '61' is not between 0 and 59"),
        (("--expect", "TZ=UTC 1 * * * *"), "Name the zone with --time-zone"),
        (("--expect", "@daily", "--time-zone", "Europe/Berlim"), "--time-zone Europe/Berlim: there is no such zone"),
        (("--expect", "@daily", "--time-zone", "../etc"), "--time-zone ../etc: there is no such zone"),
        (("--time-zone", "UTC"), "--time-zone needs --expect"),
        (("--tolerance", "5m"), "--tolerance needs --expect"),
        (("--since", "yesterday"), "--since yesterday: write a date such as 2026-03-31"),
        (("--since", "2026-01-31T10:00:00"), "a time needs a zone"),
        (("--since", "20260131"), "a time needs a zone"),
        (("--expect", "* * * * *", "--since", "2020-01-01"), "more than 100,000 times"),
        (("--expect", "@daily", "--cluster-name", "prud"), "There is no run of cluster 'prud'"),
        (("1", "--expect", "@daily"), "RUN 1 cannot be combined with --expect"),
        (("9",), "There is no run 9 in this database"),
    ],
)
def test_usage_errors_name_the_remedy(assay: Assay, nights: None, flags: tuple[str, ...], message: str) -> None:
    """With exit code 2, and nothing on standard output."""
    ran = assay("runs", *flags, "--db", "assay.db")

    assert (2, b"") == (ran.code, ran.stdout)
    assert message in ran.stderr


def test_a_schedule_expects_runs_of_one_cluster(assay: Assay, write: Write) -> None:
    """With runs of several, the cluster is to be named."""
    write("a/all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    for name in ("east", "west"):
        assay("scan", "--from", "a", "--cluster-name", name, "--db", "assay.db", "-q")
    several = assay("runs", *NIGHTLY)
    one = checked("runs", assay("runs", *NIGHTLY, "--cluster-name", "west", "-o", "json").stdout)

    assert 2 == several.code
    assert "the database has runs of east, west" in several.stderr
    assert ["west"] == [entry["run"]["name"] for entry in one["runs"] if entry["run"]]


def test_a_sheet_has_the_numbers_of_each_kind(assay: Assay, write: Write) -> None:
    """Objects of excluded namespaces are listed and not examined; files have no server to compare with."""
    write("cluster/all.yaml", f"{config_map('one')}---\n{config_map('two')}---\n{bound('strict')}")
    write("cluster/out.yaml", config_map("three", namespace="out"))
    flags = ("--exclude-namespace", "out", "--skip-kind", "secrets")
    assay("scan", "--from", "cluster", *flags, "--db", "assay.db", "-q")
    document = checked("run", assay("runs", "1", "--db", "assay.db", "-o", "json").stdout)
    [kind] = document["kinds"]

    assert ("ConfigMap", 3, 2, 1) == (kind["kind"], kind["listed"], kind["examined"], kind["excluded"])
    assert (["secrets"], "notCompared") == (document["method"]["scope"]["skipKinds"], kind["agreement"])
    assert "files have no API server that counts objects" == document["comparison"]["whyNot"]
    out = assay("runs", "1", "--db", "assay.db").stdout.decode()
    assert "v1/ConfigMap             3         2         1       -     -      1" in out
    assert "Command        assay scan --from cluster --exclude-namespace out --skip-kind" in out


def test_a_sheet_keeps_to_the_width_of_a_narrow_terminal(
    assay: Assay, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number of a kind stands after its noun, because the columns do not fit."""
    write("cluster/all.yaml", f"{config_map('one')}---\n{bound('strict')}")
    assay("scan", "--from", "cluster", "--db", "assay.db", "-q")
    monkeypatch.setenv("COLUMNS", "60")
    lines = assay("runs", "1", "--db", "assay.db").stdout.decode().splitlines()

    assert [] == [line for line in lines if len(line) > 60 and " " in line.strip()]
    assert "v1/ConfigMap" in lines
    assert "  listed 1, examined 1, excluded 0, pages 1," in "\n".join(lines)


def test_a_run_without_a_scan_has_a_sheet(assay: Assay, nights: None) -> None:
    """With the reason, and the command that failed."""
    ran = assay("runs", "2", "--db", "assay.db")
    document = checked("run", assay("runs", "2", "--db", "assay.db", "-o", "json").stdout)

    assert ("failed", None, []) == (document["state"], document["scan"], document["kinds"])
    assert "Run 2 of prod: failed (https://10.0.0.1:6443 cannot be reached (Connection" in ran.stdout.decode()
    assert "Scan           none began\n" in ran.stdout.decode()


def test_a_run_that_still_runs_has_a_sheet(assay: Assay, home: Path) -> None:
    """Without the numbers of its scan."""
    with open_store("assay.db") as store:
        store.begin_run("prod")

    assert "running" == checked("run", assay("runs", "1", "--db", "assay.db", "-o", "json").stdout)["state"]
