"""CSV that spreadsheets open as text: a cell that would be read as a formula gets a quote before it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from scanner.report.words import visible

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def guarded(text: str) -> str:
    """The text, after a quote if a spreadsheet would take it for a formula or a command."""
    return f"'{text}" if text.lstrip(" \ufeff").startswith(_FORMULA) else text


def write(out: TextIO, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a heading and rows as RFC 4180 describes, with line feeds."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(cell) for cell in row] for row in rows)


def line(cells: Sequence[str]) -> str:
    """Cells as `write` writes them, without a line feed; cells and lines may be joined by commas."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([_cell(cell) for cell in cells])
    return out.getvalue()[:-1]


def _cell(text: str) -> str:
    """The text with escapes for characters that do not print: a terminal that shows the file obeys none of them."""
    return guarded(visible(text, lines=True))
