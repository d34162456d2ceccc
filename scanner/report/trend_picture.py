"""The trend of a cluster as a picture: the open findings at the end of each recorded day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scanner.model.register import DayCounts

WIDTH: Final = 720
HEIGHT: Final = 120
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class Trend:
    """A line through `points`, each a pair of coordinates as text, and the days behind it, newest first.

    `highest` is the number of findings at the top of the picture.
    """

    points: str
    area: str
    highest: int
    first: DayCounts
    last: DayCounts
    days: tuple[DayCounts, ...]


def trend_of(days: Sequence[DayCounts]) -> Trend | None:
    """The trend of some days in their order; None for fewer than two. Days without a scan leave no gap in the line, but in its time."""
    if len(days) < _LEAST:
        return None
    highest = max(1, *(each.findings for each in days))
    span = (days[-1].day - days[0].day).days
    points = [
        f"{WIDTH * (each.day - days[0].day).days / span:.1f},{HEIGHT - HEIGHT * each.findings / highest:.1f}"
        for each in days
    ]
    line = " ".join(points)
    return Trend(line, f"0,{HEIGHT} {line} {WIDTH},{HEIGHT}", highest, days[0], days[-1], tuple(reversed(days)))
