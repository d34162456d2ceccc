"""The extent of a value: the amounts that the cost of an expression can depend on.

The extent is estimated from the length of its JSON text, which takes microseconds, or counted in the text or the document.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import orjson

from scanner.cel.values.values import KeyedMap, Value

UNKNOWN = 1e30
"""More than anything that can be counted."""


class SizeBound(NamedTuple):
    """The maximum extent of a value.

    `elements`: entries in all its lists and maps together; `characters`: code points in all its strings together; `widest`: entries
    in its largest list or map. A number may be too large, but never too small.
    """

    elements: float = 0.0
    characters: float = 0.0
    widest: float = 0.0

    @property
    def span(self) -> float:
        """The maximum size of the value, or of any part of it, in entries or code points."""
        return 1.0 + self.elements + self.characters

    def pool(self) -> SizeBound:
        """Return the extent that the parts of this value have together, when each of them is visited in turn."""
        return SizeBound(self.elements, self.characters, self.elements)

    def times(self, factor: float) -> SizeBound:
        """Return the extent of something so many times as large; no number exceeds `UNKNOWN`."""
        return SizeBound(*(min(number * factor, UNKNOWN) for number in self))

    def round_up(self) -> SizeBound:
        """Return the smallest extent of powers of two that is no smaller, so that similar documents have the same extent."""
        return SizeBound(*(_round_up(number) for number in self))


NOTHING = SizeBound()
BOUNDLESS = SizeBound(UNKNOWN, UNKNOWN, UNKNOWN)


def _round_up(number: float) -> float:
    return min(float(1 << (ceil(number) - 1).bit_length()), UNKNOWN) if number > 1 else number


def combine_extents(extents: Iterable[SizeBound], *, entries: int = 0) -> SizeBound:
    """Return the extent of a value that may hold all of these, in so many entries of its own."""
    parts = [*extents]
    return SizeBound(
        entries + sum(part.elements for part in parts),
        sum(part.characters for part in parts),
        entries + sum(part.widest for part in parts),
    )


_LONGEST_SCALAR = 48
"""As many characters as a number or a time has at most, once it is text."""


def add_conversion(extent: SizeBound, values: int) -> SizeBound:
    """Return the extent of a protobuf message's conversion of so many values of this extent."""
    characters = 2 * extent.characters + _LONGEST_SCALAR * (extent.elements + values)
    return SizeBound(extent.elements + extent.characters, characters, extent.widest + extent.characters)


LARGEST_SIZE = 26
"""The size of documents that are larger than any that a scan can hold."""


def measure_document(document: object) -> int:
    """Return the number of binary digits in the length of a document's JSON, which counts bytes; 0 for none.

    It is more than `LARGEST_SIZE` for a value that is not JSON.
    """
    if document is None:
        return 0
    try:
        return len(orjson.dumps(document)).bit_length()
    except TypeError:
        return LARGEST_SIZE + 1


def bound_extent(size: int) -> SizeBound:
    """Return the maximum extent of a document of this size (`measure_document`); an entry takes two characters."""
    length = float(1 << size)
    return SizeBound(length / 2, length, length / 2)


def find_document_extent(document: object) -> SizeBound:
    """Return the extent of a document's JSON; entries are counted by its punctuation, also inside strings.

    It is `BOUNDLESS` for a value that is not JSON.
    """
    try:
        text = orjson.dumps(document)
    except TypeError:
        return BOUNDLESS
    entries = float(text.count(b",") + text.count(b"[") + text.count(b"{"))
    return SizeBound(entries, float(len(text)), entries)


def count_entries(document: object, path: Iterable[str]) -> int:
    """Return the number of entries of the list or map that a path of fields leads to; 0 where there is neither."""
    for field in path:
        if type(document) is not dict:
            return 0
        document = document.get(field)
    return len(document) if type(document) is list or type(document) is dict else 0


def find_widest(document: object) -> float:
    """Return the number of entries of the largest list or map in a document."""
    widest = 0
    stack = [document]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            widest = max(widest, len(part))
            stack.extend(part.values())
        elif type(part) is list:
            widest = max(widest, len(part))
            stack.extend(part)
    return float(widest)


def find_extent(value: Value) -> SizeBound:
    """Return the extent of a constant."""
    if type(value) is str or type(value) is bytes:
        return SizeBound(0.0, float(len(value)))
    if type(value) is list:
        return combine_extents(map(find_extent, value), entries=len(value))
    if type(value) is dict or type(value) is KeyedMap:
        return combine_extents((find_extent(side) for pair in value.items() for side in pair), entries=len(value))
    return NOTHING
