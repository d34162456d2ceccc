"""A chart of stacked columns: its scale, its axes, its marks, and the paths of its series, in units of its own view box.

A series is one path, so a chart of 90 days and five severities has five elements, and every value stands in the table beside it.
Columns stand apart, so equal values on every day are a row of equal columns and not a slab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final, NamedTuple

WIDTH: Final = 720
HEIGHT: Final = 250
LEFT: Final = 48
"""The room of the labels of the vertical axis."""
TOP: Final = 18
"""The room of the marks."""
BOTTOM: Final = 216
"""The lowest point of the plot; labels of the horizontal axis are below."""
_RIGHT: Final = WIDTH - 16
"""The last label of a day, which is centred, has room to the right."""
_MOST_TICKS: Final = 5
_MOST_LABELS: Final = 9
_STEPS: Final = (1, 2, 5, 10)
_FILLED: Final = 0.8
"""The part of its place that a column fills."""
_WIDEST: Final = 56


class Series(NamedTuple):
    """The values of one colour, one for each place; None where nothing is known. `name` is its word in the legend, `style` its class.

    The values of a series `below` stand below zero.
    """

    name: str
    style: str
    values: tuple[int | None, ...]
    below: bool = False


class Tick(NamedTuple):
    """A label of an axis, and its place on that axis."""

    at: float
    label: str


class Mark(NamedTuple):
    """A mark above a column; `text` is its meaning."""

    at: float
    text: str


class DrawnSeries(NamedTuple):
    """A series as a path."""

    name: str
    style: str
    path: str


@dataclass(frozen=True, slots=True)
class ColumnChart:
    """A chart with everything that a template writes. `zero` is the height of the horizontal axis, `gaps` the path of places without a value.

    `heads` and `rows` are the table of the same numbers: the first cell of a row names its place.
    """

    id: str
    title: str
    description: str
    unit: str
    series: tuple[DrawnSeries, ...]
    gaps: str
    gap_name: str
    marks: tuple[Mark, ...]
    mark_name: str
    up: tuple[Tick, ...]
    along: tuple[Tick, ...]
    zero: float
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wide: bool = True


class _Scale(NamedTuple):
    """The values at both ends of the vertical axis, and the distance of its ticks."""

    low: int
    high: int
    step: int

    def height(self, value: float) -> float:
        """The height of a value in the view box, from the top."""
        return BOTTOM - (value - self.low) * (BOTTOM - TOP) / (self.high - self.low)


def draw_columns(
    name: str,
    title: str,
    description: str,
    places: Sequence[str],
    series: Sequence[Series],
    *,
    unit: str,
    place_name: str,
    marks: Sequence[tuple[int, str]] = (),
    mark_name: str = "",
    gap_name: str = "",
    notes: Sequence[str] = (),
    labels: Sequence[str] = (),
    newest_first: bool = False,
) -> ColumnChart:
    """Draw series over places, such as days. `marks` name places by number; `notes` are a further column of the table, one for each place. `labels` are shorter names for the axis.

    A series without a value is left out, as long as one is left.
    """
    used = [each for each in series if any(each.values)] or list(series[:1])
    scale = _choose_scale(used)
    width = (_RIGHT - LEFT) / max(1, len(places))
    heads = place_name, *(each.name for each in used), *(("Note",) if notes else ())
    rows = [
        (place, *(_cell(each.values[number]) for each in used), *((notes[number],) if notes else ()))
        for number, place in enumerate(places)
    ]
    return ColumnChart(
        id=name,
        title=title,
        description=description,
        unit=unit,
        series=tuple(_draw_series(used, scale, width)),
        gaps=_draw_gaps(used, width) if gap_name else "",
        gap_name=gap_name,
        marks=tuple(Mark(round(LEFT + (number + 0.5) * width, 1), text) for number, text in marks),
        mark_name=mark_name,
        up=tuple(_list_ticks(scale)),
        along=tuple(_list_labels(labels or places, width)),
        zero=round(scale.height(0), 1),
        heads=heads,
        rows=tuple(reversed(rows) if newest_first else rows),
    )


def _cell(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _choose_scale(series: Sequence[Series]) -> _Scale:
    """A scale of whole numbers from zero, with a few ticks: the highest column always ends below the top."""
    high, low = _highest([each for each in series if not each.below]), _highest([each for each in series if each.below])
    step = _choose_step((high + low) / _MOST_TICKS)
    return _Scale(-_round_up(low, step), max(step, _round_up(high, step)), step)


def _highest(series: Sequence[Series]) -> int:
    return max((sum(value or 0 for value in column) for column in zip(*(each.values for each in series))), default=0)  # noqa: B905 - equally long


def _choose_step(least: float) -> int:
    """The first of 1, 2, 5, 10, 20, 50 and so on that is no smaller."""
    if least <= 1:
        return 1
    power = 10 ** floor(log10(least))
    return int(next(power * step for step in _STEPS if power * step >= least))


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def _draw_series(series: Sequence[Series], scale: _Scale, width: float) -> Iterator[DrawnSeries]:
    above: list[int] = [0] * len(series[0].values)
    below: list[int] = [0] * len(series[0].values)
    column = min(width * _FILLED, _WIDEST)
    for each in series:
        parts: list[str] = []
        stacked, sign = (below, -1) if each.below else (above, 1)
        for place, value in enumerate(each.values):
            if not value:
                continue
            low, high = scale.height(sign * stacked[place]), scale.height(sign * (stacked[place] + value))
            left = LEFT + place * width + (width - column) / 2
            parts.append(f"M{left:.1f} {low:.1f}h{column:.1f}V{high:.1f}h-{column:.1f}z")
            stacked[place] += value
        yield DrawnSeries(each.name, each.style, "".join(parts))


def _draw_gaps(series: Sequence[Series], width: float) -> str:
    empty = [place for place, value in enumerate(series[0].values) if value is None]
    return "".join(f"M{LEFT + place * width:.1f} {TOP}h{width:.1f}V{BOTTOM}h-{width:.1f}z" for place in empty)


def _list_ticks(scale: _Scale) -> Iterator[Tick]:
    for value in range(scale.low, scale.high + 1, scale.step):
        yield Tick(round(scale.height(value), 1), f"{abs(value):,}")


def _list_labels(places: Sequence[str], width: float) -> Iterator[Tick]:
    """The labels of so many places as there is room for, the last one always."""
    every = max(1, -(-len(places) // _MOST_LABELS))
    for number, place in enumerate(places):
        if (len(places) - 1 - number) % every == 0:
            yield Tick(round(LEFT + (number + 0.5) * width, 1), place)
