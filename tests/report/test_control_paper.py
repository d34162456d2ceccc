"""The paper of one control: its period, its numbers, its files and its page."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from dataclasses import replace
from datetime import date
from io import BytesIO, StringIO
from itertools import pairwise
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from scanner.errors import UsageError
from scanner.model.scans.finding_period import OpenInterval, PeriodChange, list_events, was_open_at_begin
from scanner.report.paper.control_paper import ControlPaper, find_control, parse_period
from scanner.report.paper.files import write_paper
from scanner.report.paper.page import MOST_FINDINGS
from tests.docs.pages import ROOT
from tests.report.papers import paper_of
from tests.report.records import HOSTILE, hostile_record, large_record, small_record

SCHEMA = json.loads((ROOT / "docs" / "paper.schema.json").read_text("utf-8"))
PERIODS = {
    "2026-Q1": ("2026-01-01", "2026-03-31"),
    "2026-q4": ("2026-10-01", "2026-12-31"),
    "2028-02": ("2028-02-01", "2028-02-29"),
    "2026": ("2026-01-01", "2026-12-31"),
    " 2026-10-01..2026-11-15 ": ("2026-10-01", "2026-11-15"),
    "2026-10-01..2026-10-01": ("2026-10-01", "2026-10-01"),
}


@pytest.mark.parametrize("text", PERIODS)
def test_a_period_is_named_by_quarter_month_year_or_days(text: str) -> None:
    """Both days are included."""
    period = parse_period(text)
    assert PERIODS[text] == (str(period.first), str(period.last))


@pytest.mark.parametrize(
    "text",
    [
        *("", "Q4", "2026-Q5", "2026-13", "0000", "26-Q1", "2026-10-01", "2026-11-01..2026-10-01"),
        *("2026-02-30..2026-03-01", "2026-10-01..", "0001-01-01..9999-12-31", "٢٠٢٦-Q1", "2026-Q1; rm"),
    ],
)
def test_another_period_is_refused(text: str) -> None:
    """With what to write."""
    with pytest.raises(UsageError, match="--period"):
        parse_period(text)


EVENTS = st.sampled_from(["new", "reopened", "continued", "changed"])


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[OpenInterval], int, int]:
    """Intervals of a finding, of which a prune may have deleted some, and the revisions of two scans."""
    ends = sorted(draw(st.sets(st.integers(1, 20), min_size=2, max_size=12)))
    rows: list[OpenInterval] = []
    for since, until in pairwise(ends):
        if draw(st.booleans()):
            touching = bool(rows) and rows[-1].until == since
            event = "changed" if touching else draw(EVENTS)
            rows.append(OpenInterval(since, until, event, draw(st.sampled_from(["", "fixed", "unbound"]))))
    first = draw(st.integers(0, 19))
    last = draw(st.integers(first, 20))
    return [row for row in rows if row.until > first and row.since <= last], first, last


@given(histories())
def test_the_numbers_of_a_finding_add_up(history: tuple[list[OpenInterval], int, int]) -> None:
    """Open at the begin, with every begin and without every end, is open at the end; every change is in the period."""
    rows, first, last = history
    if not rows:
        return
    events = list(list_events(rows, first, last))
    begins = sum(event.change in {PeriodChange.NEW, PeriodChange.REOPENED, PeriodChange.CONTINUED} for event in events)
    ends = len(events) - begins

    assert was_open_at_begin(rows, first) + begins - ends == (rows[-1].until > last)
    assert [] == [event for event in events if not first < event.revision <= last]


def unpacked(paper: ControlPaper) -> dict[str, bytes]:
    """The files of a paper."""
    out = BytesIO()
    write_paper(paper, out)
    with ZipFile(out) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def rows_of(content: bytes) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(StringIO(content.decode())))


def test_every_file_has_its_digest() -> None:
    """In SHA256SUMS, as sha256sum reads it, and on the page."""
    files = unpacked(paper_of(small_record()))
    sums = dict(line.split("  ")[::-1] for line in files.pop("SHA256SUMS").decode().splitlines())

    assert {name: hashlib.sha256(content).hexdigest() for name, content in files.items()} == sums
    page = files["index.html"].decode()
    assert [] == [name for name, digest in sums.items() if digest not in page and name != "index.html"]


def test_the_same_paper_is_the_same_bytes() -> None:
    """No time but that of the paper is in the archive."""
    first, second = BytesIO(), BytesIO()
    for out in (first, second):
        write_paper(paper_of(small_record()), out)
    assert first.getvalue() == second.getvalue()


@pytest.mark.parametrize("before", [True, False])
def test_json_follows_its_schema(*, before: bool) -> None:
    """A scan before the period may be pruned. Every property is in the schema."""
    paper = paper_of(small_record())
    data: Any = json.loads(unpacked(paper if before else replace(paper, before=None))["paper.json"])

    Draft202012Validator.check_schema(SCHEMA)
    assert [] == [error.message for error in Draft202012Validator(SCHEMA).iter_errors(data)]
    assert SCHEMA["properties"].keys() == data.keys()
    for part in ("period", "control", "findings", "waivers", "sample"):
        assert SCHEMA["properties"][part]["properties"].keys() == data[part].keys()


def test_numbers_tables_and_page_agree() -> None:
    """The JSON counts the rows of the CSV files; the page names what it leaves out."""
    paper = paper_of(large_record(500, policies=10, namespaces=20))
    files = unpacked(paper)
    data: Any = json.loads(files["paper.json"])
    found = rows_of(files["findings.csv"])

    assert 500 == len(found)
    assert data["findings"]["openAtEnd"] == sum(row["openAtEnd"] == "true" for row in found)
    assert data["findings"]["new"] == sum(" new" in row["changes"] for row in found)
    assert sum(each["openAtEnd"] for each in data["policies"]) == data["findings"]["openAtEnd"]
    assert [str(paper.missing_days[0]), 10] == [
        data["daysWithoutCompleteScan"][0],
        len(data["daysWithoutCompleteScan"]),
    ]
    assert date(2026, 3, 22) == paper.missing_days[0]
    assert data["sample"]["items"] == [row["id"] for row in rows_of(files["sample.csv"])]
    page = files["index.html"].decode()
    assert f"{MOST_FINDINGS} of 500 shown; <code>findings.csv</code> has all" in page
    assert MOST_FINDINGS == len(re.findall(r"<tr><th scope=\"row\"><code>[0-9a-f]{12}</code>", page))


def test_a_hostile_scan_makes_a_harmless_paper() -> None:
    """Texts are escaped on the page, and no cell is a formula."""
    files = unpacked(paper_of(hostile_record()))
    page = files["index.html"].decode()

    assert "<script" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page
    cells = [
        cell
        for name, content in files.items()
        if name.endswith(".csv") and name != "population.csv"
        for row in csv.reader(StringIO(content.decode()))
        for cell in row
    ]
    assert [] == [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@"))]
    assert HOSTILE[0] in json.dumps([row["message"] for row in rows_of(files["findings.csv"])])


def test_a_control_is_named_by_its_id_or_with_its_framework() -> None:
    """An unknown one ends with where to find them."""
    document = paper_of(small_record()).document
    assert find_control(document, "4").name == find_control(document, "house/4").name == "house/4"
    with pytest.raises(UsageError, match="assay controls"):
        find_control(document, "5")


def test_a_paper_without_anything_says_so() -> None:
    """No earlier scan, no finding, no run, no sample."""
    paper = replace(
        paper_of(small_record()),
        before=None,
        before_id="",
        findings=(),
        runs=(),
        changes=(),
        population=b"",
        sample=None,
    )
    files = unpacked(paper)
    page = files["index.html"].decode()

    assert [] == [*Draft202012Validator(SCHEMA).iter_errors(json.loads(files["paper.json"]))]
    assert {"population.csv", "sample.csv"} & files.keys() == set()
    assert None is json.loads(files["paper.json"])["scans"]["before"]
    for sentence in ("the history begins in the period", "No finding of this control", "there is nothing to draw"):
        assert sentence in page
