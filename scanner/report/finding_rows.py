"""The rows of `findings.html`: every problem as one row with its objects, as HTML and as data for the page's script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from markupsafe import Markup

from scanner.model.scan import ProblemFinding, StoredFinding
from scanner.report.ages import age_text
from scanner.report.finding_groups import FindingGroup
from scanner.report.group_files import GroupWriter
from scanner.report.pieces import RowForm
from scanner.report.place_pages import place_path
from scanner.report.problem_facts import FindingOrder
from scanner.report.search_data import RowData, row_text
from scanner.report.site import Site
from scanner.report.templates import NAME, NO_NAME
from scanner.report.words import cut, message_of, minute, object_name, plural, visible, workload_name
from scanner.report.worst_rows import WorstRows

ROW_GROUPS: Final = "rows "
"""The beginning of the names of groups of HTML rows; their order is that of the list."""
_OBJECTS: Final = 200
"""The objects of a row: a problem with more has several rows, so that no page is too large."""
_MESSAGE: Final = 200


class HasOfRow(NamedTuple):
    """The parts that a row has."""

    objects: bool
    owner: bool
    waiver: bool
    history: bool = False


class _Item(NamedTuple):
    """An object of a row: the id and the status of its finding, its name and its message, cut."""

    id: str
    status: str
    name: str
    message: str


class MadeRow(NamedTuple):
    """A row of a problem as HTML on one line, and as data for the script of the list."""

    html: str
    data: str


class RowMaker:
    """Makes the rows of problems; with `histories`, each leads to a page of its problem, too."""

    def __init__(self, site: Site, *, histories: bool = False) -> None:
        self._site = site
        self._histories = histories
        self._row_form = RowForm(site.templates, "problems.html", "problem_row")
        self._item_form = RowForm(site.templates, "problems.html", "object_item")
        self._data = RowData(site)
        provenance = site.document.provenance
        self._end = provenance.finished_at or provenance.started_at

    def rows(self, group: FindingGroup, total: int = 0) -> Iterator[MadeRow]:
        """The rows of a problem: one, or several if it has many objects. `total` is the number of all, if `group` has not all of them."""
        for first in range(0, len(group.findings), _OBJECTS):
            yield self._row(group, first, total or len(group.findings))

    def _row(self, group: FindingGroup, first: int, total: int) -> MadeRow:
        members = group.findings[first : first + _OBJECTS]
        stored = members[0].stored
        finding, triage = stored.finding, self._site.document.triage
        several = total > 1 or bool(workload_name(stored))
        section = self._site.section(finding.policy_key)
        facts, owner = group.facts, triage.owner(stored)
        kind, name = _workload(stored) if several else (finding.kind, object_name(finding))
        shown = _name(kind), _name(name) or NO_NAME, _number(total, first, len(members)) if several else ""
        items = [_item(each) for each in members]
        words = (
            facts.chip,
            str(section.severity),
            facts.status,
            HasOfRow(several, bool(owner), facts.waived, self._histories and bool(stored.problem)),
        )
        texts = (
            stored.id,
            place_path(stored.id),
            *shown[:2],
            _name(section.title) or NO_NAME,
            self._site.policy_path(finding.policy_key),
            _name(owner),
            minute(group.opened_at),
            age_text(group.opened_at, self._end),
            shown[2],
            Markup("".join(map(self._item_html, items))) if several else "",  # noqa: S704 - made by a template
            f"problems/{stored.problem}.html",
        )
        numbers = self._data.facts(
            chip=facts.chip,
            action=facts.action,
            status=facts.status,
            policy=finding.policy_key,
            namespace=finding.namespace,
            owner=owner,
            opened=group.opened_at,
            waived=facts.waived,
        )
        objects = [text for item in items for text in item] if several else []
        data = row_text(numbers, (stored.id, *shown, "" if several else items[0].message, *objects))
        return MadeRow(self._row_form.row(words, texts), data)

    def _item_html(self, item: _Item) -> str:
        return self._item_form.row((item.status,), (item.id, place_path(item.id), item.name, item.message))


class FindingRows:
    """Collects the rows of the list on disk by the rank of their problem, as HTML and as data."""

    def __init__(self, site: Site, spill: GroupWriter) -> None:
        self._site, self._spill = site, spill
        self._maker = RowMaker(site)
        self.worst: Final = WorstRows()

    def add(self, group: FindingGroup) -> None:
        """Keep the rows of a problem until their pages are written."""
        for row in self._maker.rows(group):
            self._spill.add(row_group(group.order), row.html)
            self._keep_worst(group, row.html)
            self._spill.add(data_group(group.order), row.data)

    def _keep_worst(self, group: FindingGroup, row: str) -> None:
        """Keep the row of an open problem for the pages of its policy, its namespace and its owner."""
        if group.facts.status == "resolved":
            return
        stored = group.findings[0].stored
        order = tuple(int(part) for part in group.order)
        self.worst.add("policy", self._site.policies[stored.finding.policy_key], order, row)
        self.worst.add("namespace", stored.finding.namespace, order, row)
        self.worst.add("owner", self._site.document.triage.owner(stored), order, row)


def row_group(order: FindingOrder) -> str:
    """The group of the HTML rows of one rank."""
    return ROW_GROUPS + " ".join(str(int(part)) for part in order)


def data_group(order: FindingOrder) -> str:
    """The group of the data rows of one rank."""
    return "data " + " ".join(str(int(part)) for part in order)


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
