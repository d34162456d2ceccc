"""Reads the findings that differ between two scans, problem by problem, with what their causes need.

The database sorts the findings, so memory holds those of one problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, exists, func, select

from scanner.model.resource import api_group_of
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.scan import CoverageState, Scope
from scanner.posture.history.causes import CircumstanceChanges
from scanner.posture.history.scan_diff import (
    ComparedFinding,
    DiffPeriod,
    Effect,
    Kinds,
    ProblemDifference,
    compare_problem,
)
from scanner.posture.problem_ids import problem_id
from scanner.store.database.engine import is_among, select_numbers
from scanner.store.history.causes import (
    EarlierScan,
    FindingPlace,
    find_change_kinds,
    find_end_kinds,
    locate_finding,
    read_circumstances,
)
from scanner.store.history.resolution import Resolution, UnseenFinding, compute_listing_reach
from scanner.store.history.sightings import read_unchecked
from scanner.store.read.findings import MOVED, Times, read_scan_ends, read_verdicts
from scanner.store.read.stored_scan import ScanRow
from scanner.store.rows import codec
from scanner.store.rows.columns import CheckColumns, VerdictColumns, columns_of
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, COVERAGE, FINDINGS, KINDS, OBJECTS, POPULATION, SCANS, SINGLE_SCAN_EVENTS

_LATEST: Final = FINDINGS.alias()
_OF_LATEST: Final = (
    select(func.coalesce(_LATEST.c.problem, -_LATEST.c.id))
    .where(_LATEST.c.fingerprint == FINDINGS.c.fingerprint, _LATEST.c.cluster == FINDINGS.c.cluster)
    .where(_LATEST.c.superseded.is_(None))
    .correlate(FINDINGS)
    .scalar_subquery()
)
_PROBLEM: Final = func.coalesce(FINDINGS.c.problem, _OF_LATEST, -FINDINGS.c.id)
"""The problem of a row. That of a row of an older version is the problem of the finding's latest row, or the finding itself."""


class ComparedRow(NamedTuple):
    """A finding of a problem, with what its cause and its text need.

    `deleted` tells that its object existed in the earlier scan only, `there` that the object existed after the row ended.
    """

    problem: int
    finding: ComparedFinding
    place: FindingPlace
    check: CheckColumns
    deleted: bool
    there: bool
    verdict: VerdictColumns


class _Explanation:
    """The changes of a finding between two scans; the rows of the present problem are known by their numbers."""

    def __init__(self, earlier: EarlierScan) -> None:
        self.earlier = earlier
        self._rows: dict[int, ComparedRow] = {}

    def use(self, rows: Iterable[ComparedRow]) -> None:
        """Take the rows of a problem."""
        self._rows = {row.finding.number: row for row in rows}

    def explain_appearance(self, finding: ComparedFinding) -> Kinds:
        return frozenset(self.earlier.changes(self._rows[finding.number].place))

    def explain_end(self, before: ComparedFinding, end: ComparedFinding) -> Kinds:
        row = self._rows[before.number]
        resolution = Resolution(end.resolution) if end.resolution else None
        # An object that another one of its workload replaced was fixed with its workload.
        replaced = resolution is Resolution.FIXED and not self._rows[end.number].there
        return find_end_kinds(self._comparison, row.place.coordinates, resolution, deleted=row.deleted and not replaced)

    def explain_change(self, before: ComparedFinding, now: ComparedFinding) -> Kinds:
        coordinates = self._rows[now.number].place.coordinates
        if before.object_id != now.object_id:
            texts = self._comparison.list_changes(coordinates) if before.effect != now.effect else ()
            return self.explain_appearance(now).union(texts)
        object_changed = before.resource_version != now.resource_version
        return find_change_kinds(self._comparison, coordinates, object_changed=object_changed)

    @property
    def _comparison(self) -> CircumstanceChanges:
        return self.earlier.comparison


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """The sides of a comparison: a cluster, the revisions of both scans, and the findings that each of them left unchecked.

    `in_scope` tells whether a finding is in the scope of the later scan. `moved` are the fingerprints of the findings that moved to
    another problem between the scans, and are open in the later one.
    """

    cluster: int
    period: DiffPeriod
    unchecked_before: RowIdSet
    unchecked: RowIdSet
    in_scope: Callable[[UnseenFinding], bool]
    explanation: _Explanation
    times: Times
    owner_of: OwnerOf | None
    moved: frozenset[bytes] = frozenset()

    @classmethod
    def read(cls, connection: Connection, before: ScanRow, now: ScanRow, owner_of: OwnerOf | None) -> ComparedSides:
        """Read what both passes need."""
        earlier = EarlierScan(connection, before.number, read_circumstances(connection, now.number))
        period = DiffPeriod(before.revision or 0, now.revision or 0)
        times = read_scan_ends(connection, now.cluster)
        return cls(
            cluster=now.cluster,
            period=period,
            unchecked_before=read_unchecked(connection, before.number),
            unchecked=read_unchecked(connection, now.number),
            in_scope=_make_scope_test(connection, now.number),
            explanation=_Explanation(earlier),
            times=times,
            owner_of=owner_of,
            moved=_find_moved(connection, now.cluster, period),
        )

    def compare(self, rows: Sequence[ComparedRow]) -> ProblemDifference:
        """Compare the findings of one problem."""
        self.explanation.use(rows)
        return compare_problem([row.finding for row in rows], self.period, self.explanation)


