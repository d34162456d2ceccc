"""Reads the daily tallies of a cluster: see `daily_lists`.

A quarter has hundreds of thousands, of which a day shares most with the day before: only the lists that differ are read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain, pairwise
from typing import Final, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import Connection, select

from scanner.model.policy import PolicyKey
from scanner.model.scans.method import Method
from scanner.model.scans.register import RECENT, DayCounts, PolicyDays
from scanner.model.scans.tally import OutcomeName
from scanner.posture.history.daily import DailyKey, Day
from scanner.posture.history.rule_digests import RulesVersion, list_changed_parts
from scanner.store.database.engine import is_among
from scanner.store.history.daily import day_of
from scanner.store.rows import codec
from scanner.store.rows.daily_lists import Counts, read_daily_lists, read_daily_sets
from scanner.store.rows.tables import DAILY_KEYS, DAYS, SCANS

_VERSION: Final = (SCANS.c.policy_set_digest, SCANS.c.server_version, SCANS.c.tool_version, SCANS.c.method)
"""The columns of a `RulesVersion`."""


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
    sums = _add_up_days(connection, cluster, since, until, places)
    tallies = (sorted((place, count) for place, count in counts.items() if count) for _, counts in sums)
    return StoredTrend(tuple(recorded.values()), tuple(DailyKey(*row[1:]) for row in keys), tallies)


_DAYS_AT_ONCE: Final = 30
_GroupT = TypeVar("_GroupT")


def _add_up_days(
    connection: Connection, cluster: int, since: date, until: date, groups: Mapping[int, _GroupT]
) -> Iterator[tuple[date, Counter[_GroupT]]]:
    """The days of a cluster in their order, and the counts of each by the groups of keys. The counter is that of the next day, too.

    A key without a group is left out.
    """
    day = DAYS.c
    of_period = day.cluster == cluster, day.day >= since.isoformat(), day.day <= until.isoformat()
    days = connection.execute(select(day.day, day.tallies).where(*of_period).order_by(day.day)).all()
    before: frozenset[int] = frozenset()
    counts = Counter[_GroupT]()
    for start in range(0, len(days), _DAYS_AT_ONCE):
        portion = days[start : start + _DAYS_AT_ONCE]
        sets = read_daily_sets(connection, {number for _, number in portion if number is not None})
        of_days = [sets.get(number, frozenset()) for _, number in portion]
        changed = frozenset(chain.from_iterable(first ^ second for first, second in pairwise([before, *of_days])))
        lists = {number: _group(content, groups) for number, content in read_daily_lists(connection, changed)}
        for (text, _), numbers in zip(portion, of_days, strict=True):
            for number in numbers - before:
                counts.update(lists[number])
            for number in before - numbers:
                counts.subtract(lists[number])
            before = numbers
            yield date.fromisoformat(text), counts


def _group(content: Counts, groups: Mapping[int, _GroupT]) -> Counter[_GroupT]:
    grouped = Counter[_GroupT]()
    for key, count in content.items():
        if key in groups:
            grouped[groups[key]] += count
    return grouped


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
    keys = connection.execute(select(key.id, key.policy, key.outcome.in_(sorted(failing))))
    groups = {number: (policy, bool(fails)) for number, policy, fails in keys}
    counts: dict[str, dict[date, int]] = {policy: {} for policy in sorted({policy for policy, _ in groups.values()})}
    for day, sums in _add_up_days(connection, cluster, since, until, groups):
        for (policy, _), count in sums.items():
            if count:
                counts[policy][day] = sums[policy, True]
    return {policy: days for policy, days in counts.items() if days}


def count_outcomes_by_day(
    connection: Connection, cluster: int, since: date, until: date, *, names: Collection[str]
) -> dict[date, dict[tuple[str, bool], int]]:
    """The numbers of outcomes of policies by day, and by outcome and whether it depends on the requester."""
    key = DAILY_KEYS.c
    wanted = select(key.id, key.outcome, key.requester).where(is_among(connection, key.policy, sorted(names)))
    groups = {number: (outcome, bool(requester)) for number, outcome, requester in connection.execute(wanted)}
    sums = _add_up_days(connection, cluster, since, until, groups)
    return {day: counts for day, of_day in sums if (counts := dict(+of_day))}


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


def read_policy_days(connection: Connection, cluster: int, until: date) -> PolicyDays:
    """The last `RECENT` days of each policy until a date; a policy has no line for a day on which it had no check."""
    key = DAILY_KEYS.c
    keys = connection.execute(select(key.id, key.language, key.policy, key.outcome.in_(_FAILING)))
    groups = {number: ((language, name), bool(fails)) for number, language, name, fails in keys}
    lines: defaultdict[PolicyKey, list[DayCounts]] = defaultdict(list)
    first = until - timedelta(days=RECENT - 1)
    for day, sums in _add_up_days(connection, cluster, first, until, groups):
        for each in sorted({each for (each, _), count in sums.items() if count}):
            lines[each].append(DayCounts(day, sums[each, True], 0, 0))
    return {each: tuple(lines[each]) for each in sorted(lines)}
