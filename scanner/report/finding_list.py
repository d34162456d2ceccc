"""`findings.html`: every problem of a report as one row, refusals first, its objects folded; a hundred rows a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from scanner.report.chips import CHIPS, STATUSES
from scanner.report.finding_rows import ROW_GROUPS
from scanner.report.group_files import GroupReader
from scanner.report.halves import in_halves
from scanner.report.pieces import Pieces
from scanner.report.search_data import write_data
from scanner.report.site import Site
from scanner.report.templates import content_hash
from scanner.report.words import plural

_INDENT: Final = re.compile(r"^ +", re.MULTILINE)
ROWS: Final = 100
FIRST: Final = "findings.html"
_HEAVIEST: Final = 350_000
_NEAR: Final = 2


class FindingList:
    """Writes the pages of the list, and the data of its script, from collected rows."""

    def __init__(self, site: Site, folder: Path, spilled: GroupReader) -> None:
        self._site, self._folder, self._spilled = site, folder, spilled
        self._groups: Final = spilled.groups(ROW_GROUPS)

    def write(self) -> None:
        """Write the data, and the pages in two processes: at least one."""
        provenance = self._site.document.provenance
        groups = self._spilled.groups("data ")
        rows = (row for group in groups for row in self._spilled.rows(group))
        write_data(self._site, self._folder, rows, provenance.finished_at or provenance.started_at)
        bounds = list(self._bounds())
        in_halves(lambda half: self._write_pages(bounds, half))

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """The first row and the end of each page."""
        first = size = number = 0
        for group in self._groups:
            for weight in self._spilled.sizes(group):
                if number > first and (number - first == ROWS or size + weight > _HEAVIEST):
                    yield first, number
                    first, size = number, 0
                number, size = number + 1, size + weight
        yield first, number

    def _write_pages(self, bounds: list[tuple[int, int]], half: int) -> None:
        """Write one half of the pages; reading passes over the rows of the other half."""
        frame = self._frame()
        middle = (len(bounds) + 1) // 2
        own = bounds[:middle] if half == 0 else bounds[middle:]
        rows = self._rows()
        if half and own:
            next(islice(rows, own[0][0], own[0][0]), None)
        for number, (first, end) in enumerate(own, 1 if half == 0 else middle + 1):
            self._write_page(frame, number, len(bounds), first, list(islice(rows, end - first)), bounds[-1][1])

    def _write_page(self, frame: Pieces, number: int, last: int, first: int, rows: list[str], total: int) -> None:
        shown = f"Rows {first + 1:,} to {first + len(rows):,} of {total:,}" if rows else "No findings"
        page = frame.filled(
            (
                f"Findings, page {number}" if number > 1 else "Findings",
                shown,
                "\n".join(rows),
                _pager(number, last, "Pages, above the list"),
                _pager(number, last, "Pages, below the list"),
            )
        )
        (self._folder / page_path(number)).write_text(page, "utf-8", newline="\n")

    def _rows(self) -> Iterator[str]:
        for group in self._groups:
            yield from self._spilled.rows(group)

    def _frame(self) -> Pieces:
        names = ("shown", "rows", "above", "below")
        script = _INDENT.sub("", self._site.templates.get_template("findings.js").render())
        return self._site.frame(
            FIRST,
            FIRST,
            names,
            summary=summary_of(self._site),
            chips=CHIPS,
            statuses=STATUSES,
            script=script,
            script_hash=content_hash(script),
        )


def page_path(number: int) -> str:
    """The path of a page of the list."""
    return FIRST if number == 1 else f"findings-{number}.html"


def summary_of(site: Site) -> str:
    """The sentence above the list."""
    document = site.document
    problems, total = document.problems, document.findings_total
    waived = document.waivers.findings if document.waivers else 0
    parts = (
        f"{plural(problems.open, 'open problem')} with {plural(total.total, 'finding')}",
        f"{problems.refused:,} would be refused",
        f"{problems.new + problems.reopened:,} new or reopened",
        f"{problems.resolved:,} resolved",
        f"{plural(waived, 'finding')} waived" if waived else "",
    )
    return " · ".join(filter(None, parts))


def _pager(number: int, last: int, label: str) -> str:
    """The links to the first, the last and the near pages; nothing for a single page."""
    if last == 1:
        return ""
    shown = sorted({1, last, *range(max(1, number - _NEAR), min(last, number + _NEAR) + 1)})
    items: list[str] = []
    before = 0
    for page in shown:
        if page > before + 1:
            items.append('<li aria-hidden="true">…</li>')
        current = ' aria-current="page"' if page == number else ""
        items.append(f'<li><a href="{page_path(page)}"{current}><span class="sr">Page </span>{page:,}</a></li>')
        before = page
    return f'<nav class="numbers" aria-label="{label}"><ol>{"".join(items)}</ol></nav>'
