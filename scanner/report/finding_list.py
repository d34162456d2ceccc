"""`findings.html`: every problem of a report as one row, refusals first, its objects folded; a hundred rows a page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from markupsafe import Markup

from scanner.model.scan import ProblemFinding
from scanner.report.ages import age_text
from scanner.report.finding_groups import FindingGroup
from scanner.report.frames import Frame, place
from scanner.report.halves import in_halves
from scanner.report.place_pages import place_path
from scanner.report.rows import RowForm
from scanner.report.site import Site
from scanner.report.spill import Spill
from scanner.report.templates import NAME
from scanner.report.words import cut, message_of, minute, object_name, plural, result_word, visible, workload_name

ROWS: Final = 100
FIRST: Final = "findings.html"
_HEAVIEST: Final = 350_000
_OBJECTS: Final = 200
"""The objects of a row: a problem with more has several rows, so that no page is too large."""
_MESSAGE: Final = 200
_NEAR: Final = 2


class HasOfRow(NamedTuple):
    """The parts that a row has."""

    objects: bool
    owner: bool
    waiver: bool


class FindingList:
    """Collects the rows of the list on disk by their rank, and writes its pages."""

    def __init__(self, site: Site, spill: Spill) -> None:
        self._site, self._spill = site, spill
        self._row_form = RowForm(site.templates, "problem_row", template="places.html")
        self._item_form = RowForm(site.templates, "object_item", template="places.html")
        self._sizes: dict[tuple[int, bool, int, int], list[int]] = {}
        provenance = site.document.provenance
        self._end = provenance.finished_at or provenance.started_at

    def add(self, group: FindingGroup) -> None:
        """Keep the rows of a problem until their pages are written."""
        for first in range(0, len(group.findings), _OBJECTS):
            row = self._row(group, first)
            self._spill.add(_group(group.order), row)
            self._sizes.setdefault(group.order, []).append(len(row.encode()))

    def _row(self, group: FindingGroup, first: int) -> str:
        members = group.findings[first : first + _OBJECTS]
        stored = members[0].stored
        finding, triage = stored.finding, self._site.document.triage
        workload = workload_name(stored)
        several = len(group.findings) > 1 or bool(workload)
        section = self._site.section(finding.policy_key)
        owner = triage.owner(stored)
        has = HasOfRow(several, bool(owner), triage.waiver(stored) is not None)
        words = result_word(finding.outcome), group.refused, group.action, str(section.severity), group.status, has
        kind, name = finding.kind, object_name(finding)
        if several and stored.workload:
            kind = stored.workload.kind
            name = "/".join(filter(None, (stored.workload.namespace, stored.workload.name)))
        texts = (
            stored.id,
            place_path(stored.id),
            _name(kind),
            _name(name),
            _name(section.title),
            self._site.policy_path(finding.policy_key),
            _name(owner),
            minute(group.opened_at),
            age_text(group.opened_at, self._end),
            _number(len(group.findings), first, len(members)),
            *([] if not several else [Markup("".join(map(self._item, members)))]),  # noqa: S704 - made by a template
        )
        return self._row_form.row(words, texts if several else (*texts, ""))

    def _item(self, each: ProblemFinding) -> str:
        stored = each.stored
        finding = stored.finding
        message = visible(message_of(finding).replace("\n", "; "))
        texts = (
            stored.id,
            place_path(stored.id),
            _name(f"{finding.kind} {object_name(finding)}"),
            message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}…",
        )
        return self._item_form.row((stored.status if each.checked else "unchecked",), texts)

    def write(self) -> None:
        """Write the pages, at least one, in two processes."""
        self._spill.flush()
        bounds = list(self._bounds())
        in_halves(lambda half: self._write_pages(bounds, half))

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """The first row and the end of each page."""
        first = size = number = 0
        for order in sorted(self._sizes):
            for weight in self._sizes[order]:
                if number > first and (number - first == ROWS or size + weight > _HEAVIEST):
                    yield first, number
                    first, size = number, 0
                number, size = number + 1, size + weight
        yield first, number

    def _write_pages(self, bounds: list[tuple[int, int]], half: int) -> None:
        """Write one half of the pages; reading passes over the rows of the other half."""
        frame = Frame(self._frame())
        middle = (len(bounds) + 1) // 2
        own = bounds[:middle] if half == 0 else bounds[middle:]
        rows = self._rows()
        if half and own:
            next(islice(rows, own[0][0], own[0][0]), None)
        for number, (first, end) in enumerate(own, 1 if half == 0 else middle + 1):
            self._write_page(frame, number, len(bounds), first, list(islice(rows, end - first)), bounds[-1][1])

    def _write_page(self, frame: Frame, number: int, last: int, first: int, rows: list[str], total: int) -> None:
        shown = f"Rows {first + 1:,} to {first + len(rows):,} of {total:,}" if rows else "No findings"
        page = frame.filled(
            {
                "title": f"Findings, page {number}" if number > 1 else "Findings",
                "shown": shown,
                "rows": "\n".join(rows),
                "above": _pager(number, last, "Pages, above the list"),
                "below": _pager(number, last, "Pages, below the list"),
            }
        )
        (self._site.folder / page_path(number)).write_text(page, "utf-8", newline="\n")

    def _rows(self) -> Iterator[str]:
        for order in sorted(self._sizes):
            yield from self._spill.rows(_group(order))

    def _frame(self) -> str:
        names = ("shown", "rows", "above", "below")
        return self._site.page(
            FIRST, FIRST, place("title"), summary=_summary(self._site), **{name: place(name) for name in names}
        )


def page_path(number: int) -> str:
    """The path of a page of the list."""
    return FIRST if number == 1 else f"findings-{number}.html"


def _summary(site: Site) -> str:
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


def _group(order: tuple[int, bool, int, int]) -> str:
    return "rows " + " ".join(map(str, map(int, order)))


def _number(findings: int, first: int, shown: int) -> str:
    if findings > shown:
        return f"objects {first + 1:,} to {first + shown:,} of {findings:,}"
    return plural(findings, "object")


def _name(text: str) -> str:
    return visible(cut(text, NAME))
