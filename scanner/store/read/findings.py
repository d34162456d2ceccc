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
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.posture.problem_ids import problem_id
from scanner.store.database.engine import is_among
from scanner.store.history.sightings import group_by_last_seen
from scanner.store.read.kept_labels import KeptLabels, PlaceOfObject
from scanner.store.read.recorded_objects import INTERVAL, IntervalOfObject, interval_of, read_intervals
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
    SINGLE_SCAN_EVENTS,
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
    def from_row(cls, row: Row[*tuple[Any, ...]]) -> FindingRow:
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
    """The query of the rows for `FindingRow.from_row`, in no order."""
    columns = (FINDINGS.c[name] for name in ROW)
    referred = *columns_of(CHECKS, CheckColumns), *columns_of(KINDS, KindColumns), *columns_of(OBJECTS, ObjectColumns)
    joined = FINDINGS.join(CHECKS, CHECKS.c.id == FINDINGS.c.check).join(KINDS, KINDS.c.id == FINDINGS.c.kind)
    return select(*columns, *referred).select_from(joined.join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object))


class FindingDetails(NamedTuple):
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


def read_seen(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Iterator[StoredFinding]:
    """The findings of the scan of a revision, in the order of a report, with the status that they had then.

    `unchecked` are the ids of the rows that this scan did not check: they are left out.
    """
    times = read_scan_ends(connection, cluster)
    for read in _stream_findings(connection, is_open_in(cluster, revision), cluster, revision, without=unchecked):
        yield build_open_finding(read, times, newest=revision, last_seen=revision)


def read_resolved(connection: Connection, cluster: int, revision: int) -> Iterator[StoredFinding]:
    """The findings that the scan of a revision resolved, in the order of a report."""
    times = read_scan_ends(connection, cluster)
    for read in _stream_findings(
        connection, was_resolved_in(cluster, revision), cluster, revision - 1, without=RowIdSet()
    ):
        yield build_resolved_finding(read, times)


def read_resolved_before(
    connection: Connection, cluster: int, revision: int, since: datetime, most: int
) -> Iterator[StoredFinding]:
    """The findings that scans since a moment and before a revision resolved, and that were not found again up to it, the last resolved first."""
    times = read_scan_ends(connection, cluster)
    revisions = [number for number, end in times.items() if number < revision and end >= since]
    if not revisions:
        return
    finding = FINDINGS.c
    ended = (finding.cluster == cluster) & finding.until.between(min(revisions), max(revisions))
    resolved = finding.last_seen.is_not(None) & (finding.resolution.is_(None) | (finding.resolution != MOVED))
    is_last = finding.superseded.is_(None) | (finding.superseded > revision)
    wanted = select_findings().where(ended, resolved, is_last, finding.event.not_in(SINGLE_SCAN_EVENTS))
    ordered = wanted.order_by(finding.until.desc(), PROBLEM, finding.fingerprint).limit(most)
    labels = KeptLabels(connection, cluster, revision)
    with connection.execute(ordered.execution_options(yield_per=CHUNK)) as result:
        for portion in result.partitions():
            for read in read_findings(connection, map(FindingRow.from_row, portion), labels):
                yield build_resolved_finding(read, times)


def read_by_problem(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, *conditions: ColumnElement[bool]
) -> Iterator[ProblemFinding]:
    """The open and the resolved findings of the scan of a revision; those of a problem follow each other, ordered by policy.

    `unchecked` are the ids of the open rows that this scan did not check. The `conditions` must hold for whole problems.
    """
    chosen = is_in_problem_at(cluster, revision) | has_ended_in(cluster, revision)
    first = (func.min(column).over(partition_by=PROBLEM) for column in (OBJECTS.c.namespace, OBJECTS.c.name))
    order = CHECKS.c.policy, CHECKS.c.language, *first, PROBLEM, FINDINGS.c.id
    ordered = select_findings().where(chosen, *conditions).order_by(*order)
    shown = _FindingReader(connection, cluster, revision, unchecked, read_scan_ends(connection, cluster))
    with connection.execute(ordered.execution_options(yield_per=CHUNK)) as result:
        for portion in result.partitions():
            yield from shown.read(list(map(FindingRow.from_row, portion)))


def read_findings_of_rows(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, ids: Sequence[int], times: Times
) -> Iterator[tuple[int, ProblemFinding]]:
    """The findings of some rows as of the scan of a revision with the ids of the rows, previews included, in no order."""
    shown = _FindingReader(connection, cluster, revision, unchecked, times)
    wanted = _select_details(revision).where(FINDINGS.c.cluster == cluster)
    for portion in chunks(list(ids)):
        records = connection.execute(wanted.where(is_among(connection, FINDINGS.c.id, portion))).all()
        rows = list(map(FindingRow.from_row, records))
        numbers = [row.history.id for row in rows]
        beside = {number: _build_details(*row[_DETAILS]) for number, row in zip(numbers, records, strict=True)}
        beside.update(_build_details_of_gone(connection, rows, beside, revision))
        left = [number for number in numbers if number in unchecked]
        seen = group_by_last_seen(connection, cluster, left, before=revision) if left else {}
        at = {number: earlier for earlier, several in seen.items() for number in several}
        yield from zip(numbers, shown.read(rows, at, beside), strict=True)


def _select_details(revision: int) -> Select[*tuple[Any, ...]]:
    """The query of rows with what stands beside them, as the scan of a revision shows them: a resolved object as it was before."""
    finding, interval = FINDINGS.c, POPULATION.c
    at = case((finding.until == revision, revision - 1), else_=revision)
    there = (interval.object == finding.object) & (interval.since <= at) & (interval.until > at)
    return (
        select_findings()
        .add_columns(EVIDENCE.c.reasons, EXCERPTS.c.text, interval.object, *INTERVAL)
        .outerjoin(EVIDENCE, EVIDENCE.c.id == finding.evidence)
        .outerjoin(EXCERPTS, EXCERPTS.c.id == finding.excerpt)
        .outerjoin(POPULATION, there)
        .outerjoin(WORKLOADS, WORKLOADS.c.id == interval.workload)
    )


_DETAILS: Final = slice(_OBJECT.stop, None)


def _build_details(evidence: str | None, excerpt: str | None, there: int | None, *columns: Any) -> FindingDetails:
    return FindingDetails(evidence or "", excerpt or "", None if there is None else interval_of(*columns))


def _build_details_of_gone(
    connection: Connection, rows: Iterable[FindingRow], beside: Mapping[int, FindingDetails], revision: int
) -> Iterator[tuple[int, FindingDetails]]:
    """The parts kept apart of the rows whose objects were gone before the scan of a revision: with their last intervals."""
    gone = {row.history.id: row.columns.object for row in rows if beside[row.history.id].interval is None}
    last = read_intervals(connection, set(gone.values()), revision) if gone else {}
    return ((number, beside[number]._replace(interval=last.get(of))) for number, of in gone.items())


class _FindingReader:
    """Findings as the scan of a revision shows them; `unchecked` are the ids of the open rows that it did not check."""

    def __init__(self, connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, times: Times) -> None:
        self._connection, self._revision, self._unchecked, self._times = connection, revision, unchecked, times
        # The workload of a resolved object is that of the revision before.
        self._kept, self._kept_before = (KeptLabels(connection, cluster, each) for each in (revision, revision - 1))

    def read(
        self,
        rows: list[FindingRow],
        seen: Mapping[int, int] | None = None,
        beside: Mapping[int, FindingDetails] | None = None,
    ) -> Iterator[ProblemFinding]:
        """The findings of rows, in their order; `seen` has the last revision that saw a row, if it is not this one.

        `beside` has what stands beside the rows, if the caller has read it.
        """
        ended = [row for row in rows if row.history.until == self._revision]
        now = [row for row in rows if row.history.until != self._revision]
        read = (
            *read_findings(self._connection, now, self._kept, beside),
            *read_findings(self._connection, ended, self._kept_before, beside),
        )
        of_row = {each.row.history.id: each for each in read}
        at = seen or {}
        return (self._build_finding(of_row[row.history.id], at.get(row.history.id, self._revision)) for row in rows)

    def _build_finding(self, read: ReadFinding, seen: int) -> ProblemFinding:
        history = read.row.history
        if history.event in SINGLE_SCAN_EVENTS:
            return ProblemFinding(build_preview(read, self._times), checked=True, episode="open")
        if history.until == self._revision:
            return ProblemFinding(
                build_resolved_finding(read, self._times), checked=True, episode=_episode_of(history, self._revision)
            )
        stored = build_open_finding(read, self._times, newest=self._revision, last_seen=seen)
        return ProblemFinding(stored, history.id not in self._unchecked, _episode_of(history, self._revision))


def _episode_of(history: HistoryColumns, revision: int) -> Literal["new", "reopened", "open"]:
    if history.problem_opened != revision:
        return "open"
    return "new" if history.problem_first == revision else "reopened"


def is_open_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a finding was open in a revision; its scan may have left the finding unchecked."""
    return (FINDINGS.c.cluster == cluster) & (FINDINGS.c.since <= revision) & (FINDINGS.c.until > revision)


def is_in_problem_at(cluster: int, revision: int) -> ColumnElement[bool]:
    """The same for a finding that belongs to a problem: previewed and outdated ones belong to their scan alone."""
    return is_open_in(cluster, revision) & FINDINGS.c.event.not_in(SINGLE_SCAN_EVENTS)


def has_ended_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a scan resolved a finding, or that the finding moved then: it ended for its problem."""
    # Only such a row has `last_seen`; a row that ended with a change continues in another row.
    return (FINDINGS.c.cluster == cluster) & (FINDINGS.c.until == revision) & FINDINGS.c.last_seen.is_not(None)


def was_resolved_in(cluster: int, revision: int) -> ColumnElement[bool]:
    """The condition that a scan resolved a finding. One that moved to another problem is open."""
    reason = FINDINGS.c.resolution
    return has_ended_in(cluster, revision) & (reason.is_(None) | (reason != MOVED))


def status_of(event: str, *, begins: bool) -> _Status:
    """The status of an open finding, given the event of its row, and whether the row begins with the newest revision."""
    return _STATUS[event] if begins else "open"


def build_open_finding(read: ReadFinding, times: Times, *, newest: int, last_seen: int) -> StoredFinding:
    """An open finding as of the revision `newest`; `times` has the end of each scan by revision."""
    history = read.row.history
    return StoredFinding(
        id=read.finding.fingerprint[:SHORT],
        finding=read.finding,
        status=status_of(history.event, begins=history.since == newest),
        first_seen=times[history.first],
        last_seen=times[last_seen],
        workload=read.workload,
        opened_at=_opened_at(history, times),
        problem=_problem_id_of(read.row),
        cause=read.cause if history.since == newest else None,
        continues=_continued_id(history) if history.since == newest else "",
        kept=read.kept,
        **_build_clocks(history, times),
    )


def build_preview(read: ReadFinding, times: Times) -> StoredFinding:
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
        problem=_problem_id_of(read.row),
        kept=read.kept,
    )


