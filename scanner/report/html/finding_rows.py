"""The rows of `findings.html`: every problem as one row with its message and its objects, as HTML and as data for the page's script."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlencode

import orjson
from markupsafe import Markup

from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.posture.severity import Severity
from scanner.report.group_files import GroupReader, GroupWriter, file_name
from scanner.report.html.pieces import RowForm
from scanner.report.html.place_pages import place_path
from scanner.report.html.row_data import RowData, row_text
from scanner.report.html.row_files import ListedRow, RowPlace, RowWriter, mark_workloads
from scanner.report.html.site import Site
from scanner.report.html.templates import NAME, NO_NAME
from scanner.report.lists.problem_facts import FindingGroup, order_by_workload, workload_order
from scanner.report.text.names import object_name, workload_name
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import cut, visible
from scanner.report.text.times import age_text, minute
from scanner.report.text.titles import sentence_of

_OBJECTS: Final = 200
"""The objects of a row: a problem with more has several rows, so that no page is too large."""
_MESSAGE: Final = 200


class HasOfRow(NamedTuple):
    """The parts that a row has."""

    objects: bool
    check: bool
    owner: bool
    waiver: bool
    history: bool = False


class _Item(NamedTuple):
    """An object of a row: the id and the status of its finding, its name, and its message unless it is that of the row."""

    id: str
    status: str
    name: str
    message: str


class MadeRow(NamedTuple):
    """A row of a problem as HTML on one line, and as data for the script of the list, with its place in the list."""

    place: RowPlace
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
        self._end = site.document.provenance.ended_at

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
        severity, facts, owner = Severity.of_rank(group.severity), group.facts, triage.owner(stored)
        kind, path = _workload(stored) if several else (finding.kind, object_name(finding))
        number = _number(total, first, len(members)) if several else ""
        message = _message(sentence_of(finding, section.title))
        items = [self._item(each, message, section.title) for each in members] if several else []
        check = section.name_check(finding.check)
        words = (
            facts.chip,
            str(severity),
            facts.status,
            HasOfRow(several, bool(check), bool(owner), facts.waived, self._histories and bool(stored.problem)),
        )
        texts = (
            stored.id,
            place_path(stored.id),
            _name(kind),
            _name(path) or NO_NAME,
            message,
            _name(section.title) or NO_NAME,
            self._site.policy_path(finding.policy_key),
            check,
            _name(owner),
            minute(group.opened_at),
            age_text(group.opened_at, self._end),
            number,
            Markup("".join(map(self._item_html, items))),  # noqa: S704 - made by a template
            f"problems/{stored.problem}.html",
            _object_link(kind, path) if self._histories else "",
        )
        numbers = self._data.facts(
            chip=facts.chip,
            action=facts.action,
            severity=severity,
            status=facts.status,
            policy=finding.policy_key,
            namespace=finding.namespace,
            owner=owner,
            opened=group.opened_at,
            waived=facts.waived,
        )
        objects = [text for item in items for text in item[:3]]
        said = (message, *(item.message for item in items))
        data = row_text(numbers, said, (stored.id, _name(kind), _name(path) or NO_NAME, number, check, *objects))
        place = RowPlace(group.order, workload_order(path, kind), finding.policy_key, stored.problem or stored.id)
        return MadeRow(place, self._row_form.row(words, texts), data)

    def _item(self, each: ProblemFinding, of_row: str, title: str) -> _Item:
        stored = each.stored
        message = _message(sentence_of(stored.finding, title))
        return _Item(
            stored.id,
            stored.status if each.checked else "unchecked",
            _name(f"{stored.finding.kind} {object_name(stored.finding)}"),
            "" if message == of_row else message,
        )

    def _item_html(self, item: _Item) -> str:
        return self._item_form.row((item.status,), (item.id, place_path(item.id), item.name, item.message))


class FindingRows:
    """Collects the rows of the list on disk, as HTML and as data."""

    def __init__(self, site: Site, writer: RowWriter) -> None:
        self._site, self._writer = site, writer
        self._maker = RowMaker(site)
        self.worst: Final = WorstRows()

    def add(self, group: FindingGroup) -> None:
        """Keep the rows of a problem until their pages are written."""
        for row in self._maker.rows(group):
            self._writer.add(row.place, row.html, row.data)
            self._keep_worst(group, row)

    def _keep_worst(self, group: FindingGroup, row: MadeRow) -> None:
        """Keep the row of an open problem for the pages of its policy, its namespace, its owner and its controls."""
        if group.facts.status == "resolved":
            return
        stored = group.findings[0].stored
        self.worst.add("policy", self._site.policies[stored.finding.policy_key], row)
        self.worst.add("namespace", stored.finding.namespace, row)
        self.worst.add("owner", self._site.document.triage.owner(stored), row)
        for control in self._site.document.triage.controls(*stored.finding.severity_key):
            self.worst.add("control", control, row)


def _workload(stored: StoredFinding) -> tuple[str, str]:
    """Kind and name of the workload of a finding, or of its object if the workload is not known."""
    workload, finding = stored.workload, stored.finding
    if workload is None:
        return finding.kind, object_name(finding)
    return workload.kind, "/".join(filter(None, (workload.namespace, workload.name)))


def _object_link(kind: str, path: str) -> str:
    """The page of a workload in `assay serve`."""
    namespace, _, name = path.rpartition("/")
    return f"objects/object.html?{urlencode({'kind': kind, 'namespace': namespace, 'name': name})}"


def _message(text: str) -> str:
    message = visible(text)
    return message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]}…"


def _number(findings: int, first: int, shown: int) -> str:
    if findings > shown:
        return f"objects {first + 1:,} to {first + shown:,} of {findings:,}"
    return plural(findings, "object")


def _name(text: str) -> str:
    return visible(cut(text, NAME))


# The rows of the worst problems of each policy, namespace, owner and control, for the pages about these.

MOST: Final = 10
"""The number of rows that a page shows before it leads to the list of findings."""
_UP: Final = ('href="', 'href="../')
Subject: TypeAlias = Literal["policy", "namespace", "owner", "control"]


class WorstRows:
    """Keeps the rows of the worst problems of each subject; memory grows with the number of subjects alone."""

    def __init__(self) -> None:
        self._kept: defaultdict[str, list[tuple[RowPlace, str]]] = defaultdict(list)

    def add(self, subject: Subject, name: str, row: MadeRow) -> None:
        """Keep a row, if fewer than `MOST` rows of the subject have a lower place."""
        rows = self._kept[_group(subject, name)]
        if len(rows) < MOST or row.place < rows[-1][0]:
            insort(rows, (row.place, row.html), key=lambda kept: kept[0])
            del rows[MOST:]

    def write(self, spill: GroupWriter) -> None:
        """Write what was kept."""
        for group, rows in self._kept.items():
            for place, html in rows:
                spill.add(group, orjson.dumps((tuple(place), html)).decode())


def worst_rows(spilled: GroupReader, subject: Subject, *names: str) -> str:
    """The rows of the worst problems of some policies, namespaces, owners or controls together, as HTML for a page in a folder."""
    lines = [orjson.loads(line) for name in sorted(names) for line in spilled.rows(_group(subject, name))]
    rows = sorted(((RowPlace.of(*place), html) for place, html in lines), key=lambda row: row[0])[:MOST]
    places = [place for place, _ in rows]
    order = order_by_workload([place.order for place in places], [place.workload for place in places], places)
    return move_into_folder(mark_workloads([ListedRow(*rows[each]) for each in order]))


def move_into_folder(rows: Iterable[str]) -> str:
    """Rows of the list as HTML for a page in a folder."""
    return "\n".join(row.replace(*_UP) for row in rows)


def _group(subject: Subject, name: str) -> str:
    return f"worst {subject} {file_name(name)}"
