"""Bars of daily numbers on a terminal: a scale, a bar for each day or for a few days, the dates below, and marks."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import Final

HEIGHT: Final = 6
"""The lines of a chart of bars."""
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_ASCII: Final = " ....::::#"
_MARK: Final = "^"


def can_draw_blocks() -> bool:
    """Return whether standard output can show block elements."""
    try:
        _EIGHTHS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def draw_bars(
    counts: Mapping[date, int], groups: Sequence[Sequence[date]], marks: Collection[date], *, blocks: bool
) -> Iterator[str]:
    """The lines of a chart: each group of days is a bar with the number of its last recorded day. Without one, the axis has a gap.

    The scale begins at zero, and ends with a round number above the highest one.
    """
    values = [next((counts[day] for day in reversed(group) if day in counts), None) for group in groups]
    top = round_up(max((value for value in values if value is not None), default=0))
    wide = len(f"{top:,}")
    side, corner, floor = ("┤", "└", "─") if blocks else ("|", "+", "-")
    for line in range(HEIGHT, 0, -1):
        label = {HEIGHT: f"{top:,}", HEIGHT // 2: f"{top // 2:,}" if top % 2 == 0 else ""}.get(line, "")
        bars = "".join(_draw_cell(value, line, top, blocks=blocks) for value in values)
        yield f"{label:>{wide}} {side if label else '│' if blocks else '|'}{bars}".rstrip()
    yield f"{'0':>{wide}} {corner}{''.join(' ' if value is None else floor for value in values)}".rstrip()
    first, last = f"{groups[0][0]:%m-%d}", f"{groups[-1][-1]:%m-%d}"
    if marks:
        marked = "".join(_MARK if any(day in marks for day in group) else " " for group in groups)
        yield f"{'':{wide}}  {marked}".rstrip()
    yield f"{'':{wide}}  {first}{last:>{max(len(last) + 1, len(groups) - len(first))}}"


def _draw_cell(value: int | None, line: int, top: int, *, blocks: bool) -> str:
    """The part of a bar in a line, counted from below. A number above zero is always seen."""
    if not value:
        return " "
    eighths = max(1, round(value * HEIGHT * 8 / top)) - (line - 1) * 8
    return (_EIGHTHS if blocks else _ASCII)[min(max(eighths, 0), 8)]


def round_up(number: int) -> int:
    """The next of 2, 4, 6, 8, 10, 20, 40 and so on: half of it is a whole number."""
    power = 10
    while number > 10 * power:
        power *= 10
    return next(step * power // 10 for step in (2, 4, 6, 8, 10, 20, 40, 60, 80, 100) if step * power // 10 >= number)
