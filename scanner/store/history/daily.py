"""Daily tallies: the counts of a cluster's last complete scan of each day, which stay when the scan is pruned.

Days are in UTC. A scan of some namespaces, kinds, policies, bindings or labels is not a scan of the day.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, delete, insert, select, update

from scanner.model.policy import BindingKey
from scanner.model.scans.problem_history import find_percentile
from scanner.posture.history.daily import TimeToFix
from scanner.store.database.engine import is_among
from scanner.store.rows.closing_sums import forget_sums, sum_rows
from scanner.store.rows.daily_lists import write_daily_lists
from scanner.store.rows.interning import Interner, chunks, reserve_ids
from scanner.store.rows.logical_rows import DAILY_TALLIES, PARTS
from scanner.store.rows.tables import CHECKS, DAILY_KEYS, DAYS, FIXES, SCANS
from scanner.store.rows.tally_lists import TallyRow

KEPT_DAYS: Final = 400
"""The least number of days for which daily tallies are kept."""

_Key: TypeAlias = tuple[str, str, str, str, bool]
"""Language, policy, namespace, outcome, and whether it depends on the requester."""
_NAMESPACE: Final = 2


def day_of(moment: datetime) -> str:
    """The day of a moment, in UTC: 2026-03-31."""
    return moment.astimezone(UTC).date().isoformat()


class ScanOfDay(NamedTuple):
    """A scan that may stand for its day: the ids of cluster and scan, and when it ended."""

    cluster: int
    number: int
    finished_at: datetime


def record_day(
    connection: Connection, scan: ScanOfDay, tallies: Iterable[TallyRow], previews: Collection[BindingKey]
) -> None:
    """Record the tallies of a scan as those of its day, unless the day has those of a scan with a later date (ADR 44).

    `previews` are the bindings that `--assume-bound` added: their outcomes are not in force. The connection is in a
    transaction that writes history.
    """
    if _has_later(connection, scan):
        return
    counts = _count_by_key(connection, tallies, previews)
    ids = dict(zip(counts, Interner(connection, DAILY_KEYS).intern(list(counts)), strict=True))
    lists: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for key, count in counts.items():
        lists[key[_NAMESPACE]][ids[key]] = count
    number = _write_day(connection, scan, write_daily_lists(connection, lists.values()))
    sum_rows(connection, [DAILY_TALLIES], scan.number, [(number, ids[key], count) for key, count in counts.items()])


def _has_later(connection: Connection, scan: ScanOfDay) -> bool:
    """Return whether the day of a scan has the tallies of a scan that ended later."""
    of_day = DAYS.c.cluster == scan.cluster, DAYS.c.day == day_of(scan.finished_at)
    ended = select(SCANS.c.finished_at).join(DAYS, DAYS.c.scan == SCANS.c.number).where(*of_day)
    recorded = connection.execute(ended).scalar()
    return recorded is not None and recorded > scan.finished_at


def _count_by_key(
    connection: Connection, tallies: Iterable[TallyRow], previews: Collection[BindingKey]
) -> dict[_Key, int]:
    check = CHECKS.c
    rows = list(tallies)
    wanted = select(check.id, check.language, check.policy, check.binding)
    policies: dict[int, BindingKey] = {}
    for portion in chunks(list({row.check for row in rows})):
        chosen = wanted.where(is_among(connection, check.id, portion))
        policies |= {number: (language, policy, name) for number, language, policy, name in connection.execute(chosen)}
    counts: Counter[_Key] = Counter()
    for row in rows:
        binding = policies[row.check]
        if binding not in previews:
            counts[(*binding[:2], row.namespace, row.outcome, row.requester)] += row.number
    return counts


def _write_day(connection: Connection, scan: ScanOfDay, tallies: int) -> int:
    """Let a set of lists be the tallies of the day of a scan; returns the number of the day."""
    of_day = DAYS.c.cluster == scan.cluster, DAYS.c.day == day_of(scan.finished_at)
    present = connection.execute(select(DAYS.c.number, DAYS.c.scan).where(*of_day)).one_or_none()
    if present is None:
        [number] = reserve_ids(connection, DAYS, 1)
        values = {"number": number, "cluster": scan.cluster, "day": day_of(scan.finished_at)}
        connection.execute(insert(DAYS).values(**values, scan=scan.number, tallies=tallies))
        return number
    number, before = present
    forget_sums(connection, DAILY_TALLIES, [before])
    connection.execute(update(DAYS).where(DAYS.c.number == number).values(scan=scan.number, tallies=tallies))
    return int(number)


def forget_days(connection: Connection, cluster: int, before: date) -> int:
    """Delete the days before a date whose scans were pruned; return their number."""
    day = DAYS.c
    old = day.cluster == cluster, day.day < before.isoformat(), SCANS.c.pruned_at.is_not(None)
    joined = select(day.number, day.scan).join(SCANS, SCANS.c.number == day.scan)
    deleted = 0
    for number, scan in connection.execute(joined.where(*old)).all():
        forget_sums(connection, DAILY_TALLIES, [scan])
        deleted += connection.execute(delete(DAYS).where(day.number == number)).rowcount
    return deleted


# Times to fix: how long problems were open that scans saw fixed. The numbers stay when the scans are pruned.
#
# Only *fixed* counts: see `resolution`. The time ends with the scan that no longer found the problem.


def read_times_to_fix(
    connection: Connection, cluster: int, since: date, until: date = date.max
) -> tuple[TimeToFix, ...]:
    """The times of the problems of a cluster that scans saw fixed from a day to another one (UTC), by policy, in the order of the names."""
    times: defaultdict[tuple[str, str], dict[timedelta, int]] = defaultdict(dict)
    for language, policy, took, _, problems in read_fixes(connection, cluster, since, until):
        of_policy = times[policy, language]
        of_policy[took] = of_policy.get(took, 0) + problems
    return tuple(
        TimeToFix(language, policy, sum(counts.values()), find_percentile(counts, 50), find_percentile(counts, 90))
        for (policy, language), counts in sorted(times.items())
    )


def read_fixes(
    connection: Connection, cluster: int, since: date, until: date
) -> Iterator[tuple[str, str, timedelta, str, int]]:
    """Problems that scans saw fixed in a period: language, policy, for how long they were open, the day of the fix, and their number."""
    begin, end = SCANS.alias("begin"), SCANS.alias("end")
    fix = FIXES.c
    wanted = (
        select(fix.language, fix.policy, begin.c.finished_at.label("begun"), end.c.finished_at, fix.problems)
        .join(begin, and_(begin.c.cluster == fix.cluster, begin.c.revision == fix.opened))
        .join(end, and_(end.c.cluster == fix.cluster, end.c.revision == fix.revision))
        .where(fix.cluster == cluster)
    )
    for language, policy, begun, finished, problems in connection.execute(wanted):
        day = day_of(finished)
        if since.isoformat() <= day <= until.isoformat():
            # A clock may have been set back between the scans.
            yield language, policy, max(finished - begun, timedelta()), day, problems


def forget_fixes(connection: Connection, cluster: int, before: date) -> int:
    """Delete the fixes of pruned scans that ended before a day; return the number of deleted rows."""
    fix, end = FIXES.c, SCANS.c
    joined = select(fix.revision, end.finished_at).distinct()
    joined = joined.join(SCANS, and_(end.cluster == fix.cluster, end.revision == fix.revision))
    pruned = connection.execute(joined.where(fix.cluster == cluster, end.pruned_at.is_not(None))).all()
    old = [revision for revision, finished in pruned if day_of(finished) < before.isoformat()]
    deleted = 0
    for portion in chunks(old):
        chosen = is_among(connection, fix.revision, portion)
        scans = select(end.number).where(end.cluster == cluster, is_among(connection, end.revision, portion))
        forget_sums(connection, PARTS[FIXES.name], connection.execute(scans).scalars().all())
        deleted += connection.execute(delete(FIXES).where(fix.cluster == cluster, chosen)).rowcount
    return deleted
