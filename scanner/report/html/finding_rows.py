"""The rows of `findings.html`: every problem as one row with its objects, as HTML and as data for the page's script."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import orjson
from markupsafe import Markup

from scanner.model.policy import ACTIONS, PolicyKey
from scanner.model.scans.scan import ProblemFinding, StoredFinding
from scanner.posture.severity import Severity
from scanner.report.group_files import GroupReader, GroupWriter, file_name
from scanner.report.html.pieces import RowForm
from scanner.report.html.place_pages import place_path
from scanner.report.html.site import Site
from scanner.report.html.templates import NAME, NO_NAME
from scanner.report.lists.problem_facts import CHIPS, STATUSES, FindingGroup, FindingOrder
from scanner.report.text.names import object_name, workload_name
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import cut, visible
from scanner.report.text.times import age_text, minute, utc
from scanner.report.text.titles import message_of

# The data of `findings.html` for its script: files of rows that the page loads when a reader filters or sorts.
#
# Each file calls a function of the page with numbers and texts. The texts are one string, with a line for each row
# and tabs between its parts: browsers read one long string much faster than many short ones.

DATA_FOLDER: Final = "data"
SIZE: Final = 4_000
"""The rows of a file."""
CHOICES: Final = (*ACTIONS, "")
"""The strictest actions by their numbers in the data."""
_MINUTE: Final = 60


class RowFacts(NamedTuple):
    """The facts by which the script filters and sorts a row, in its order: numbers, but for namespace and owner; `opened` in minutes."""

    chip: int
    action: int
    severity: int
    status: int
    policy: int
    opened: int
    waived: int
    namespace: str
    owner: str


class RowData:
    """The data of rows, as lines; namespaces and owners get their numbers when all rows are known."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._policies = {key: number for number, key in enumerate(site.sections)}

    def facts(
        self,
        *,
        chip: str,
        action: str,
        severity: Severity,
        status: str,
        policy: PolicyKey,
        namespace: str,
        owner: str,
        opened: datetime,
        waived: bool,
    ) -> RowFacts:
        """The facts of a row."""
        return RowFacts(
            CHIPS.index(chip),
            CHOICES.index(action),
            severity.rank,
            STATUSES.index(status),
            self._policies[policy],
            minutes(opened),
            int(waived),
            _name_or_title(namespace),
            _name_or_title(owner),
        )


def row_text(facts: RowFacts, texts: Iterable[str]) -> str:
    """A row as one line; the texts have no tabs and no line ends."""
    numbers = ",".join(map(str, facts[:-2]))
    return "\t".join((numbers, facts.namespace, facts.owner, *texts))


def write_data(site: Site, into: Path, rows: Iterator[str], end: datetime) -> None:
    """Write all files, given the lines of `row_text` in the order of the list."""
    folder = into / DATA_FOLDER
    folder.mkdir()
    namespaces, owners = dict[str, int](), dict[str, int]()
    number = 0
    while portion := list(islice(rows, SIZE)):
        (folder / f"{number:04}.js").write_bytes(_file(number, portion, namespaces, owners))
        number += 1
    document = site.document
    index = {
        "policies": [
            (_name_or_title(document.title(key)), _name_or_title(section.title) or NO_NAME, site.policy_path(key))
            for key, section in site.sections.items()
        ],
        "namespaces": list(namespaces),
        "owners": list(owners),
        "severities": list(map(str, Severity)),
        "actions": CHOICES,
        "statuses": STATUSES,
        "chips": CHIPS,
        "chunks": number,
        "size": SIZE,
        "end": minutes(end),
    }
    (folder / "index.js").write_bytes(b"assay.index(" + orjson.dumps(index) + b")\n")


def minutes(moment: datetime) -> int:
    """The minutes since 1970."""
    return int(utc(moment).timestamp()) // _MINUTE


def _name_or_title(text: str) -> str:
    return visible(cut(text, NAME))


def _file(number: int, rows: Iterable[str], namespaces: dict[str, int], owners: dict[str, int]) -> bytes:
    """The script of a file of rows; new namespaces and owners get the next numbers."""
    numbers, texts = [], []
    for row in rows:
        known, namespace, owner, text = row.split("\t", 3)
        place = namespaces.setdefault(namespace, len(namespaces)), owners.setdefault(owner, len(owners))
        numbers.append(f"{known},{place[0]},{place[1]}")
        texts.append(text)
    return b"assay.rows(%d,[%s],%s)\n" % (number, ",".join(numbers).encode(), orjson.dumps("\n".join(texts)))


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
        kind, name = _workload(stored) if several else (finding.kind, object_name(finding))
        shown = _name(kind), _name(name) or NO_NAME, _number(total, first, len(members)) if several else ""
        items = [_item(each) for each in members]
        words = (
            facts.chip,
            str(severity),
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
            severity=severity,
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
        """Keep the row of an open problem for the pages of its policy, its namespace, its owner and its controls."""
        if group.facts.status == "resolved":
            return
        stored = group.findings[0].stored
        order = tuple(int(part) for part in group.order)
        self.worst.add("policy", self._site.policies[stored.finding.policy_key], order, row)
        self.worst.add("namespace", stored.finding.namespace, order, row)
        self.worst.add("owner", self._site.document.triage.owner(stored), order, row)
        for control in self._site.document.triage.controls(*stored.finding.severity_key):
            self.worst.add("control", control, order, row)


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
        return f"findings {first + 1:,} to {first + shown:,} of {findings:,}"
    return plural(findings, "finding")


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
        self._kept: defaultdict[str, list[tuple[tuple[int, ...], str]]] = defaultdict(list)

    def add(self, subject: Subject, name: str, order: tuple[int, ...], row: str) -> None:
        """Keep a row, if fewer than `MOST` rows of the subject have a lower order."""
        rows = self._kept[_group(subject, name)]
        if len(rows) < MOST or order < rows[-1][0]:
            insort(rows, (order, row), key=lambda kept: kept[0])
            del rows[MOST:]

    def write(self, spill: GroupWriter) -> None:
        """Write what was kept."""
        for group, rows in self._kept.items():
            for order, row in rows:
                spill.add(group, f"{' '.join(map(str, order))}\t{row}")


def worst_rows(spilled: GroupReader, subject: Subject, *names: str) -> str:
    """The rows of the worst problems of some policies, namespaces, owners or controls together, as HTML for a page in a folder."""
    lines = (line.partition("\t") for name in sorted(names) for line in spilled.rows(_group(subject, name)))
    rows = sorted(((_order(order), row) for order, _, row in lines), key=itemgetter(0))
    return move_into_folder(row for _, row in rows[:MOST])


def move_into_folder(rows: Iterable[str]) -> str:
    """Rows of the list as HTML for a page in a folder."""
    return "\n".join(row.replace(*_UP) for row in rows)


def _order(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _group(subject: Subject, name: str) -> str:
    return f"worst {subject} {file_name(name)}"
