"""Reads stored findings, as streams in the order of a report.

The query sorts by names alone; messages, which may be long, are fetched for a portion of the rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypedDict

from sqlalchemy import Column, ColumnElement, Connection, Row, Select, case, func, select

from scanner.model.outcome import Finding
from scanner.model.population import KeptOfObject, Workload
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.scan import ProblemFinding, StoredFinding
from scanner.posture.problem_ids import problem_id
from scanner.store.database.engine import among
from scanner.store.history.sightings import last_seen
from scanner.store.read.kept_labels import KeptLabels, PlaceOfObject
from scanner.store.read.recorded_objects import INTERVAL, IntervalOfObject, interval_of, intervals_at
from scanner.store.rows.columns import (
    ROW,
    CheckColumns,
    FindingColumns,
    HistoryColumns,
    KindColumns,
    ObjectColumns,
    VerdictColumns,
    columns_of,
    finding_of,
    slices_of,
)
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import (
    ALONE,
    CAUSES,
    CHECKS,
    CONTINUED,
    EVIDENCE,
    EXCERPTS,
    FINDINGS,
    KINDS,
    OBJECTS,
    OUTDATED,
    POPULATION,
    PREVIEW,
    SCANS,
    VERDICTS,
    WORKLOADS,
)

MOVED: Final = "moved"
"""The resolution of a row whose finding goes on in another problem: see `resolution`."""

PROBLEM: Final = func.coalesce(FINDINGS.c.problem, -FINDINGS.c.id)
"""The problem of a row. A row of an older version is a problem of its own."""

SHORT = 12
"""The number of hex digits of a finding's id."""

Times: TypeAlias = Mapping[int, datetime]
_Status: TypeAlias = Literal["new", "open", "reopened", "preview", "outdated"]
_STATUS: Mapping[str, _Status] = {
    "new": "new",
    "reopened": "reopened",
    "changed": "open",
    CONTINUED: "open",
    PREVIEW: PREVIEW,
    OUTDATED: OUTDATED,
}

CHECK_ORDER: tuple[ColumnElement[Any], ...] = (
    CHECKS.c.policy,
    CHECKS.c.language,
    CHECKS.c.binding,
    CHECKS.c.param_namespace,
    CHECKS.c.param_name,
    CHECKS.c.kind,
    CHECKS.c.index,
    CHECKS.c.expression,
    KINDS.c.kind,
    KINDS.c.api_version,
)
"""The order of checks and kinds in a report."""
_ORDER = (
    *CHECK_ORDER,
    OBJECTS.c.namespace,
    OBJECTS.c.name,
    FINDINGS.c.fingerprint,
)


class FindingRow(NamedTuple):
    """A row of `findings`, its check and its kind; the verdict and the evidence are ids."""

    history: HistoryColumns
    columns: FindingColumns
    check: CheckColumns
    kind: KindColumns
    identity: ObjectColumns

    @classmethod
    def of(cls, row: Row[*tuple[Any, ...]]) -> FindingRow:
        """A row of `select_findings`."""
        return cls(
            HistoryColumns._make(row[_HISTORY]),
            FindingColumns._make(row[_FINDING]),
            CheckColumns._make(row[_CHECK]),
            KindColumns._make(row[_KIND]),
            ObjectColumns._make(row[_OBJECT]),
        )


_COLUMNS = HistoryColumns, FindingColumns, CheckColumns, KindColumns, ObjectColumns
_HISTORY, _FINDING, _CHECK, _KIND, _OBJECT = slices_of(*_COLUMNS)


def select_findings() -> Select[*tuple[Any, ...]]:
    """The query of the rows for `FindingRow.of`, in no order."""
    own = (FINDINGS.c[name] for name in ROW)
    referred = *columns_of(CHECKS, CheckColumns), *columns_of(KINDS, KindColumns), *columns_of(OBJECTS, ObjectColumns)
    joined = FINDINGS.join(CHECKS, CHECKS.c.id == FINDINGS.c.check).join(KINDS, KINDS.c.id == FINDINGS.c.kind)
    return select(*own, *referred).select_from(joined.join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object))


