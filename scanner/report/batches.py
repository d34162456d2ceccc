"""Splits long lists into pages of at most 500 rows and under 500 kB of HTML, which a browser opens at once.

The weight of a row is an upper bound for its bytes: escapes can make hostile text ten times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from scanner.report.words import LONGEST

ItemT = TypeVar("ItemT")

ROWS = 500
HEAVIEST = 350_000

_ROW_WEIGHT = 800
_SPELLED = 10
_ESCAPED = 5
_ESCAPES = "&<>\"'"


@dataclass(frozen=True, slots=True)
class Batch(Generic[ItemT]):
    """The rows of page `number`, from 1; `first` is the number of its first row in the list. `more` pages may follow."""

    number: int
    first: int
    rows: list[ItemT]
    more: bool

    @property
    def last(self) -> int:
        """The number of the last row; `first - 1` on an empty page."""
        return self.first + len(self.rows) - 1


def batched(items: Iterable[ItemT], weigh: Callable[[ItemT], int], *, most: int = ROWS) -> Iterator[Batch[ItemT]]:
    """The pages of a list in its order, at least one, with `most` rows each; `weigh` returns the weight of an item, in bytes."""
    number, first = count(1), 1
    rows: list[ItemT] = []
    full = 0
    for item in items:
        more = weigh(item)
        if rows and (len(rows) == most or full + more > HEAVIEST):
            yield Batch(next(number), first, rows, more=True)
            first, rows, full = first + len(rows), [], 0
        rows.append(item)
        full += more
    yield Batch(next(number), first, rows, more=False)


def weight(*texts: str) -> int:
    """The weight of a row that shows these texts: an upper bound for its bytes of HTML."""
    return _ROW_WEIGHT + sum(_weight(text) for text in texts)


def byte_size(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def _weight(text: str) -> int:
    shown = text[:LONGEST]
    if not (shown.isascii() and shown.isprintable()):
        return len(shown) * _SPELLED
    return len(shown) + sum(map(shown.count, _ESCAPES)) * (_ESCAPED - 1)
