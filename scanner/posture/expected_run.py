"""The last time at which a schedule expected a run, and how long the schedule lets pass between two runs around it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from scanner.model.schedule import Schedule

_PERIODS: Final = tuple(timedelta(hours=hours) for hours in (1, 24, 24 * 8, 24 * 40, 24 * 400, 24 * 366 * 5))
"""How far back to search, the shortest first: a schedule may have a time each minute, or one in five years."""


@dataclass(frozen=True, slots=True)
class ExpectedRun:
    """The last expected time `at`, and the `following` one, None if there is none within five years.

    `interval` is the longer one of the times before and after `at`: after a weekend without runs, the first run is still due when
    the next day has begun. None if the schedule has one time only.
    """

    at: datetime
    following: datetime | None
    interval: timedelta | None

    def is_last(self, moment: datetime) -> bool:
        """Return whether no other time was expected by a moment."""
        return self.at <= moment and (self.following is None or moment < self.following)


def expected_run(schedule: Schedule, moment: datetime) -> ExpectedRun | None:
    """The last expected run at a moment, None if there was none within five years."""
    times: list[datetime] = []
    for period in _PERIODS:
        times = list(schedule.between(moment - period, moment))
        if len(times) > 1:
            break
    if not times:
        return None
    following = schedule.after(moment)
    around = [*times[-2:], *([following] if following else [])]
    lengths = [later - earlier for earlier, later in pairwise(around)]
    return ExpectedRun(times[-1], following, max(lengths, default=None))
