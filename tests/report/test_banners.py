"""What limits the verdict of a report stands before its numbers: previews, drift, changed rules, gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory

from .pages import main_of, places_of
from .records import partial_record, previewed, small_record
from .test_drift import drifting


def under_other_rules() -> ScanInMemory:
    """The small scan after one with other rules."""
    record = small_record()
    before = replace(record.scan, id="20260301-140000-aa11", policy_set_digest="other")
    return replace(record, comparable=before)


def folder_of(record: ScanInMemory, folder: Path) -> Path:
    """The folder of a record's report."""
    FORMATS["html"].render(document_of(record), folder / "report")
    return folder / "report"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (
            previewed(),
            "<strong>Preview.</strong> Bindings of 3 policies were assumed for this scan: nothing is in force",
        ),
        (
            drifting(),
            '<strong>Drift.</strong> <a href="findings.html#action=change&amp;status=unresolved">1 mutation would change an object</a>',
        ),
        (under_other_rules(), "<strong>Rules changed.</strong> The rules changed since the last comparable scan"),
        (partial_record(), 'aria-label="State of this scan"'),
    ],
)
def test_a_banner_stands_before_the_numbers(record: ScanInMemory, words: str, tmp_path: Path) -> None:
    """The summary has the banner above its first list."""
    before = main_of(folder_of(record, tmp_path) / "index.html").partition("<h2")[0]
    assert words in before


def test_an_ordinary_scan_has_no_banner(tmp_path: Path) -> None:
    """A banner means something because most reports have none."""
    before = main_of(folder_of(small_record(), tmp_path) / "index.html").partition("<h2")[0]
    assert ("banner" in before, "note" in before) == (False, False)


def test_a_preview_is_no_refusal(tmp_path: Path) -> None:
    """Its rows and places are marked, and have no chip of something that would be refused."""
    folder = folder_of(previewed(), tmp_path)
    for html in ((folder / "findings.html").read_text("utf-8").partition("<template")[0], places_of(folder)):
        assert '<i aria-hidden="true">◇</i>Deny</span>' in html
        assert 'class="chip chip-deny"' not in html