def _find_moved(connection: Connection, cluster: int, period: DiffPeriod) -> frozenset[bytes]:
    finding, later = FINDINGS.c, FINDINGS.alias("later").c
    ended = (
        finding.cluster == cluster,
        finding.until > period.before,
        finding.until <= period.now,
        finding.resolution == MOVED,
    )
    still_open = later.cluster == cluster, later.since <= period.now, later.until > period.now
    moved = select(finding.fingerprint).where(*ended)
    open_moved = connection.execute(
        select(later.fingerprint).where(*still_open, later.fingerprint.in_(moved))
    ).scalars()
    return frozenset(map(bytes, open_moved))


def _make_scope_test(connection: Connection, number: int) -> Callable[[UnseenFinding], bool]:
    """Return whether a finding is in the scope of a scan, however much of its scope the scan could list."""
    coverage = COVERAGE.c
    scope = codec.from_text(
        Scope, connection.execute(select(SCANS.c.scope).where(SCANS.c.number == number)).scalar_one()
    )
    wanted = select(coverage.api_version, coverage.kind).where(
        coverage.scan == number, coverage.state != CoverageState.SKIPPED.value
    )
    kinds = frozenset((api_group_of(row.api_version), row.kind) for row in connection.execute(wanted))
    some = bool(scope.kinds or scope.skip_kinds)
    reach = compute_listing_reach(scope, (), ())
    return lambda finding: (
        reach.selects(finding) and (not some or (api_group_of(finding.api_version), finding.kind) in kinds)
    )


def read_problems(connection: Connection, reading: ComparedSides) -> Iterator[list[ComparedRow]]:
    """The rows of each problem of which a row begins or ends between the scans, or was not checked, ordered by policy and object."""
    finding = FINDINGS.c
    before, now = reading.period
    reaching = (
        finding.cluster == reading.cluster,
        finding.until > before,
        finding.since <= now,
        finding.event.not_in(SINGLE_SCAN_EVENTS),
    )
    differs = (finding.since > before) | (finding.until <= now)
    if reading.unchecked.count:
        differs |= finding.id.in_(select_numbers(connection, reading.unchecked))
    differing = select(_PROBLEM).where(*reaching, differs)
    names = (func.min(column).over(partition_by=_PROBLEM) for column in (OBJECTS.c.namespace, OBJECTS.c.name))
    ordered = (
        _select_rows(reading)
        .where(*reaching, _PROBLEM.in_(differing))
        .order_by(
            CHECKS.c.policy,
            CHECKS.c.language,
            *names,
            _PROBLEM,
            finding.since,
            finding.id,
        )
        .execution_options(yield_per=CHUNK)
    )
    with connection.execute(ordered) as result:
        rows = (row for portion in result.partitions() for row in _build_rows(connection, reading, portion))
        for _, group in groupby(rows, key=_number_of_problem):
            yield list(group)