def build_resolved_finding(read: ReadFinding, times: Times) -> StoredFinding:
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
        opened_at=_opened_at(history, times),
        resolution=history.resolution or "",
        problem=_problem_id_of(read.row),
        moved_to=problem_id(history.moved_to or 0) if history.resolution == MOVED else "",
        cause=read.end_cause,
        kept=read.kept,
        **_build_clocks(history, times),
    )


class _Clocks(TypedDict):
    problem_first_seen: datetime
    problem_opened_at: datetime


def _build_clocks(history: HistoryColumns, times: Times) -> _Clocks:
    """The clocks of the problem of a row; of a row of an older version, its own."""
    first = history.first if history.problem_first is None else history.problem_first
    opened = history.since if history.opened is None else history.opened
    return {
        "problem_first_seen": times[first],
        "problem_opened_at": times[opened if history.problem_opened is None else history.problem_opened],
    }


def _continued_id(history: HistoryColumns) -> str:
    return "" if history.continues is None else history.continues.hex()[:SHORT]


def _opened_at(history: HistoryColumns, times: Times) -> datetime | None:
    return None if history.opened is None else times[history.opened]


def _problem_id_of(row: FindingRow) -> str:
    return "" if row.columns.problem is None else problem_id(row.columns.problem)


def read_scan_ends(connection: Connection, cluster: int) -> Times:
    """The end of each merged scan of a cluster, by revision."""
    ended = select(SCANS.c.revision, SCANS.c.finished_at).where(
        SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None)
    )
    return {row.revision: row.finished_at for row in connection.execute(ended)}


