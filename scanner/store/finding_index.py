"""The findings of a scan as narrow rows without texts, from which a list is chosen and ordered before any text is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, select

from scanner.model.cause import Cause
from scanner.model.census import OwnerOf
from scanner.model.finding_index import IndexedFinding
from scanner.store.findings import causes_of, resolved_in, seen_in, status_of, times_of
from scanner.store.kept_labels import KeptLabels, PlaceOfObject
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import (
    CHECKS,
    FINDINGS,
    KINDS,
    OBJECTS,
    POPULATION,
    PREVIEW,
    VERDICTS,
    WORKLOADS,
)

_PORTION: Final = 5_000


class _Row(NamedTuple):
    """The columns of a row of the query, in its order."""

    id: int
    problem: int | None
    fingerprint: bytes
    check: int
    verdict: int
    object: int
    kind: int
    event: str
    since: int
    first: int
    opened: int | None
    problem_first: int | None
    problem_opened: int | None
    resolution: str | None
    cause: int | None
    end_cause: int | None
    namespace: str
    name: str
    workload: int | None
    kept: int | None
    top_kind: str | None
    top_namespace: str | None
    top_name: str | None


class _Verdict(NamedTuple):
    outcome: str
    denies: bool
    would_deny: bool
    actions: str
    excepted_by: str


def indexed(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf
) -> Iterator[IndexedFinding]:
    """The findings that were open at a revision, and those that its scan resolved, in no order.

    `unchecked` are the ids of the rows that the scan left unchecked.
    """
    tables = _Tables(connection, cluster)
    for resolved in (False, True):
        at = revision - int(resolved)
        chosen = resolved_in(cluster, revision) if resolved else seen_in(cluster, revision)
        labels = KeptLabels(connection, cluster, at, owner_of.names)
        with connection.execute(_select(chosen, at).execution_options(yield_per=_PORTION)) as result:
            for portion in result.partitions():
                rows = [_Row._make(row) for row in portion]
                for row, owner in zip(rows, _owners(rows, labels, owner_of), strict=True):
                    yield tables.finding(row, owner, revision, resolved=resolved, checked=row.id not in unchecked)


def findings_by_object(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Counter[int]:
    """The numbers of findings that the scan of a revision has, by the id of their object; without the `unchecked` rows."""
    wanted = select(FINDINGS.c.id, FINDINGS.c.object).where(seen_in(cluster, revision))
    with connection.execute(wanted.execution_options(yield_per=_PORTION)) as result:
        return Counter(item for row, item in result if row not in unchecked)


def _select(chosen: ColumnElement[bool], at: int) -> Any:
    """The query of the rows for `_Row`."""
    own, interval, top = FINDINGS.c, POPULATION.c, WORKLOADS.c
    of_finding = (own[name] for name in _Row._fields[: _Row._fields.index("namespace")])
    there = and_(interval.object == own.object, interval.since <= at, interval.until > at)
    return (
        select(
            *of_finding,
            *(OBJECTS.c.namespace, OBJECTS.c.name, interval.workload, interval.kept),
            *(top.kind, top.namespace, top.name),
        )
        .select_from(FINDINGS)
        .join(OBJECTS, OBJECTS.c.id == own.object)
        .outerjoin(POPULATION, there)
        .outerjoin(WORKLOADS, top.id == interval.workload)
        .where(chosen)
    )


def _owners(rows: Sequence[_Row], labels: KeptLabels, owner_of: OwnerOf) -> Iterator[str]:
    """The owner of the object of each row."""
    places = [
        PlaceOfObject(row.kind, row.namespace, row.workload or 0, row.kept) for row in rows if row.kept is not None
    ]
    kept = labels.of(places)
    # Equal labels are one object, so each owner is found once.
    owners = {number: owner_of(each) for number, each in {id(each): each for each in kept}.items()}
    following = iter(kept)
    return (owners[id(next(following))] if row.kept is not None else owner_of(None) for row in rows)


class _Tables:
    """The rows to which findings refer: there are few of them."""

    def __init__(self, connection: Connection, cluster: int) -> None:
        self._connection = connection
        self._ends = {revision: int(ended.timestamp()) for revision, ended in times_of(connection, cluster).items()}
        self._policies = {
            row.id: (row.language, row.policy)
            for row in connection.execute(select(CHECKS.c.id, CHECKS.c.language, CHECKS.c.policy))
        }
        self._kinds = {row.id: row.kind for row in connection.execute(select(KINDS.c.id, KINDS.c.kind))}
        self._verdicts: dict[int, _Verdict] = {}
        self._names: dict[str, str] = {}
        self._causes: dict[int | None, Cause | None] = {None: None}

    def finding(self, row: _Row, owner: str, revision: int, *, resolved: bool, checked: bool) -> IndexedFinding:
        verdict = self._verdict(row.verdict)
        first = row.first if row.problem_first is None else row.problem_first
        opened = next(each for each in (row.problem_opened, row.opened, row.first) if each is not None)
        begins = opened == revision
        if row.event == PREVIEW:
            status: str = PREVIEW
        elif resolved:
            status = "resolved"
        else:
            status = status_of(row.event, begins=row.since == revision)
        kind = row.top_kind or self._kinds[row.kind]
        namespace = row.namespace if row.top_namespace is None else row.top_namespace
        return IndexedFinding(
            row=row.id,
            problem=-row.id if row.problem is None else row.problem,
            id=int.from_bytes(row.fingerprint[:6], "big"),
            check=row.check,
            verdict=row.verdict,
            object=row.object,
            workload_row=row.workload or 0,
            kept=row.kept or 0,
            policy=self._policies[row.check],
            namespace=self._same(row.namespace),
            name=row.name,
            owner=self._same(owner),
            kind=self._same(kind),
            workload="/".join(filter(None, (namespace, row.top_name or row.name))),
            status=status,
            checked=checked or resolved,
            episode="open" if not begins else "new" if first == revision else "reopened",
            opened=self._ends[opened],
            outcome=verdict.outcome,
            denies=verdict.denies,
            actions=verdict.actions,
            excepted=bool(verdict.excepted_by),
            cause=self._cause(row.end_cause if resolved else row.cause if row.since == revision else None),
            resolution=self._same(row.resolution or "") if resolved else "",
        )

    def _cause(self, number: int | None) -> Cause | None:
        if number not in self._causes:
            self._causes.update(causes_of(self._connection, {number}))
        return self._causes[number]

    def _same(self, text: str) -> str:
        """One object for equal texts."""
        return self._names.setdefault(text, text)

    def _verdict(self, number: int) -> _Verdict:
        if number not in self._verdicts:
            self._read_verdicts(number)
        return self._verdicts[number]

    def _read_verdicts(self, first: int) -> None:
        """Read the verdict of an id and those that follow: findings of one scan have verdicts with near ids."""
        own = VERDICTS.c
        wanted = select(own.id, *(own[name] for name in _Verdict._fields))
        rows = self._connection.execute(wanted.where(own.id >= first).order_by(own.id).limit(_PORTION))
        self._verdicts.update((row[0], _verdict(row)) for row in rows)


def _verdict(row: Sequence[Any]) -> _Verdict:
    _, outcome, denies, would_deny, actions, excepted_by = row
    return _Verdict(outcome, bool(denies), bool(would_deny), actions, excepted_by)
