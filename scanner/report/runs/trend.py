"""The parts of a trend as JSON objects: `docs/trend.schema.json`. A minor version only adds fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Final

from scanner.model.json import Json
from scanner.model.scans.register import DayCounts
from scanner.posture.history.daily import DailyKey, Day, TimeToFix
from scanner.report.document.section_digests import encode_row


def day_json(day: Day) -> dict[str, Json]:
    """A day without its tallies."""
    return {
        "day": day.day.isoformat(),
        "scanId": day.scan,
        "findings": day.findings,
        "new": day.new,
        "resolved": day.resolved,
        "rulesChanged": None if day.rules_changed is None else [part.value for part in day.rules_changed],
    }


def key_json(key: DailyKey) -> dict[str, str | bool]:
    """A tally without its count."""
    return {
        "language": key.language,
        "policy": key.policy,
        "namespace": key.namespace,
        "outcome": key.outcome,
        "dependsOnRequester": key.requester,
    }


class DayDigests:
    """Computes the digests of the tallies of days, given their keys: see `section_digests`, whose form the lines have."""

    def __init__(self, keys: Iterable[DailyKey]) -> None:
        """Encode each key once: a quarter has hundreds of thousands of tallies."""
        # The count is the first member of a line, because keys are sorted.
        self._ends = [encode_row({**key_json(key)})[1:] for key in keys]

    def compute(self, tallies: Iterable[tuple[int, int]]) -> str:
        """The SHA-256, in hex, of the tallies of a day, given the places of their keys and their numbers of outcomes."""
        lines = sorted(b'{"count":%d,%s\n' % (count, self._ends[place]) for place, count in tallies if count)
        return sha256(b"".join(lines)).hexdigest()


def fix_json(fixed: TimeToFix) -> dict[str, str | int]:
    """The times to fix of a policy."""
    return {
        "language": fixed.language,
        "policy": fixed.policy,
        "problems": fixed.problems,
        "medianSeconds": seconds(fixed.median),
        "p90Seconds": seconds(fixed.p90),
    }


def seconds(took: timedelta) -> int:
    """A time in whole seconds."""
    return round(took.total_seconds())


# The trend of a cluster as a small line in a list of clusters: the open findings at the end of each recorded day.

WIDTH: Final = 720
HEIGHT: Final = 120
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class TrendPicture:
    """A line through `points`, each a pair of coordinates as text.

    `highest` is the number of findings at the top of the picture.
    """

    points: str
    highest: int
    first: DayCounts
    last: DayCounts


def trend_of(days: Sequence[DayCounts]) -> TrendPicture | None:
    """The trend of some days in their order; None for fewer than two. Days without a scan leave no gap in the line, but in its time."""
    if len(days) < _LEAST:
        return None
    highest = max(1, *(each.findings for each in days))
    span = (days[-1].day - days[0].day).days
    points = [
        f"{WIDTH * (each.day - days[0].day).days / span:.1f},{HEIGHT - HEIGHT * each.findings / highest:.1f}"
        for each in days
    ]
    return TrendPicture(" ".join(points), highest, days[0], days[-1])
