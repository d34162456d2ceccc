"""`assay packet` writes the paper of one control over a period."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from scanner.report.document.section_digests import digest_scan
from scanner.store import open_store
from tests.cli.conftest import Assay
from tests.store.made import Round, clock
from tests.store.test_finding_periods import HISTORY

Write = Callable[[str, str], Path]
MAPPING = """\
apiVersion: assay.dev/v1alpha1
kind: ControlMapping
metadata: {name: house}
spec:
  title: House rules
  version: "3"
  controls:
    - {id: "4", title: Few replicas, policies: [{name: replicas}]}
    - {id: "5", title: Labels, policies: [{name: labels}]}
"""


@pytest.fixture
def recorded(assay: Assay, write: Write, home: Path) -> Assay:
    """Four scans, of 1 to 4 March 2026, and a mapping."""
    write("house.yaml", MAPPING)
    with open_store(str(home / "assay.db"), clock) as store:
        for number, findings in enumerate(HISTORY):
            Round(findings).record(store, number)

    def run(*arguments: str | Path) -> Any:
        return assay("packet", "--controls", "house.yaml", "--db", "assay.db", *arguments)

    return run


def files(path: Path) -> dict[str, bytes]:
    """The files of a paper."""
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rows(content: bytes) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(StringIO(content.decode())))


def test_a_paper_has_the_period(recorded: Assay, home: Path) -> None:
    """The scan before it, the last one in it, and what became of the findings of the control alone."""
    ran = recorded("--control", "4", "--period", "2026-03-02..2026-03-04", "--out", "4.zip")
    written = files(home / "4.zip")
    data = json.loads(written["paper.json"])

    assert 0 == ran.code
    assert b"Findings: 2 open at the begin, 2 new, 1 reopened, 3 resolved, 2 open at the end." in ran.stdout
    assert ("scan-0", "scan-3", "house/4") == (
        data["scans"]["before"]["scan"],
        data["scans"]["last"]["scan"],
        "house/4",
    )
    assert {"old", "web", "api", "db"} == {row["name"] for row in rows(written["findings.csv"])}
    assert ["2026-03-02", "2026-03-03", "2026-03-04"] == [row["day"] for row in rows(written["days.csv"])]
    assert [] == data["daysWithoutCompleteScan"]


def test_the_digests_are_those_of_the_report(recorded: Assay, home: Path) -> None:
    """And of every later report of the scan."""
    recorded("--control", "house/4", "--period", "2026-03", "--out", "4.zip")
    data = json.loads(files(home / "4.zip")["paper.json"])
    with open_store(str(home / "assay.db"), clock) as store:
        digests = digest_scan(store.read_scan("scan-3"))

    assert None is data["scans"]["before"]
    assert digests.digest == data["scans"]["last"]["digest"]


def test_a_period_that_goes_on_is_covered_until_today(recorded: Assay, home: Path) -> None:
    """Days that have not come have no missing scan."""
    ran = recorded("--control", "4", "--period", "2026-03-01..2035-01-01", "--out", "4.zip")
    data = json.loads(files(home / "4.zip")["paper.json"])

    assert 0 == ran.code
    assert data["madeAt"][:10] >= data["daysWithoutCompleteScan"][-1]
    assert b"this paper covers it until" in files(home / "4.zip")["index.html"]


REFUSED = {
    "an unknown control": (["--control", "9", "--period", "2026-03"], "assay controls"),
    "another period": (["--control", "4", "--period", "March"], "2026-Q4"),
    "a period without a scan": (["--control", "4", "--period", "2025-Q1"], "no scan of prod ended from 2025-01-01"),
    "a period before the last scan": (["--control", "4", "--period", "2026-04"], "no scan of prod ended"),
    "a seed of several lines": (["--control", "4", "--period", "2026-03", "--seed", "a\nb"], "--seed"),
    "an unknown cluster": (["--control", "4", "--period", "2026-03", "--cluster-name", "nowhere"], "nowhere"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_paper_is_refused(recorded: Assay, home: Path, name: str) -> None:
    """With exit code 2, a sentence, and no file."""
    arguments, words = REFUSED[name]
    ran = recorded(*arguments, "--out", "4.zip")

    assert 2 == ran.code
    assert words in ran.stderr
    assert not (home / "4.zip").exists()


def test_a_paper_is_never_replaced(recorded: Assay, home: Path) -> None:
    """An audit file that changes is none."""
    (home / "4.zip").write_text("kept")
    ran = recorded("--control", "4", "--period", "2026-03", "--out", "4.zip")

    assert (2, "kept") == (ran.code, (home / "4.zip").read_text())
    assert "the file exists" in ran.stderr


def test_without_a_mapping_there_is_no_control(recorded: Assay, assay: Assay) -> None:
    """The sentence names the flag."""
    ran = assay("packet", "--control", "4", "--period", "2026-03", "--out", "4.zip", "--db", "assay.db")
    assert 2 == ran.code
    assert "--controls" in ran.stderr


def test_the_sample_has_what_the_control_evaluated(recorded: Assay, home: Path) -> None:
    """Objects of the last scan, with their outcomes."""
    recorded("--control", "4", "--period", "2026-03", "--out", "4.zip", "--n", "1")
    written = files(home / "4.zip")

    assert [("api", "failed"), ("db", "failed")] == [
        (row["name"], row["outcome"]) for row in rows(written["population.csv"])
    ]
    assert 1 == len(rows(written["sample.csv"]))