def read_findings(
    connection: Connection,
    rows: Iterable[FindingRow],
    labels: KeptLabels,
    beside: Mapping[int, FindingDetails] | None = None,
) -> list[ReadFinding]:
    """Rows with their findings, and the workloads and kept labels of their objects at the revision of `labels`.

    What stands `beside` the rows is read if the caller has not read it.
    """
    portion = list(rows)
    if not portion:
        return []
    verdicts = read_verdicts(connection, {row.columns.verdict for row in portion})
    there = _read_details(connection, portion, labels.revision) if beside is None else beside
    intervals = {number: each.interval for number, each in there.items() if each.interval}
    placed = [(row.history.id, _locate_object(row, intervals.get(row.history.id))) for row in portion]
    places = {number: place for number, place in placed if place is not None}
    kept = dict(zip(places, labels.read([*places.values()]), strict=True))
    causes = read_causes(connection, {cause for row in portion for cause in (row.history.cause, row.history.end_cause)})
    return [
        ReadFinding(
            row,
            finding_of(
                bytes(row.history.fingerprint).hex(),
                row.columns.resource_version,
                *row[2:],
                verdicts[row.columns.verdict],
                there[row.history.id].evidence,
                there[row.history.id].excerpt,
            ),
            _workload_of(row, intervals.get(row.history.id)),
            causes[row.history.cause],
            causes[row.history.end_cause],
            kept.get(row.history.id),
        )
        for row in portion
    ]