class Beside(NamedTuple):
    """The parts of a row that are kept apart: its evidence and its excerpt, as templates, and the interval of its object, None if it is not known."""

    evidence: str
    excerpt: str
    interval: IntervalOfObject | None


class ReadFinding(NamedTuple):
    """A row of `findings`, its finding, and the workload and the kept labels of its object, None if they are not known.

    `cause` is that of the beginning of the row, `end_cause` that of the resolution; None for rows of older versions.
    """

    row: FindingRow
    finding: Finding
    workload: Workload | None
    cause: Cause | None
    end_cause: Cause | None
    kept: KeptOfObject | None


def seen_by(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Iterator[StoredFinding]:
    """The findings of the scan of a revision, in the order of a report, with the status that they had then.

    `unchecked` are the ids of the rows that this scan did not check: they are left out.
    """
    times = times_of(connection, cluster)
    for read in _streamed(connection, seen_in(cluster, revision), cluster, revision, without=unchecked):
        yield open_finding(read, times, newest=revision, last_seen=revision)


def resolved_by(connection: Connection, cluster: int, revision: int) -> Iterator[StoredFinding]:
    """The findings that the scan of a revision resolved, in the order of a report."""
    times = times_of(connection, cluster)
    for read in _streamed(connection, resolved_in(cluster, revision), cluster, revision - 1, without=RowIdSet()):
        yield resolved(read, times)


def by_problem(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, *conditions: ColumnElement[bool]
) -> Iterator[ProblemFinding]:
    """The open and the resolved findings of the scan of a revision; those of a problem follow each other, ordered by policy.

    `unchecked` are the ids of the open rows that this scan did not check. The `conditions` must hold for whole problems.
    """
    chosen = in_problem_at(cluster, revision) | ended_in(cluster, revision)
    first = (func.min(column).over(partition_by=PROBLEM) for column in (OBJECTS.c.namespace, OBJECTS.c.name))
    order = CHECKS.c.policy, CHECKS.c.language, *first, PROBLEM, FINDINGS.c.id
    ordered = select_findings().where(chosen, *conditions).order_by(*order)
    shown = _Shown(connection, cluster, revision, unchecked, times_of(connection, cluster))
    with connection.execute(ordered.execution_options(yield_per=CHUNK)) as result:
        for portion in result.partitions():
            yield from shown.findings(list(map(FindingRow.of, portion)))


def of_rows(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, ids: Sequence[int], times: Times
) -> Iterator[tuple[int, ProblemFinding]]:
    """The findings of some rows as of the scan of a revision with the ids of the rows, previews included, in no order."""
    shown = _Shown(connection, cluster, revision, unchecked, times)
    wanted = _select_beside(revision).where(FINDINGS.c.cluster == cluster)
    for portion in chunks(list(ids)):
        found = connection.execute(wanted.where(among(connection, FINDINGS.c.id, portion))).all()
        rows = list(map(FindingRow.of, found))
        numbers = [row.history.id for row in rows]
        beside = {number: _beside(*row[_BESIDE]) for number, row in zip(numbers, found, strict=True)}
        beside.update(_beside_gone(connection, rows, beside, revision))
        left = [number for number in numbers if number in unchecked]
        seen = last_seen(connection, cluster, left, before=revision) if left else {}
        at = {number: earlier for earlier, several in seen.items() for number in several}
        yield from zip(numbers, shown.findings(rows, at, beside), strict=True)


def _select_beside(revision: int) -> Select[*tuple[Any, ...]]:
    """The query of rows with what stands beside them, as the scan of a revision shows them: a resolved object as it was before."""
    own, interval = FINDINGS.c, POPULATION.c
    at = case((own.until == revision, revision - 1), else_=revision)
    there = (interval.object == own.object) & (interval.since <= at) & (interval.until > at)
    return (
        select_findings()
        .add_columns(EVIDENCE.c.reasons, EXCERPTS.c.text, interval.object, *INTERVAL)
        .outerjoin(EVIDENCE, EVIDENCE.c.id == own.evidence)
        .outerjoin(EXCERPTS, EXCERPTS.c.id == own.excerpt)
        .outerjoin(POPULATION, there)
        .outerjoin(WORKLOADS, WORKLOADS.c.id == interval.workload)
    )


_BESIDE: Final = slice(_OBJECT.stop, None)


def _beside(evidence: str | None, excerpt: str | None, there: int | None, *columns: Any) -> Beside:
    return Beside(evidence or "", excerpt or "", None if there is None else interval_of(*columns))


def _beside_gone(
    connection: Connection, rows: Iterable[FindingRow], beside: Mapping[int, Beside], revision: int
) -> Iterator[tuple[int, Beside]]:
    """The parts kept apart of the rows whose objects were gone before the scan of a revision: with their last intervals."""
    gone = {row.history.id: row.columns.object for row in rows if beside[row.history.id].interval is None}
    last = intervals_at(connection, set(gone.values()), revision) if gone else {}
    return ((number, beside[number]._replace(interval=last.get(of))) for number, of in gone.items())


class _Shown:
    """Findings as the scan of a revision shows them; `unchecked` are the ids of the open rows that it did not check."""

    def __init__(self, connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, times: Times) -> None:
        self._connection, self._revision, self._unchecked, self._times = connection, revision, unchecked, times
        # The workload of a resolved object is that of the revision before.
        self._kept, self._kept_before = (KeptLabels(connection, cluster, each) for each in (revision, revision - 1))

    def findings(
        self,
        rows: list[FindingRow],
        seen: Mapping[int, int] | None = None,
        beside: Mapping[int, Beside] | None = None,
    ) -> Iterator[ProblemFinding]:
        """The findings of rows, in their order; `seen` has the last revision that saw a row, if it is not this one.

        `beside` has what stands beside the rows, if the caller has read it.
        """
        ended = [row for row in rows if row.history.until == self._revision]
        now = [row for row in rows if row.history.until != self._revision]
        read = (
            *with_findings(self._connection, now, self._kept, beside),
            *with_findings(self._connection, ended, self._kept_before, beside),
        )
        of_row = {each.row.history.id: each for each in read}
        at = seen or {}
        return (self._shown(of_row[row.history.id], at.get(row.history.id, self._revision)) for row in rows)

    def _shown(self, read: ReadFinding, seen: int) -> ProblemFinding:
        history = read.row.history
        if history.event in ALONE:
            return ProblemFinding(previewed(read, self._times), checked=True, episode="open")
        if history.until == self._revision:
            return ProblemFinding(resolved(read, self._times), checked=True, episode=_episode(history, self._revision))
        stored = open_finding(read, self._times, newest=self._revision, last_seen=seen)
        return ProblemFinding(stored, history.id not in self._unchecked, _episode(history, self._revision))


def _episode(history: HistoryColumns, revision: int) -> Literal["new", "reopened", "open"]:
    if history.problem_opened != revision:
        return "open"
    return "new" if history.problem_first == revision else "reopened"


def seen_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a finding was open in a revision; its scan may have left the finding unchecked."""
    return (FINDINGS.c.cluster == cluster) & (FINDINGS.c.since <= revision) & (FINDINGS.c.until > revision)


def in_problem_at(cluster: int, revision: int) -> ColumnElement[bool]:
    """The same for a finding that belongs to a problem: previewed and outdated ones belong to their scan alone."""
    return seen_in(cluster, revision) & FINDINGS.c.event.not_in(ALONE)


def ended_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a scan resolved a finding, or that the finding moved then: it ended for its problem."""
    # Only such a row has `last_seen`; a row that ended with a change continues in another row.
    return (FINDINGS.c.cluster == cluster) & (FINDINGS.c.until == revision) & FINDINGS.c.last_seen.is_not(None)


def resolved_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a scan resolved a finding. One that moved to another problem is open."""
    own = FINDINGS.c.resolution
    return ended_in(cluster, revision) & (own.is_(None) | (own != MOVED))


def status_of(event: str, *, begins: bool) -> _Status:
    """The status of an open finding, given the event of its row, and whether the row begins with the newest revision."""
    return _STATUS[event] if begins else "open"


def open_finding(read: ReadFinding, times: Times, *, newest: int, last_seen: int) -> StoredFinding:
    """An open finding as of the revision `newest`; `times` has the end of each scan by revision."""
    history = read.row.history
    return StoredFinding(
        id=read.finding.fingerprint[:SHORT],
        finding=read.finding,
        status=status_of(history.event, begins=history.since == newest),
        first_seen=times[history.first],
        last_seen=times[last_seen],
        workload=read.workload,
        opened_at=_opened(history, times),
        problem=_problem(read.row),
        cause=read.cause if history.since == newest else None,
        continues=_continues(history) if history.since == newest else "",
        kept=read.kept,
        **_clocks(history, times),
    )


def previewed(read: ReadFinding, times: Times) -> StoredFinding:
    """A preview or an outdated finding, which belongs to the scan of its revision alone."""
    seen, finding = times[read.row.history.since], read.finding
    return StoredFinding(
        finding.fingerprint[:SHORT],
        finding,
        _STATUS[read.row.history.event],
        first_seen=seen,
        last_seen=seen,
        workload=read.workload,
        opened_at=seen,
        problem=_problem(read.row),
        kept=read.kept,
    )


def resolved(read: ReadFinding, times: Times) -> StoredFinding:
    """A resolved finding."""
    history = read.row.history
    return StoredFinding(
        id=read.finding.fingerprint[:SHORT],
        finding=read.finding,
        status="resolved",
        first_seen=times[history.first],
        last_seen=times[history.last_seen or history.since],
        resolved_at=times[history.until],
        workload=read.workload,
        opened_at=_opened(history, times),
        resolution=history.resolution or "",
        problem=_problem(read.row),
        moved_to=problem_id(history.moved_to or 0) if history.resolution == MOVED else "",
        cause=read.end_cause,
        kept=read.kept,
        **_clocks(history, times),
    )


class _Clocks(TypedDict):
    problem_first_seen: datetime
    problem_opened_at: datetime


def _clocks(history: HistoryColumns, times: Times) -> _Clocks:
    """The clocks of the problem of a row; of a row of an older version, its own."""
    first = history.first if history.problem_first is None else history.problem_first
    opened = history.since if history.opened is None else history.opened
    return {
        "problem_first_seen": times[first],
        "problem_opened_at": times[opened if history.problem_opened is None else history.problem_opened],
    }


def _continues(history: HistoryColumns) -> str:
    return "" if history.continues is None else history.continues.hex()[:SHORT]


def _opened(history: HistoryColumns, times: Times) -> datetime | None:
    return None if history.opened is None else times[history.opened]


def _problem(row: FindingRow) -> str:
    return "" if row.columns.problem is None else problem_id(row.columns.problem)


def times_of(connection: Connection, cluster: int) -> Times:
    """The end of each merged scan of a cluster, by revision."""
    ended = select(SCANS.c.revision, SCANS.c.finished_at).where(
        SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None)
    )
    return {row.revision: row.finished_at for row in connection.execute(ended)}


def with_findings(
    connection: Connection, rows: Iterable[FindingRow], labels: KeptLabels, beside: Mapping[int, Beside] | None = None
) -> list[ReadFinding]:
    """Rows with their findings, and the workloads and kept labels of their objects at the revision of `labels`.

    What stands `beside` the rows is read if the caller has not read it.
    """
    portion = list(rows)
    if not portion:
        return []
    verdicts = verdicts_of(connection, {row.columns.verdict for row in portion})
    there = _read_beside(connection, portion, labels.revision) if beside is None else beside
    intervals = {number: each.interval for number, each in there.items() if each.interval}
    placed = [(row.history.id, _place(row, intervals.get(row.history.id))) for row in portion]
    places = {number: place for number, place in placed if place is not None}
    kept = dict(zip(places, labels.of([*places.values()]), strict=True))
    causes = causes_of(connection, {cause for row in portion for cause in (row.history.cause, row.history.end_cause)})
    return [
        ReadFinding(
            row,
            finding_of(
                *row, verdicts[row.columns.verdict], there[row.history.id].evidence, there[row.history.id].excerpt
            ),
            _workload(row, intervals.get(row.history.id)),
            causes[row.history.cause],
            causes[row.history.end_cause],
            kept.get(row.history.id),
        )
        for row in portion
    ]


def _read_beside(connection: Connection, rows: Sequence[FindingRow], revision: int) -> dict[int, Beside]:
    """The parts kept apart of some rows, by their ids, the intervals being those at a revision."""
    evidence = _texts(connection, EVIDENCE.c.reasons, {row.columns.evidence for row in rows})
    excerpts = _texts(connection, EXCERPTS.c.text, {row.columns.excerpt for row in rows})
    intervals = intervals_at(connection, {row.columns.object for row in rows}, revision)
    return {
        row.history.id: Beside(
            evidence[row.columns.evidence], excerpts[row.columns.excerpt], intervals.get(row.columns.object)
        )
        for row in rows
    }


def _workload(row: FindingRow, interval: IntervalOfObject | None) -> Workload | None:
    """The workload of the object of a row: the object itself if it has no other, None if it is not known."""
    if interval is None:
        return None
    own = row.kind.api_version, row.kind.kind, row.identity.namespace, row.identity.name
    return interval.workload or Workload(*own)


def _place(row: FindingRow, interval: IntervalOfObject | None) -> PlaceOfObject | None:
    """The place of the labels of the object of a row; None if they are not known."""
    if interval is None or interval.kept is None:
        return None
    return PlaceOfObject(row.columns.kind, row.identity.namespace, interval.workload_id, interval.kept)


def _streamed(
    connection: Connection, chosen: ColumnElement[bool], cluster: int, revision: int, *, without: RowIdSet
) -> Iterator[ReadFinding]:
    ordered = select_findings().where(chosen).order_by(*_ORDER).execution_options(yield_per=CHUNK)
    labels = KeptLabels(connection, cluster, revision)
    with connection.execute(ordered) as result:
        for portion in result.partitions():
            rows = map(FindingRow.of, portion)
            yield from with_findings(connection, (row for row in rows if row.history.id not in without), labels)


def causes_of(connection: Connection, numbers: set[int | None]) -> dict[int | None, Cause | None]:
    """The causes by id; None for None."""
    there = sorted(number for number in numbers if number is not None)
    causes: dict[int | None, Cause | None] = {None: None}
    if not there:
        return causes
    wanted = select(CAUSES.c.id, CAUSES.c.kind, CAUSES.c.also).where(among(connection, CAUSES.c.id, there))
    causes.update(
        (number, Cause(CauseKind(kind), tuple(map(CauseKind, also.split(","))) if also else ()))
        for number, kind, also in connection.execute(wanted)
    )
    return causes


def verdicts_of(connection: Connection, numbers: set[int]) -> Mapping[int, VerdictColumns]:
    """Verdicts by id."""
    if not numbers:
        return {}
    wanted = select(VERDICTS.c.id, *columns_of(VERDICTS, VerdictColumns)).where(
        among(connection, VERDICTS.c.id, sorted(numbers))
    )
    return {number: VerdictColumns._make(columns) for number, *columns in connection.execute(wanted)}


def _texts(connection: Connection, column: Column[str], numbers: set[int | None]) -> dict[int | None, str]:
    """The texts in a column of a table, by id; empty for None."""
    texts: dict[int | None, str] = {None: ""}
    own = column.table.c.id
    for portion in chunks(sorted(number for number in numbers if number is not None)):
        texts.update(
            (number, text)
            for number, text in connection.execute(select(own, column).where(among(connection, own, portion)))
        )
    return texts
