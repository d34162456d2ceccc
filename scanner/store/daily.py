"""Daily tallies: the counts of a cluster's last complete scan of each day, which stay when the scan is pruned.

Days are in UTC. A scan of some namespaces, kinds, policies, bindings or labels is not a scan of the day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import UTC, date, datetime
from typing import Final, TypeAlias

from sqlalchemy import Connection, delete, func, insert, select, update

from scanner.model.policy import BindingKey
from scanner.model.scan import Scope
from scanner.store.closing_sums import forget_sums, sum_rows
from scanner.store.engine import insert_rows
from scanner.store.ids import reserve
from scanner.store.interning import Interned
from scanner.store.logical_rows import DAILY_TALLIES
from scanner.store.tables import CHECKS, DAILY, DAILY_KEYS, DAYS, SCANS, TALLIES

KEPT_DAYS: Final = 400
"""The least number of days for which daily tallies are kept."""

_Key: TypeAlias = tuple[str, str, str, str, bool]


def covers_a_day(scope: Scope) -> bool:
    """Return whether a complete scan with this scope stands for its cluster's day."""
    return not scope.is_limited


def day_of(moment: datetime) -> str:
    """The day of a moment, in UTC: 2026-03-31."""
    return moment.astimezone(UTC).date().isoformat()


def record_day(
    connection: Connection, cluster: int, scan: int, finished_at: datetime, previews: Collection[BindingKey]
) -> None:
    """Record the tallies of a scan as those of its day, unless the day has those of a scan with a later date (ADR 44).

    `previews` are the bindings that `--assume-bound` added: their outcomes are not in force. The connection is in a
    transaction that writes history, and the tallies of the scan are written.
    """
    if _has_later(connection, cluster, finished_at):
        return
    counts: Counter[_Key] = Counter()
    for key, binding, count in _tallies(connection, scan):
        if binding not in previews:
            counts[key] += count
    keys = list(counts)
    number = _day(connection, cluster, scan, day_of(finished_at))
    ids = Interned(connection, DAILY_KEYS).ids(keys)
    rows = sorted((number, own, counts[key]) for own, key in zip(ids, keys, strict=True))
    insert_rows(connection, DAILY, ("day", "key", "count"), rows)
    sum_rows(connection, [DAILY_TALLIES], scan, rows)


def _has_later(connection: Connection, cluster: int, moment: datetime) -> bool:
    """Return whether the day of a moment has the tallies of a scan that ended later."""
    of_day = DAYS.c.cluster == cluster, DAYS.c.day == day_of(moment)
    ended = select(SCANS.c.finished_at).join(DAYS, DAYS.c.scan == SCANS.c.number).where(*of_day)
    recorded = connection.execute(ended).scalar()
    return recorded is not None and recorded > moment


def _tallies(connection: Connection, scan: int) -> list[tuple[_Key, BindingKey, int]]:
    check, own = CHECKS.c, TALLIES.c
    columns = check.language, check.policy, check.binding, own.namespace, own.outcome, own.requester
    wanted = select(*columns, func.sum(own.count)).select_from(TALLIES.join(CHECKS)).where(own.scan == scan)
    return [
        ((language, policy, namespace, outcome, requester), (language, policy, binding), int(count))
        for language, policy, binding, namespace, outcome, requester, count in connection.execute(
            wanted.group_by(*columns)
        )
    ]


def _day(connection: Connection, cluster: int, scan: int, day: str) -> int:
    """The number of a day of a cluster, without tallies."""
    of_day = select(DAYS.c.number, DAYS.c.scan).where(DAYS.c.cluster == cluster, DAYS.c.day == day)
    present = connection.execute(of_day).one_or_none()
    if present is None:
        [number] = reserve(connection, DAYS, 1)
        values = {"number": number, "cluster": cluster, "day": day, "scan": scan}
        connection.execute(insert(DAYS).values(values))
        return number
    number, before = present
    forget_sums(connection, DAILY_TALLIES, [before])
    connection.execute(delete(DAILY).where(DAILY.c.day == number))
    connection.execute(update(DAYS).where(DAYS.c.number == number).values(scan=scan))
    return int(number)


def forget_days(connection: Connection, cluster: int, before: date) -> int:
    """Delete the tallies of days before a date whose scans were pruned; return the number of deleted rows."""
    own = DAYS.c
    old = own.cluster == cluster, own.day < before.isoformat(), SCANS.c.pruned_at.is_not(None)
    joined = select(own.number, own.scan).join(SCANS, SCANS.c.number == own.scan)
    deleted = 0
    for number, scan in connection.execute(joined.where(*old)).all():
        forget_sums(connection, DAILY_TALLIES, [scan])
        deleted += connection.execute(delete(DAILY).where(DAILY.c.day == number)).rowcount
        deleted += connection.execute(delete(DAYS).where(own.number == number)).rowcount
    return deleted
