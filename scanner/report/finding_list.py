"""`findings.html`: every problem of a report as one row, refusals first, its objects folded; a hundred rows a page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from markupsafe import Markup

from scanner.model.scan import ProblemFinding, StoredFinding
from scanner.report.ages import age_text
from scanner.report.chips import CHIPS, STATUSES, chip_of
from scanner.report.finding_groups import FindingGroup, FindingOrder
from scanner.report.frames import Frame, place
from scanner.report.halves import in_halves
from scanner.report.place_pages import place_path
from scanner.report.rows import RowForm
from scanner.report.search_data import SearchData, row_text
from scanner.report.site import Site
from scanner.report.spill import Spill
from scanner.report.templates import NAME, content_hash
from scanner.report.words import cut, message_of, minute, object_name, plural, visible, workload_name

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


class _Item(NamedTuple):
    """An object of a row: the id and the status of its finding, its name and its message, cut."""

    id: str
    status: str
    name: str
    message: str


class FindingList:
    """Collects the rows of the list on disk by their rank, as HTML and as data, and writes its pages and its data."""

    def __init__(self, site: Site, spill: Spill) -> None:
        self._site, self._spill = site, spill
        self._row_form = RowForm(site.templates, "problem_row", template="places.html")
        self._item_form = RowForm(site.templates, "object_item", template="places.html")
        self._sizes: dict[FindingOrder, list[int]] = {}
        self._data = SearchData(site)
        provenance = site.document.provenance
        self._end = provenance.finished_at or provenance.started_at

    def add(self, group: FindingGroup) -> None:
        """Keep the rows of a problem until their pages are written."""
        for first in range(0, len(group.findings), _OBJECTS):
            row, data = self._row(group, first)
            self._spill.add(_group("rows", group.order), row)
            self._spill.add(_group("data", group.order), data)
            self._sizes.setdefault(group.order, []).append(len(row) if row.isascii() else len(row.encode()))

    def _row(self, group: FindingGroup, first: int) -> tuple[str, str]:
        """A row as HTML, and as data."""
        members = group.findings[first : first + _OBJECTS]
        stored = members[0].stored
        finding, triage = stored.finding, self._site.document.triage
        several = len(group.findings) > 1 or bool(workload_name(stored))
        section = self._site.section(finding.policy_key)
        owner, waived = triage.owner(stored), triage.waiver(stored) is not None
        chip = chip_of(finding.outcome, refused=group.refused, action=group.action)
        kind, name = _workload(stored) if several else (finding.kind, object_name(finding))
        shown = _name(kind), _name(name), _number(len(group.findings), first, len(members)) if several else ""
        items = [_item(each) for each in members]
        words = chip, str(section.severity), group.status, HasOfRow(several, bool(owner), waived)
        texts = (
            stored.id,
            place_path(stored.id),
            *shown[:2],
            _name(section.title),
            self._site.policy_path(finding.policy_key),
            _name(owner),
            minute(group.opened_at),
            age_text(group.opened_at, self._end),
            shown[2],
            Markup("".join(map(self._item_html, items))) if several else "",  # noqa: S704 - made by a template
        )
        numbers = self._data.numbers(
            chip=chip,
            action=group.action,
            status=group.status,
            policy=finding.policy_key,
            namespace=finding.namespace,
            owner=owner,
            opened=group.opened_at,
            waived=waived,
        )
        objects = [text for item in items for text in item] if several else []
        data = row_text(numbers, (stored.id, *shown, "" if several else items[0].message, *objects))
        return self._row_form.row(words, texts), data

    def _item_html(self, item: _Item) -> str:
        return self._item_form.row((item.status,), (item.id, place_path(item.id), item.name, item.message))

    def write(self) -> None:
        """Write the data, and the pages in two processes: at least one."""
        orders = sorted(self._sizes)
        self._data.write((row for order in orders for row in self._spill.rows(_group("data", order))), self._end)
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
            yield from self._spill.rows(_group("rows", order))

    def _frame(self) -> str:
        names = ("shown", "rows", "above", "below")
        script = self._site.templates.get_template("findings.js").render()
        return self._site.page(
            FIRST,
            FIRST,
            place("title"),
            summary=_summary(self._site),
            chips=CHIPS,
            statuses=STATUSES,
            script=script,
            script_hash=content_hash(script),
            **{name: place(name) for name in names},
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


def _group(what: str, order: FindingOrder) -> str:
    return " ".join((what, *(str(int(part)) for part in order)))


def _workload(stored: StoredFinding) -> tuple[str, str]:
    """Kind and name of the workload of a finding, or of its object if the workload is not known."""
    workload, finding = stored.workload, stored.finding
    if workload is None:
        return finding.kind, object_name(finding)
    return workload.kind, "/".join(filter(None, (workload.namespace, workload.name)))


def _item(each: ProblemFinding) -> _Item:
    stored = each.stored
    message = visible(message_of(stored.finding).replace("\n", "; "))
    return _Item(
        stored.id,
        stored.status if each.checked else "unchecked",
        _name(f"{stored.finding.kind} {object_name(stored.finding)}"),
        message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}…",
    )


def _number(findings: int, first: int, shown: int) -> str:
    if findings > shown:
        return f"objects {first + 1:,} to {first + shown:,} of {findings:,}"
    return plural(findings, "object")


def _name(text: str) -> str:
    return visible(cut(text, NAME))