def _read_details(connection: Connection, rows: Sequence[FindingRow], revision: int) -> dict[int, FindingDetails]:
    """The parts kept apart of some rows, by their ids, the intervals being those at a revision."""
    evidence = read_texts(connection, EVIDENCE.c.reasons, {row.columns.evidence for row in rows})
    excerpts = read_texts(connection, EXCERPTS.c.text, {row.columns.excerpt for row in rows})
    intervals = read_intervals(connection, {row.columns.object for row in rows}, revision)
    return {
        row.history.id: FindingDetails(
            evidence[row.columns.evidence], excerpts[row.columns.excerpt], intervals.get(row.columns.object)
        )
        for row in rows
    }


def _workload_of(row: FindingRow, interval: IntervalOfObject | None) -> Workload | None:
    """The workload of the object of a row: the object itself if it has no other, None if it is not known."""
    if interval is None:
        return None
    itself = row.kind.api_version, row.kind.kind, row.identity.namespace, row.identity.name
    return interval.workload or Workload(*itself)


def _locate_object(row: FindingRow, interval: IntervalOfObject | None) -> PlaceOfObject | None:
    """The place of the labels of the object of a row; None if they are not known."""
    if interval is None or interval.kept is None:
        return None
    return PlaceOfObject(row.columns.kind, row.identity.namespace, interval.workload_id, interval.kept)


def _stream_findings(
    connection: Connection, chosen: ColumnElement[bool], cluster: int, revision: int, *, without: RowIdSet
) -> Iterator[ReadFinding]:
    ordered = select_findings().where(chosen).order_by(*_ORDER).execution_options(yield_per=CHUNK)
    labels = KeptLabels(connection, cluster, revision)
    with connection.execute(ordered) as result:
        for portion in result.partitions():
            rows = map(FindingRow.from_row, portion)
            yield from read_findings(connection, (row for row in rows if row.history.id not in without), labels)


def read_causes(connection: Connection, numbers: set[int | None]) -> dict[int | None, Cause | None]:
    """The causes by id; None for None."""
    there = sorted(number for number in numbers if number is not None)
    causes: dict[int | None, Cause | None] = {None: None}
    if not there:
        return causes
    wanted = select(CAUSES.c.id, CAUSES.c.kind, CAUSES.c.also).where(is_among(connection, CAUSES.c.id, there))
    causes.update(
        (number, Cause(CauseKind(kind), tuple(map(CauseKind, also.split(","))) if also else ()))
        for number, kind, also in connection.execute(wanted)
    )
    return causes


def read_verdicts(connection: Connection, numbers: set[int]) -> Mapping[int, VerdictColumns]:
    """Verdicts by id."""
    if not numbers:
        return {}
    wanted = select(VERDICTS.c.id, *columns_of(VERDICTS, VerdictColumns)).where(
        is_among(connection, VERDICTS.c.id, sorted(numbers))
    )
    return {number: VerdictColumns._make(columns) for number, *columns in connection.execute(wanted)}


def read_texts(connection: Connection, column: Column[str], numbers: set[int | None]) -> dict[int | None, str]:
    """The texts in a column of a table, by id; empty for None."""
    texts: dict[int | None, str] = {None: ""}
    number_column = column.table.c.id
    for portion in chunks(sorted(number for number in numbers if number is not None)):
        texts.update(
            (number, text)
            for number, text in connection.execute(
                select(number_column, column).where(is_among(connection, number_column, portion))
            )
        )
    return texts
