"""Counts the failing checks of each policy at the end of each recorded day."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from typing import Final

from sqlalchemy import Connection, Integer, cast, func, select

from scanner.model.policy import PolicyKey
from scanner.model.register import RECENT, DayCounts, PolicyDays
from scanner.model.scan import OutcomeName
from scanner.store.tables import DAILY, DAILY_KEYS, DAYS

_FAILING: Final = (OutcomeName.VIOLATED.value, OutcomeName.ERRORED_DENY.value, OutcomeName.ERRORED_ADMIT.value)


def policy_days_of(connection: Connection, cluster: int, until: date, policy: PolicyKey | None = None) -> PolicyDays:
    """The last `RECENT` days until a date, of one policy or of all; a policy has no line for a day on which it had no check."""
    key, day = DAILY_KEYS.c, DAYS.c
    fails = cast(key.outcome.in_(_FAILING), Integer)
    chosen = () if policy is None else (key.language == policy[0], key.policy == policy[1])
    marked = select(key.id, key.language, key.policy, fails.label("fails")).where(*chosen).subquery()
    own = marked.c.language, marked.c.policy, day.day
    wanted = select(*own, func.sum(DAILY.c.count * marked.c.fails)).select_from(DAILY)
    wanted = wanted.join(marked, marked.c.id == DAILY.c.key).join(DAYS, day.number == DAILY.c.day)
    first = until - timedelta(days=RECENT - 1)
    if policy is not None:  # the keys of a policy have near ids, which the index of the tallies finds
        low, high = connection.execute(select(func.min(key.id), func.max(key.id)).where(*chosen)).one()
        wanted = wanted.where(DAILY.c.key.between(low or 0, high or 0))
    of_days = wanted.where(day.cluster == cluster, day.day >= first.isoformat(), day.day <= until.isoformat())
    lines: defaultdict[PolicyKey, list[DayCounts]] = defaultdict(list)
    for language, name, recorded, number in connection.execute(of_days.group_by(*own).order_by(*own)):
        lines[language, name].append(DayCounts(date.fromisoformat(recorded), int(number), 0, 0))
    return {each: tuple(days) for each, days in lines.items()}
