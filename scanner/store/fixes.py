"""Times to fix: how long problems were open that scans saw fixed. The numbers stay when the scans are pruned.

Only *fixed* counts: see `resolutions`. The time ends with the scan that no longer found the problem.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, timedelta

from sqlalchemy import Connection, and_, delete, select

from scanner.posture.daily import TimeToFix
from scanner.store.closing_sums import forget_sums
from scanner.store.daily import day_of
from scanner.store.engine import among
from scanner.store.interning import chunks
from scanner.store.logical_rows import PARTS
from scanner.store.tables import FIXES, SCANS


def times_to_fix(connection: Connection, cluster: int, since: date, until: date = date.max) -> tuple[TimeToFix, ...]:
    """The times of the problems of a cluster that scans saw fixed from a day to another one (UTC), by policy, in the order of the names."""
    times: defaultdict[tuple[str, str], dict[timedelta, int]] = defaultdict(dict)
    for language, policy, took, problems in _fixes(connection, cluster, since, until):
        of_policy = times[policy, language]
        of_policy[took] = of_policy.get(took, 0) + problems
    return tuple(
        TimeToFix(language, policy, sum(counts.values()), _within(counts, 50), _within(counts, 90))
        for (policy, language), counts in sorted(times.items())
    )


def _fixes(connection: Connection, cluster: int, since: date, until: date) -> Iterator[tuple[str, str, timedelta, int]]:
    begin, end = SCANS.alias("begin"), SCANS.alias("end")
    own = FIXES.c
    wanted = (
        select(own.language, own.policy, begin.c.finished_at.label("begun"), end.c.finished_at, own.problems)
        .join(begin, and_(begin.c.cluster == own.cluster, begin.c.revision == own.opened))
        .join(end, and_(end.c.cluster == own.cluster, end.c.revision == own.revision))
        .where(own.cluster == cluster)
    )
    for language, policy, begun, finished, problems in connection.execute(wanted):
        if since.isoformat() <= day_of(finished) <= until.isoformat():
            # A clock may have been set back between the scans.
            yield language, policy, max(finished - begun, timedelta()), problems


def _within(counts: Mapping[timedelta, int], percent: int) -> timedelta:
    """The shortest time within which so many of a hundred problems were fixed, by the number of problems of each time."""
    total, fixed = sum(counts.values()), 0
    for took in sorted(counts):
        fixed += counts[took]
        if fixed * 100 >= total * percent:
            return took
    return timedelta()


def forget_fixes(connection: Connection, cluster: int, before: date) -> int:
    """Delete the fixes of pruned scans that ended before a day; return the number of deleted rows."""
    own, end = FIXES.c, SCANS.c
    joined = select(own.revision, end.finished_at).distinct()
    joined = joined.join(SCANS, and_(end.cluster == own.cluster, end.revision == own.revision))
    pruned = connection.execute(joined.where(own.cluster == cluster, end.pruned_at.is_not(None))).all()
    old = [revision for revision, finished in pruned if day_of(finished) < before.isoformat()]
    deleted = 0
    for portion in chunks(old):
        chosen = among(connection, own.revision, portion)
        scans = select(end.number).where(end.cluster == cluster, among(connection, end.revision, portion))
        forget_sums(connection, PARTS[FIXES.name], connection.execute(scans).scalars().all())
        deleted += connection.execute(delete(FIXES).where(own.cluster == cluster, chosen)).rowcount
    return deleted