def _number_of_problem(row: ComparedRow) -> int:
    return row.problem


def read_rows(connection: Connection, reading: ComparedSides, numbers: Sequence[int]) -> Iterator[ComparedRow]:
    """The rows with some ids, in no order."""
    for portion in chunks(numbers):
        rows = connection.execute(_select_rows(reading).where(is_among(connection, FINDINGS.c.id, portion))).all()
        yield from _build_rows(connection, reading, rows)


def _select_rows(reading: ComparedSides) -> Select[Any]:
    """The query of the rows for `_build_rows`, in no order."""
    finding, of_object = FINDINGS.c, OBJECTS.c
    history = (
        finding.id,
        finding.fingerprint,
        finding.continues,
        finding.since,
        finding.until,
        finding.first,
        finding.opened,
        finding.moved_to,
    )
    return (
        select(_PROBLEM, *history, func.coalesce(finding.problem_first, finding.first), finding.resolution)
        .add_columns(finding.object, finding.resource_version, finding.verdict, finding.check)
        .add_columns(KINDS.c.api_version, KINDS.c.kind, of_object.namespace, of_object.name)
        .add_columns(_has_existed(reading.period.before), _has_existed(reading.period.now), _has_existed(finding.until))
        .add_columns(*columns_of(CHECKS, CheckColumns))
        .select_from(
            FINDINGS.join(CHECKS, CHECKS.c.id == finding.check)
            .join(KINDS, KINDS.c.id == finding.kind)
            .join(OBJECTS, of_object.id == finding.object)
        )
    )


def _has_existed(revision: int | ColumnElement[int]) -> ColumnElement[bool]:
    """The condition that the object of a finding is in the population at a revision."""
    interval = POPULATION.c
    of_object = interval.object == FINDINGS.c.object
    return exists().where(of_object, interval.since <= revision, interval.until > revision)


def _build_rows(
    connection: Connection, reading: ComparedSides, portion: Sequence[Sequence[Any]]
) -> Iterator[ComparedRow]:
    verdicts = read_verdicts(connection, {row[13] for row in portion})
    for row in portion:
        problem, *history, resolution, object_id, version, verdict_id, check_id = row[:15]
        api_version, kind, namespace, name, existed, exists_now, there = row[15:22]
        check, verdict = CheckColumns._make(row[22:]), verdicts[verdict_id]
        effect = Effect(verdict.outcome, verdict.message, verdict.actions, verdict.denies, verdict.excepted_by)
        number, fingerprint, continues, since, until, first, opened, moved_to, problem_first = history
        finding = ComparedFinding(
            number=number,
            fingerprint=bytes(fingerprint),
            continues=None if continues is None else bytes(continues),
            since=since,
            until=until,
            first=first,
            problem_first=problem_first,
            resolution=resolution,
            object_id=object_id,
            resource_version=version,
            effect=effect,
            unchecked=number in reading.unchecked,
            opened=opened,
            moved_to=problem_id(moved_to or 0) if resolution == MOVED else "",
            open_elsewhere=bytes(fingerprint) in reading.moved,
            missed=number in reading.unchecked
            and reading.in_scope(_build_unseen(check, api_version, kind, namespace, name)),
            unchecked_before=number in reading.unchecked_before,
        )
        invocation = check.language, check.policy, check.binding, check.param_namespace, check.param_name
        place = locate_finding(check_id, object_id, check.kind, (api_version, kind, namespace, name), invocation)
        yield ComparedRow(problem, finding, place, check, bool(existed and not exists_now), bool(there), verdict)


def _build_unseen(check: CheckColumns, api_version: str, kind: str, namespace: str, name: str) -> UnseenFinding:
    invocation = check.language, check.policy, check.binding, check.param_namespace, check.param_name
    return UnseenFinding(*invocation, api_version, kind, namespace, name)
