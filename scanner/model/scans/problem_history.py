"""The numbers behind the charts of a report: problems over time, their ages, where they are, and how long they took to fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from scanner.model.policy import PolicyKey


class HistoryDay(NamedTuple):
    """A day (UTC) with a scan. `open` are the open problems of its last complete scan, by the rank of their severity, 0 for the worst.

    It is None if no scan of the whole cluster was complete, or if that scan was pruned. `new`, `reopened` and `fixed` count the
    problems that all scans of the day found so; the problems of the very first scan are not new. `rules_changed` names the
    parts of the rules that differ from those of the recorded day before.
    """

    day: date
    open: tuple[int, ...] | None
    new: int = 0
    reopened: int = 0
    fixed: int = 0
    rules_changed: tuple[str, ...] = ()
    pruned: bool = False


class ProblemAge(NamedTuple):
    """The open problems of one severity, by its rank, that one scan opened, which ended at `opened`."""

    rank: int
    opened: datetime
    problems: int


class ProblemCell(NamedTuple):
    """The open problems of a policy in a namespace; the empty name stands for cluster-scoped objects."""

    namespace: str
    policy: PolicyKey
    problems: int


class FixedProblems(NamedTuple):
    """Problems of a policy that were fixed, and for how long they had been open."""

    policy: PolicyKey
    took: timedelta
    problems: int


@dataclass(frozen=True, slots=True)
class ProblemHistory:
    """The days in their order; ages and cells are those of the open problems of one scan, in no order."""

    days: tuple[HistoryDay, ...] = ()
    ages: tuple[ProblemAge, ...] = ()
    cells: tuple[ProblemCell, ...] = ()
    fixed: tuple[FixedProblems, ...] = ()


def find_percentile(counts: Mapping[timedelta, int], percent: int) -> timedelta:
    """The shortest time within which so many of a hundred problems were fixed, by the number of problems of each time; 0 without any."""
    total, fixed = sum(counts.values()), 0
    for took in sorted(counts):
        fixed += counts[took]
        if fixed * 100 >= total * percent:
            return took
    return timedelta()
