"""The trend of findings as the points of an SVG line, from the comparable scans of a register."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scanner.model.register import Register, ScanLine

_WIDTH: Final = 1000
_HEIGHT: Final = 160
_LEAST: Final = 2


@dataclass(frozen=True, slots=True)
class Point:
    """A scan in the chart: its place in a box of 1000 by 160, from the top left."""

    x: str
    y: str
    line: ScanLine


@dataclass(frozen=True, slots=True)
class TrendChart:
    """The points, the oldest first, `highest` the largest number of findings; no points for fewer than two scans."""

    points: tuple[Point, ...]
    highest: int
    marks: str


def trend_chart(register: Register) -> TrendChart:
    """The chart of the ended scans with the scope of the report's scan."""
    lines = [line for line in reversed(register.lines) if line.alike and line.state in ("complete", "incomplete")]
    if len(lines) < _LEAST:
        return TrendChart((), 0, "")
    highest = max(line.findings for line in lines)
    points = tuple(_point(place, line, lines, highest) for place, line in enumerate(lines))
    return TrendChart(points, highest, " ".join(f"{point.x},{point.y}" for point in points))


def _point(place: int, line: ScanLine, lines: Sequence[ScanLine], highest: int) -> Point:
    """The place by the time of the scan; 0 is the bottom of the box."""
    first, last = lines[0].started_at, lines[-1].started_at
    share = (line.started_at - first) / (last - first) if last > first else place / (len(lines) - 1)
    return Point(f"{_WIDTH * share:.1f}", f"{_HEIGHT * (1 - line.findings / max(highest, 1)):.1f}", line)
