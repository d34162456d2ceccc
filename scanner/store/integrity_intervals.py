"""Checks the intervals of revisions of findings and objects: none overlap, and none is missing where a scan has a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import Connection, select

from scanner.store.retention_plan import Needed
from scanner.store.tables import CLUSTERS, CONTINUED, FINDINGS, OPEN, POPULATION, PREVIEW, SCANS


class IntervalProblem(Enum):
    """What can be wrong with an interval."""

    ENDS = "rows end before they begin"
    FUTURE = "rows begin or end with a scan that does not exist"
    OVERLAP = "rows of the same finding or object overlap"
    GAP = "rows are missing between others of the same finding or object, where a scan has a report"
    LATEST = "findings have no latest row, or several"
    FIRST = "rows of the same finding have several first scans, or a first scan after their own"
    RESOLVED = "findings were last seen by a scan outside of their time"


class _Revisions(NamedTuple):
    """The newest revision of a cluster, and the revisions of the scans with a report."""

    newest: int
    reported: Needed


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
    continued_by: int | None
    """The id of the row of another finding that goes on where this row ends."""


def interval_problems(connection: Connection) -> Iterator[tuple[IntervalProblem, str]]:
    """The problems, and the row of each: `findings 12`."""
    for cluster in connection.execute(select(CLUSTERS.c.id).order_by(CLUSTERS.c.id)).scalars().all():
        revisions = _revisions(connection, cluster)
        yield from _of_findings(connection, cluster, revisions)
        yield from _of_population(connection, cluster, revisions)


def _revisions(connection: Connection, cluster: int) -> _Revisions:
    merged = select(SCANS.c.revision, SCANS.c.pruned_at).where(
        SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None)
    )
    rows = connection.execute(merged.order_by(SCANS.c.revision)).all()
    reported = [row.revision for row in rows if row.pruned_at is None]
    return _Revisions(rows[-1].revision if rows else 0, Needed(reported))


def _of_findings(connection: Connection, cluster: int, revisions: _Revisions) -> Iterator[tuple[IntervalProblem, str]]:
    own, other = FINDINGS.c, FINDINGS.alias("other")
    columns = own.id, own.fingerprint, own.since, own.until, own.superseded, own.first, own.event, own.last_seen
    goes_on = (
        (other.c.continues == own.fingerprint) & (other.c.cluster == own.cluster) & (other.c.since == own.superseded)
    )
    wanted = (
        select(*columns, other.c.id)
        .select_from(FINDINGS.outerjoin(other, goes_on))
        .where(own.cluster == cluster, own.event != PREVIEW)
    )
    ordered = wanted.order_by(own.fingerprint, own.since, own.id).execution_options(yield_per=1000)
    with connection.execute(ordered) as rows:
        for _, group in groupby((_Interval(*row) for row in rows), key=attrgetter("fingerprint")):
            for problem, interval in _of_finding(list(group), revisions):
                yield problem, f"findings {interval.id}"


def _of_finding(intervals: Sequence[_Interval], revisions: _Revisions) -> Iterator[tuple[IntervalProblem, _Interval]]:
    """The problems of the rows of one finding, in their order."""
    reported = revisions.reported
    for each in intervals:
        yield from ((problem, each) for problem in _of_times(each.since, each.until, revisions.newest))
        if each.first > each.since:
            yield IntervalProblem.FIRST, each
        if each.last_seen is not None and each.last_seen >= each.until:
            yield IntervalProblem.RESOLVED, each
    yield from ((IntervalProblem.LATEST, each) for each in _without_latest_row(intervals, reported))
    before = 0
    for each in intervals:
        # A row that changed continues the one before it.
        if each.event == "changed" and before != each.since and reported.within(each.since - 1, each.since):
            yield IntervalProblem.GAP, each
        before = each.until
    for earlier, later in pairwise(intervals):
        if earlier.until > later.since:
            yield IntervalProblem.OVERLAP, later
        follows = earlier.superseded
        if follows == later.since:
            # A finding that continues another one may be as old as that.
            if later.first > earlier.first or (later.first != earlier.first and later.event != CONTINUED):
                yield IntervalProblem.FIRST, later
        elif follows is not None and earlier.continued_by is None and reported.within(follows, follows + 1):
            yield IntervalProblem.GAP, later


def _without_latest_row(intervals: Sequence[_Interval], reported: Needed) -> Iterator[_Interval]:
    """The rows that are the latest one and should not be, or the reverse. A finding that another one continues has none."""
    *earlier, last = intervals
    yield from (each for each in earlier if each.superseded is None)
    ended = last.superseded
    if ended is not None and last.continued_by is None and reported.within(ended, ended + 1):
        yield last


def _of_population(
    connection: Connection, cluster: int, revisions: _Revisions
) -> Iterator[tuple[IntervalProblem, str]]:
    own = POPULATION.c
    wanted = select(own.object, own.since, own.until).where(own.cluster == cluster)
    ordered = wanted.order_by(own.object, own.since).execution_options(yield_per=1000)
    with connection.execute(ordered) as rows:
        before = -1, 0
        for object_id, since, until in rows:
            where = f"population {object_id}"
            yield from ((problem, where) for problem in _of_times(since, until, revisions.newest))
            if before[0] == object_id and before[1] > since:
                yield IntervalProblem.OVERLAP, where
            # An object that is gone and comes back is another object: the intervals of one have no hole.
            if before[0] == object_id and revisions.reported.within(before[1], since):
                yield IntervalProblem.GAP, where
            before = object_id, until


def _of_times(since: int, until: int, newest: int) -> Iterator[IntervalProblem]:
    if until <= since:
        yield IntervalProblem.ENDS
    if since > newest or (until != OPEN and until > newest):
        yield IntervalProblem.FUTURE
