"""Reads the daily tallies of a cluster: see `daily`. A quarter has hundreds of thousands, so SQL adds up what a table shows.

All tallies of a day are one text in the result of a query: as rows of a driver they would take several times as long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, Integer, Select, String, cast, func, select

from scanner.model.policy import PolicyKey
from scanner.model.scans.method import Method
from scanner.model.scans.register import RECENT, DayCounts, PolicyDays
from scanner.model.scans.scan import OutcomeName
from scanner.posture.history.daily import DailyKey, Day
from scanner.posture.history.rule_digests import RulesVersion, list_changed_parts
from scanner.store.database.engine import is_among
from scanner.store.history.daily import day_of
from scanner.store.rows import codec
from scanner.store.rows.tables import DAILY, DAILY_KEYS, DAYS, SCANS

_VERSION: Final = (SCANS.c.policy_set_digest, SCANS.c.server_version, SCANS.c.tool_version, SCANS.c.method)
"""The columns of a `RulesVersion`."""
_SEPARATOR: Final = " "


Tallies: TypeAlias = list[tuple[int, int]]
"""Places in the keys of a trend, ascending, and the number of outcomes of each."""


@dataclass(frozen=True, slots=True)
class StoredTrend:
    """All tallies of some days. `keys` are in the order of a report; `tallies` yields those of each day, in the order of `days`."""

    days: tuple[Day, ...]
    keys: tuple[DailyKey, ...]
    tallies: Iterator[Tallies]


class TrendOfPolicies(NamedTuple):
    """Some days, and the failing outcomes of each policy on them, in the order of the names."""

    days: tuple[Day, ...]
    failing: Mapping[str, Mapping[date, int]]


class TrendOfDays(NamedTuple):
    """Some days, and the outcomes of policies on them, by outcome and whether it depends on the requester."""

    days: tuple[Day, ...]
    outcomes: Mapping[date, Mapping[tuple[str, bool], int]]


def read_days(connection: Connection, cluster: int, since: date, until: date = date.max) -> tuple[Day, ...]:
    """The recorded days of a cluster from a date to another one, in their order."""
    return tuple(_read_days(connection, cluster, since, until).values())


def _read_days(connection: Connection, cluster: int, since: date, until: date) -> dict[int, Day]:
    """The recorded days by their numbers."""
    changes = _count_changes(connection, cluster)
    before = _read_version_before(connection, cluster, since)
    columns = DAYS.c
    wanted = select(columns.number, columns.day, SCANS.c.id, SCANS.c.findings, SCANS.c.preview, *_VERSION).join(
        SCANS, SCANS.c.number == columns.scan
    )
    of_period = columns.day >= since.isoformat(), columns.day <= until.isoformat()
    wanted = wanted.where(columns.cluster == cluster, *of_period).order_by(columns.day)
    recorded: dict[int, Day] = {}
    for number, day, scan, findings, preview, *version in connection.execute(wanted):
        now = _rules_version(*version)
        # The digest of a preview covers assumed bindings.
        changed = None if preview else list_changed_parts(before, now)
        recorded[number] = Day(date.fromisoformat(day), scan, findings, *changes[day], changed)
        before = before if preview else now
    return recorded


def read_trend(
    connection: Connection, cluster: int, since: date, until: date, *, policies: Collection[str] | None = None
) -> StoredTrend:
    """All tallies of a cluster from a date to another one, of some policies or of all; those of one day are in memory at a time."""
    recorded = _read_days(connection, cluster, since, until)
    key = DAILY_KEYS.c
    names = key.policy, key.language, key.namespace, key.outcome, key.requester
    chosen = select(key.id, *(key[name] for name in DailyKey._fields)).order_by(*names)
    if policies is not None:
        chosen = chosen.where(is_among(connection, key.policy, sorted(policies)))
    keys = connection.execute(chosen).all()
    places = {row.id: place for place, row in enumerate(keys)}
    read = (_read_tallies(connection, number, places) for number in recorded)
    return StoredTrend(tuple(recorded.values()), tuple(DailyKey(*row[1:]) for row in keys), read)


def _read_tallies(connection: Connection, day: int, places: Mapping[int, int]) -> Tallies:
    daily = DAILY.c
    pair = cast(daily.key, String) + _SEPARATOR + cast(daily.count, String)
    text = connection.execute(select(func.aggregate_strings(pair, _SEPARATOR)).where(daily.day == day)).scalar()
    numbers = list(map(int, text.split())) if text else []
    pairs = zip(map(places.get, numbers[::2]), numbers[1::2], strict=True)
    return sorted((place, count) for place, count in pairs if place is not None)


def list_policies(connection: Connection) -> tuple[str, ...]:
    """The policies with a tally in any cluster, in the order of their names."""
    return tuple(connection.execute(select(DAILY_KEYS.c.policy).distinct().order_by(DAILY_KEYS.c.policy)).scalars())


def count_failing_by_policy(
    connection: Connection, cluster: int, since: date, until: date, *, failing: Collection[str]
) -> dict[str, dict[date, int]]:
    """The numbers of outcomes among `failing`, by policy, in the order of the names, and by day.

    A policy without such an outcome on a day has 0 there, and nothing on a day without any outcome.
    """
    key = DAILY_KEYS.c
    marked = select(key.id, key.policy, cast(key.outcome.in_(sorted(failing)), Integer).label("fails")).subquery()
    group = marked.c.policy, DAYS.c.day
    added = select(*group, func.sum(DAILY.c.count * marked.c.fails)).join_from(
        DAILY, marked, marked.c.id == DAILY.c.key
    )
    counts: dict[str, dict[date, int]] = {}
    for policy, day, count in connection.execute(
        _restrict_days(added, cluster, since, until).group_by(*group).order_by(*group)
    ):
        counts.setdefault(policy, {})[date.fromisoformat(day)] = int(count)
    return counts


def count_outcomes_by_day(
    connection: Connection, cluster: int, since: date, until: date, *, names: Collection[str]
) -> dict[date, dict[tuple[str, bool], int]]:
    """The numbers of outcomes of policies by day, and by outcome and whether it depends on the requester."""
    key = DAILY_KEYS.c
    group = DAYS.c.day, key.outcome, key.requester
    added = select(*group, func.sum(DAILY.c.count)).join_from(DAILY, DAILY_KEYS)
    added = _restrict_days(added, cluster, since, until).where(is_among(connection, key.policy, sorted(names)))
    counts: dict[date, dict[tuple[str, bool], int]] = {}
    for day, outcome, requester, count in connection.execute(added.group_by(*group)):
        counts.setdefault(date.fromisoformat(day), {})[outcome, requester] = int(count)
    return counts


def _restrict_days(query: Select[*tuple[Any, ...]], cluster: int, since: date, until: date) -> Select[*tuple[Any, ...]]:
    day = DAYS.c
    of_period = day.day >= since.isoformat(), day.day <= until.isoformat()
    return query.join(DAYS, day.number == DAILY.c.day).where(day.cluster == cluster, *of_period)


def _read_version_before(connection: Connection, cluster: int, since: date) -> RulesVersion | None:
    """The rules of the last recorded day before a date whose scan is no preview."""
    day = DAYS.c
    earlier = select(*_VERSION).join_from(DAYS, SCANS, SCANS.c.number == day.scan)
    earlier = earlier.where(day.cluster == cluster, day.day < since.isoformat(), ~SCANS.c.preview)
    earlier = earlier.order_by(day.day.desc()).limit(1)
    row = connection.execute(earlier).one_or_none()
    return None if row is None else _rules_version(*row)


def _rules_version(digest: str, server: str, assay: str, method: str) -> RulesVersion:
    return RulesVersion(digest, server, assay, codec.from_text(Method, method).kyverno_release if method else "")


def _count_changes(connection: Connection, cluster: int) -> dict[str, tuple[int, int]]:
    """The numbers of new and resolved findings of all merged scans of each day. Tombstones have them, too."""
    columns = SCANS.c.finished_at, SCANS.c.new, SCANS.c.resolved
    merged = select(*columns).where(SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None))
    changes: dict[str, tuple[int, int]] = {}
    for finished_at, new, resolved in connection.execute(merged):
        day = day_of(finished_at)
        before = changes.get(day, (0, 0))
        changes[day] = before[0] + new, before[1] + resolved
    return changes


_FAILING: Final = (OutcomeName.VIOLATED.value, OutcomeName.ERRORED_DENY.value, OutcomeName.ERRORED_ADMIT.value)


def read_policy_days(connection: Connection, cluster: int, until: date, policy: PolicyKey | None = None) -> PolicyDays:
    """The last `RECENT` days until a date, of one policy or of all; a policy has no line for a day on which it had no check."""
    key, day = DAILY_KEYS.c, DAYS.c
    fails = cast(key.outcome.in_(_FAILING), Integer)
    chosen = () if policy is None else (key.language == policy[0], key.policy == policy[1])
    marked = select(key.id, key.language, key.policy, fails.label("fails")).where(*chosen).subquery()
    group = marked.c.language, marked.c.policy, day.day
    wanted = select(*group, func.sum(DAILY.c.count * marked.c.fails)).select_from(DAILY)
    wanted = wanted.join(marked, marked.c.id == DAILY.c.key).join(DAYS, day.number == DAILY.c.day)
    first = until - timedelta(days=RECENT - 1)
    if policy is not None:  # the keys of a policy have near ids, which the index of the tallies finds
        low, high = connection.execute(select(func.min(key.id), func.max(key.id)).where(*chosen)).one()
        wanted = wanted.where(DAILY.c.key.between(low or 0, high or 0))
    of_days = wanted.where(day.cluster == cluster, day.day >= first.isoformat(), day.day <= until.isoformat())
    lines: defaultdict[PolicyKey, list[DayCounts]] = defaultdict(list)
    for language, name, recorded, number in connection.execute(of_days.group_by(*group).order_by(*group)):
        lines[language, name].append(DayCounts(date.fromisoformat(recorded), int(number), 0, 0))
    return {each: tuple(days) for each, days in lines.items()}
