"""The words of a state or an outcome are the same in every format."""

from __future__ import annotations

import json
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest

from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.formats.table import render as render_table
from scanner.report.text.screen import Screen
from tests.report.in_memory import ScanInMemory

from .pages import main_of
from .records import partial_record, small_record


def as_json(record: ScanInMemory) -> dict[str, Any]:
    """The JSON report."""
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)
    read: dict[str, Any] = json.loads(out.getvalue())
    return read


def as_text(name: str, record: ScanInMemory) -> str:
    """The report in a format of text."""
    out = StringIO()
    FORMATS[name].render(document_of(record), out)
    return out.getvalue()


def as_html(record: ScanInMemory, folder: Path) -> str:
    """The main part of the first page."""
    FORMATS["html"].render(document_of(record), folder / "report")
    return main_of(folder / "report" / "index.html")


def test_an_incomplete_scan_is_incomplete_everywhere(tmp_path: Path) -> None:
    """No format calls it partial."""
    record = partial_record()
    assert "incomplete" == as_json(record)["provenance"]["state"]
    for text in (as_text("table", record), as_text("markdown", record), as_html(record, tmp_path)):
        assert "incomplete" in text.lower()
        assert "partial scan" not in text.lower()


@pytest.mark.parametrize("word", ["violated", "errored", "passed", "skipped"])
def test_outcomes_have_the_same_words_everywhere(word: str, tmp_path: Path) -> None:
    """JSON has them as keys, pages and tables as heads."""
    record, table = small_record(), StringIO()
    render_table(document_of(record), table, screen=Screen(wide=True))
    assert [] != [key for key in as_json(record)["totals"] if key.startswith(word)]
    assert word in as_html(record, tmp_path).lower()
    assert word in table.getvalue().lower()
