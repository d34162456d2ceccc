"""Clocks that differed when a scan began: a note in every form of the report, and a metric."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from scanner.model.scans.method import ClockDifferences, Method
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.table import render
from tests.report.in_memory import ScanInMemory

from .pages import main_of
from .records import small_record
from .test_openmetrics import rendered, samples

NOTE = (
    "The clocks differed by more than five minutes when the scan began: {own} on the machine of the scan, {server} on the API server, "
    "{database} in PostgreSQL. The scan is dated by the latest of them. Correct the clocks that are wrong."
)
DIFFERENT = ClockDifferences(api_server=7200, database=-60)
METRIC = "assay_scan_clock_difference_seconds"


def record_with(clocks: ClockDifferences) -> ScanInMemory:
    """The small scan with these differences of its clocks."""
    return replace(small_record(), method=replace(small_record().method or Method(), clocks=clocks))


def note() -> str:
    """The note about the different clocks of the small scan, which the API server dates."""
    started = small_record().scan.started_at
    times = {"own": -7200, "server": 0, "database": -7260}
    shown = {name: f"{started + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S} UTC" for name, seconds in times.items()}
    return NOTE.format(**shown)


def table(clocks: ClockDifferences) -> str:
    """The summary for a terminal."""
    out = io.StringIO()
    render(document_of(record_with(clocks)), out, environ={})
    return out.getvalue()


def notes_in_json(clocks: ClockDifferences) -> list[str]:
    """The notes of the JSON report."""
    out = io.BytesIO()
    FORMATS["json"].render(document_of(record_with(clocks)), out)
    notes: list[str] = orjson.loads(out.getvalue())["provenance"]["notes"]
    return notes


def test_different_clocks_are_a_note_on_the_terminal() -> None:
    """It follows the date of the scan."""
    assert note() == table(DIFFERENT).splitlines()[1]


def test_different_clocks_are_a_note_in_json() -> None:
    """It is the first one."""
    assert note() == notes_in_json(DIFFERENT)[0]


@pytest.mark.parametrize("page", ["index.html", "method.html"])
def test_different_clocks_are_a_note_in_html(page: str, tmp_path: Path) -> None:
    """On the summary, and on the page about the method."""
    FORMATS["html"].render(document_of(record_with(DIFFERENT)), tmp_path / "report")
    assert note() in main_of(tmp_path / "report" / page)


@pytest.mark.parametrize("clocks", [ClockDifferences(), ClockDifferences(-300, 0)])
def test_clocks_that_agree_are_no_note(clocks: ClockDifferences) -> None:
    """Nor are clocks that a scan does not have."""
    assert ("clock" in table(clocks), [each for each in notes_in_json(clocks) if "clock" in each]) == (False, [])


def test_a_note_names_the_clocks_that_a_scan_had() -> None:
    """A scan into a file has two."""
    assert "PostgreSQL" not in notes_in_json(ClockDifferences(api_server=301))[0]


def test_the_differences_of_the_clocks_are_in_json() -> None:
    """A clock that the scan does not have is null."""
    out = io.BytesIO()
    FORMATS["json"].render(document_of(record_with(ClockDifferences(api_server=-3))), out)
    assert {"apiServer": -3, "database": None} == orjson.loads(out.getvalue())["method"]["clocks"]


@pytest.mark.parametrize(
    ("clocks", "metric"),
    [
        (DIFFERENT, {("apiServer",): 7200, ("database",): -60}),
        (ClockDifferences(api_server=0), {("apiServer",): 0}),
        (ClockDifferences(), {}),
    ],
)
def test_the_differences_of_the_clocks_are_a_metric(
    clocks: ClockDifferences, metric: dict[tuple[str, ...], float]
) -> None:
    """Also those of clocks that agree, so that an alert has a value."""
    assert metric == samples(rendered(record_with(clocks)), METRIC)


def test_a_scan_of_an_older_version_has_no_differences() -> None:
    """It did not compare its clocks."""
    assert {} == samples(rendered(replace(small_record(), method=None)), METRIC)
