"""Checks the intervals of revisions of findings and objects: none overlap, and none is missing where a scan has a report.

The rows of a finding are a chain, in which a row ends when the next one begins. A chain ends when another finding continues
this one; when the finding comes back, its next chain begins with a first scan of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from scanner.posture.problem_ids import check_id
from scanner.store.catalog.clusters import read_clusters
from scanner.store.history.resolution import Resolution
from scanner.store.rows.tables import (
    CHECK_NAMES,
    CONTINUED,
    FINDINGS,
    FIXES,
    OPEN,
    POPULATION,
    SCANS,
    SINGLE_SCAN_EVENTS,
)
from scanner.store.upkeep.retention_plan import NeededRevisions


class IntervalProblem(Enum):
    """The faults of an interval."""

    ENDS = "rows end before they begin"
    FUTURE = "rows begin or end with a scan that does not exist"
    OVERLAP = "rows of the same finding or object overlap"
    GAP = "rows are missing between others of the same finding or object, where a scan has a report"
    LATEST = "findings have no latest row, or several"
    FIRST = "rows of the same finding have several first scans, or a first scan after their own"
    RESOLVED = "findings were last seen by a scan outside of their time"
    CONTINUED = "findings end without the one that continues them, or continue one that does not end"


class _Revisions(NamedTuple):
    """The newest revision of a cluster, and the revisions of the scans with a report."""

    newest: int
    reported: NeededRevisions


@dataclass(frozen=True, slots=True)
class _Interval:
    id: int
    fingerprint: bytes
    since: int
    until: int
    superseded: int | None
    first: int
    event: str
    last_seen: int | None
    continues: bytes | None

    @property
    def may_end_chain(self) -> bool:
        """Return whether another finding may continue this one after the row."""
        return self.superseded == self.until and self.last_seen is None


_Place: TypeAlias = tuple[bytes, int]
"""A fingerprint, and the revision in which a finding with it ends and another one continues it."""


@dataclass(frozen=True, slots=True)
class _Continuations:
    """The places that rows continue, and those of them in which a chain ends."""

    continued: frozenset[_Place]
    ended: set[_Place] = field(default_factory=set)


def find_interval_problems(connection: Connection) -> Iterator[tuple[IntervalProblem, str]]:
    """The problems, and the row of each: `findings 12`."""
    for cluster in (row.id for row in read_clusters(connection)):
        revisions = _read_revisions(connection, cluster)
        yield from _check_findings(connection, cluster, revisions)
        yield from _check_population(connection, cluster, revisions)


def _read_revisions(connection: Connection, cluster: int) -> _Revisions:
    merged = select(SCANS.c.revision, SCANS.c.pruned_at).where(
        SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None)
    )
    rows = connection.execute(merged.order_by(SCANS.c.revision)).all()
    reported = [row.revision for row in rows if row.pruned_at is None]
    return _Revisions(rows[-1].revision if rows else 0, NeededRevisions(reported))


def _check_findings(
    connection: Connection, cluster: int, revisions: _Revisions
) -> Iterator[tuple[IntervalProblem, str]]:
    finding = FINDINGS.c
    columns = (
        finding.id,
        finding.fingerprint,
        finding.since,
        finding.until,
        finding.superseded,
        finding.first,
        finding.event,
        finding.last_seen,
    )
    wanted = select(*columns, finding.continues).where(
        finding.cluster == cluster, finding.event.not_in(SINGLE_SCAN_EVENTS)
    )
    ordered = wanted.order_by(finding.fingerprint, finding.since, finding.id).execution_options(yield_per=1000)
    continuing = select(finding.continues, finding.since, finding.id).where(
        finding.cluster == cluster, finding.continues.is_not(None)
    )
    rows_of = {(bytes(before), since): number for before, since, number in connection.execute(continuing)}
    continuations = _Continuations(frozenset(rows_of))
    with connection.execute(ordered) as rows:
        for _, group in groupby((_Interval(*row) for row in rows), key=attrgetter("fingerprint")):
            for problem, interval in _check_finding(list(group), revisions, continuations):
                yield problem, f"findings {interval.id}"
    for place, number in rows_of.items():
        # The report of the scan before needs the row that ends.
        if place not in continuations.ended and revisions.reported.overlap(place[1] - 1, place[1]):
            yield IntervalProblem.CONTINUED, f"findings {number}"


def _check_finding(
    intervals: Sequence[_Interval], revisions: _Revisions, continuations: _Continuations
) -> Iterator[tuple[IntervalProblem, _Interval]]:
    """The problems of the rows of one finding, in their order."""
    reported = revisions.reported
    for each in intervals:
        yield from ((problem, each) for problem in _check_times(each.since, each.until, revisions.newest))
        if each.last_seen is not None and each.last_seen >= each.until:
            yield IntervalProblem.RESOLVED, each
        place = bytes(each.fingerprint), each.until
        if each.may_end_chain and place in continuations.continued:
            continuations.ended.add(place)
    for chain in _split_chains(intervals):
        yield from ((IntervalProblem.FIRST, each) for each in chain if not chain[0].first == each.first <= each.since)
    before = 0
    for each in intervals:
        # A row that changed continues the one before it.
        if each.event == "changed" and before != each.since and reported.overlap(each.since - 1, each.since):
            yield IntervalProblem.GAP, each
        before = each.until
    for earlier, later in pairwise(intervals):
        if earlier.until > later.since:
            yield IntervalProblem.OVERLAP, later
    yield from _check_ends(intervals, reported, continuations.continued)


def _check_ends(
    intervals: Sequence[_Interval], reported: NeededRevisions, continued: frozenset[_Place]
) -> Iterator[tuple[IntervalProblem, _Interval]]:
    """The problems of the ends of rows: the next row begins then, or that of another finding which continues this one."""
    last = intervals[-1]
    # Without a report of that scan, a prune may have deleted the next row, if another finding continued it.
    if (
        last.superseded is not None
        and not last.may_end_chain
        and reported.overlap(last.superseded, last.superseded + 1)
    ):
        yield IntervalProblem.LATEST, last
    for earlier, later in zip(intervals, (*intervals[1:], None), strict=True):
        follows = earlier.superseded
        if follows is None:
            if later is not None:
                yield IntervalProblem.LATEST, earlier
            continue
        if later is not None and later.since == follows:
            continue
        if earlier.may_end_chain and (bytes(earlier.fingerprint), follows) in continued:
            continue
        if reported.overlap(follows, follows + 1) and (later is not None or earlier.may_end_chain):
            yield IntervalProblem.CONTINUED if later is None else IntervalProblem.GAP, later or earlier


def _split_chains(intervals: Sequence[_Interval]) -> Iterator[list[_Interval]]:
    """The rows between continuations. Where a prune deleted rows, a chain may have ended."""
    chain = [intervals[0]]
    for earlier, later in pairwise(intervals):
        if later.event in {"new", CONTINUED} or earlier.superseded != later.since:
            yield chain
            chain = []
        chain.append(later)
    yield chain


def _check_population(
    connection: Connection, cluster: int, revisions: _Revisions
) -> Iterator[tuple[IntervalProblem, str]]:
    interval = POPULATION.c
    wanted = select(interval.object, interval.since, interval.until).where(interval.cluster == cluster)
    ordered = wanted.order_by(interval.object, interval.since).execution_options(yield_per=1000)
    with connection.execute(ordered) as rows:
        before = -1, 0
        # An object in a list that is older than that of a scan which ended first can be there for one scan alone, once more.
        for object_id, since, until in rows:
            where, is_alone = f"population {object_id}", until == since + 1
            newest = max(revisions.newest, until) if is_alone and since <= revisions.newest else revisions.newest
            yield from ((problem, where) for problem in _check_times(since, until, newest))
            if before[0] == object_id and before[1] > since:
                yield IntervalProblem.OVERLAP, where
            # An object that is gone and comes back is another object: the intervals of one have no hole.
            if before[0] == object_id and revisions.reported.overlap(before[1], since) and not is_alone:
                yield IntervalProblem.GAP, where
            before = object_id, until


def _check_times(since: int, until: int, newest: int) -> Iterator[IntervalProblem]:
    if until <= since:
        yield IntervalProblem.ENDS
    if since > newest or (until != OPEN and until > newest):
        yield IntervalProblem.FUTURE


# Checks what rows of findings record besides their intervals: problems and their clocks, episodes, reasons, and
# fixes.
#
# Rows of older versions, which recorded few of these, have null there: a comparison with null is no problem.

SHOWN: Final = 5
"""The number of rows that one problem names."""
_OWN: Final = FINDINGS.c
_ID_LENGTH: Final = len(check_id("", "", "", "", 0))
_OF_ROWS: Final[dict[str, ColumnElement[bool]]] = {
    "findings have no problem": and_(_OWN.problem_opened.is_not(None), _OWN.problem.is_(None)),
    "findings opened before their first scan, or not when their row began": or_(
        _OWN.opened < _OWN.first,
        _OWN.opened > _OWN.since,
        and_(_OWN.event.in_(("new", "reopened")), _OWN.opened != _OWN.since),
    ),
    "clocks of problems contradict each other": or_(
        _OWN.problem_first > _OWN.problem_opened,
        _OWN.problem_opened > _OWN.since,
        _OWN.problem_first.is_(None) != _OWN.problem_opened.is_(None),
    ),
    "findings were resolved without a reason, or have a reason and were not resolved": or_(
        and_(_OWN.last_seen.is_not(None), _OWN.problem.is_not(None), _OWN.resolution.is_(None)),
        and_(_OWN.last_seen.is_(None), _OWN.resolution.is_not(None)),
        _OWN.resolution.not_in([reason.value for reason in Resolution]),
    ),
    "findings continue others without naming them, or name others without continuing them": (
        (_OWN.event == CONTINUED) != _OWN.continues.is_not(None)
    ),
}
"""What is wrong with a row of a finding if a condition holds."""


def find_clock_problems(connection: Connection) -> Iterator[tuple[str, str]]:
    """The problems, with some of the rows of each: `findings 3, 12`."""
    for what, wrong in _OF_ROWS.items():
        of_row = select(_OWN.id).where(_OWN.event.not_in(SINGLE_SCAN_EVENTS), wrong).order_by(_OWN.id)
        yield from _report_rows(connection, what, "findings", of_row)
    problem, opened = _OWN.problem, _OWN.problem_opened
    # A problem with open rows of an older version has clocks that are not known of all of them.
    differing = func.min(opened) != func.max(opened), func.count() == func.count(opened)
    several = select(func.min(_OWN.id)).where(_OWN.until == OPEN, problem.is_not(None)).group_by(_OWN.cluster, problem)
    what = "open findings of one problem have several begins of its episode"
    yield from _report_rows(connection, what, "findings", several.having(and_(*differing)))
    name = CHECK_NAMES.c.name
    ill_formed = or_(func.length(name) != _ID_LENGTH, func.substr(name, 1, 2) != "c-")
    yield from _report_rows(
        connection, "ids of checks have another form", "check_names", select(name).where(ill_formed)
    )
    known = [row.id for row in read_clusters(connection)]
    for revision in (FIXES.c.revision, FIXES.c.opened):
        there = select(SCANS.c.number).where(SCANS.c.cluster == FIXES.c.cluster, SCANS.c.revision == revision)
        missing = select(revision).where(FIXES.c.cluster.in_(known), ~there.exists())
        yield from _report_rows(
            connection, "fixes refer to revisions that do not exist", f"fixes.{revision.name}", missing
        )


def _report_rows(
    connection: Connection, what: str, table: str, rows: Select[tuple[object]]
) -> Iterator[tuple[str, str]]:
    if numbers := connection.execute(rows.limit(SHOWN)).scalars().all():
        yield what, f"{table} {', '.join(map(str, numbers))}"
