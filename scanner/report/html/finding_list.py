"""`findings.html`: every problem of a report as one row, those of a workload together, the worst first; a hundred rows a page."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from scanner.report.html.halves import work_in_halves
from scanner.report.html.pieces import Pieces
from scanner.report.html.row_data import write_data
from scanner.report.html.row_files import ListedRow, RowReader, mark_workloads
from scanner.report.html.site import Batch, Site, byte_size, split_pages
from scanner.report.html.templates import content_hash
from scanner.report.lists.problem_facts import CHIPS, STATUSES
from scanner.report.text.numbers import plural

_INDENT: Final = re.compile(r"^ +", re.MULTILINE)
ROWS: Final = 100
FIRST: Final = "findings.html"
_NEAR: Final = 2


class FindingList:
    """Writes the pages of the list, and the data of its script, from collected rows."""

    def __init__(self, site: Site, folder: Path, rows: RowReader) -> None:
        self._site, self._folder, self._rows = site, folder, rows

    def write(self) -> None:
        """Write the data, and the pages in two processes: at least one."""
        write_data(self._site, self._folder, self._rows.data(), self._site.document.provenance.ended_at)
        work_in_halves(self._write_pages)

    def _pages(self) -> Iterator[Batch[ListedRow]]:
        return split_pages(self._rows.html(), lambda row: byte_size(row.html), most=ROWS)

    def _write_pages(self, half: int) -> None:
        """Write every second page: both processes read all rows."""
        frame = self._frame()
        # Each page names the number of the last one, so all rows are read once before the first page is written.
        last = deque(self._pages(), maxlen=1)[0]
        for page in self._pages():
            if page.number % 2 == half:
                self._write_page(frame, page, last)

    def _write_page(self, frame: Pieces, page: Batch[ListedRow], last: Batch[ListedRow]) -> None:
        number = page.number
        shown = f"Rows {page.first:,} to {page.last:,} of {last.last:,}" if page.rows else "No findings"
        texts = (
            f"Findings, page {number}" if number > 1 else "Findings",
            shown,
            "\n".join(mark_workloads(page.rows)),
            _pager(number, last.number, "Pages, above the list"),
            _pager(number, last.number, "Pages, below the list"),
        )
        (self._folder / page_path(number)).write_text(frame.fill(texts), "utf-8", newline="\n")

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
        f"the pods of {problems.pods_refused:,} would be refused" if problems.pods_refused else "",
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
