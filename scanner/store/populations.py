"""Sets of the objects of a kind, in the order of its list, as sets of rows of the population.

Rows of one scan are inserted in the order of the list, so their ids form runs: a first scan has one run for each kind,
and every later change of the cluster breaks a few. A set is translated run by run, and equal sets are translated once.
The stored form is that of `row_ids`; the digest is that of the set itself, because libraries compress differently.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

_FEW: Final = 16
"""Runs up to which a set is shifted run by run: each shift reads the whole set."""
_FAR: Final = 8192
"""Ids between two runs from which the zeros between them are not written as text."""


class Run(NamedTuple):
    """Objects beside each other in the list whose rows are beside each other in the table."""

    place: int
    row_id: int
    length: int


@dataclass(frozen=True, slots=True)
class StoredSet:
    """A set of row ids: compressed, as `row_ids.unpacked` reads it; its SHA-256; and how many ids it has."""

    data: bytes
    digest: bytes
    count: int


class RowSets:
    """Translates sets of the objects of one kind into sets of row ids. Equal sets are translated once."""

    def __init__(self, ids: Sequence[int]) -> None:
        """Take the row id of every object, in the order of the list. Repeated objects have the same id."""
        self._length = len(ids)
        self._runs = tuple(sorted(runs(ids), key=lambda run: run.row_id))
        self._stored: dict[int, StoredSet] = {}

    def of(self, bits: int) -> StoredSet:
        """The row ids of a set of objects (bit 0 is the first object of the list).

        Raises ValueError for an object that the list does not have.
        """
        if bits not in self._stored:
            if bits >> self._length:
                raise ValueError("a set has objects that the list of its kind does not have")
            self._stored[bits] = stored(self._row_bits(bits))
        return self._stored[bits]

    def _row_bits(self, bits: int) -> bytearray:
        """One bit per row id."""
        if not bits:
            return bytearray()
        last = self._runs[-1]
        rows = bytearray(((last.row_id + last.length) >> 3) + 1)
        text = f"{bits:0{self._length}b}"[::-1] if len(self._runs) > _FEW else ""
        for start, value in _pieces(self._runs, text) if text else _shifted(self._runs, bits):
            _put(rows, start, value)
        return rows


def runs(ids: Sequence[int]) -> Iterator[Run]:
    """The runs of a list of row ids, in the order of the list."""
    start = 0
    for place in range(1, len(ids) + 1):
        if place == len(ids) or ids[place] != ids[place - 1] + 1:
            yield Run(start, ids[start], place - start)
            start = place


def ids_of(bits: int, ids: array[int]) -> bytes:
    """The packed set of the row ids of some objects. For several sets of a kind use `RowSets`."""
    return RowSets(ids).of(bits).data


def stored(rows: bytes | bytearray) -> StoredSet:
    """A set of row ids, from one bit per id, least significant first."""
    plain = bytes(rows).rstrip(b"\0")
    count = int.from_bytes(plain, "little").bit_count()
    return StoredSet(zlib.compress(plain, 6), hashlib.sha256(plain).digest(), count)


def _shifted(all_runs: Sequence[Run], bits: int) -> Iterator[tuple[int, int]]:
    for run in all_runs:
        value = bits >> run.place & (1 << run.length) - 1
        if value:
            yield run.row_id, value


def _pieces(all_runs: Sequence[Run], text: str) -> Iterator[tuple[int, int]]:
    """Runs that are near each other as one value each. Ids are ascending; repeated ids are a value of their own."""
    start = end = all_runs[0].row_id
    parts: list[str] = []
    for run in all_runs:
        if not 0 <= run.row_id - end < _FAR:
            yield start, _number(parts)
            start = end = run.row_id
            parts = []
        parts += ["0" * (run.row_id - end), text[run.place : run.place + run.length]]
        end = run.row_id + run.length
    yield start, _number(parts)


def _number(parts: Sequence[str]) -> int:
    return int("".join(parts)[::-1] or "0", 2)


def _put(rows: bytearray, start: int, value: int) -> None:
    """Put a value of several bits at a bit offset; bits that are set stay set."""
    shifted = value << (start & 7)
    size = (shifted.bit_length() + 7) >> 3
    area = slice(start >> 3, (start >> 3) + size)
    there = int.from_bytes(rows[area], "little")
    rows[area] = (there | shifted).to_bytes(size, "little")
