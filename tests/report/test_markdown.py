"""The report as Markdown: what a reader of a job's summary sees first, and what no text of an object can do."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.model.outcome import Gap, GapKind
from scanner.model.scan import ScanRecord, ScanState
from scanner.report import FORMATS
from scanner.report.document import document_of
from scanner.report.markdown import LONGEST

from .records import hostile_record, large_record, partial_record, scan, small_record


def rendered(record: ScanRecord) -> str:
    """The report of a scan."""
    out = io.StringIO()
    FORMATS["markdown"].render(document_of(record), out)
    return out.getvalue()


def test_report_of_a_small_scan(snapshot: SnapshotAssertion) -> None:
    """The report of a small scan equals the recorded one."""
    assert rendered(partial_record()) == snapshot


@pytest.mark.parametrize(("record", "word"), [(small_record(), "Complete"), (partial_record(), "Incomplete")])
def test_the_first_line_is_the_verdict(record: ScanRecord, word: str) -> None:
    """The first word tells whether everything was examined."""
    assert rendered(record).startswith(f"# {word}: ")


def test_a_long_report_ends_with_the_number_of_lines_left_out() -> None:
    """GitHub refuses a longer text."""
    gaps = tuple(Gap(GapKind.OBJECT, f"v1/Pod shop/p-{number}", "unreadable") for number in range(3000))
    whole = large_record(500, policies=400)
    text = rendered(replace(whole, scan=scan(ScanState.INCOMPLETE), gaps=gaps, policies=whole.policies * 2))
    shown = text.count("\n")

    assert LONGEST >= len(text)
    assert text.splitlines()[-1].endswith("left out: GitHub takes at most 65,536 characters.")
    assert 0 < int(text.splitlines()[-1].split(" ")[0].replace(",", "")) < shown + 10_000


def test_no_text_is_markup() -> None:
    """Names and messages keep their letters and lose their meaning, and no line break of theirs ends a row."""
    text = rendered(hostile_record())

    assert [] == [mark for mark in ("<script>", "<img", "\x1b", "\u202e", "[bold red]") if mark in text]
    assert {line.count(" | ") for line in text.splitlines() if line.startswith("| p-")} <= {8}
