"""Sets of row ids: one bit per id in memory, and very small when stored, because such ids form runs."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

_WORD: Final = Struct("<I")
_FLAGS: Final = bytes.maketrans(b"01", b"\0\1")


class RowIdRun(NamedTuple):
    """Consecutive row ids."""

    start: int
    length: int


class RowIdSet:
    """A growing set of row ids ≥ 0: one bit of memory for each id up to the highest, or a quarter more."""

    __slots__ = ("_bits", "count")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        """A set of these numbers."""
        self._bits = bytearray()
        self.count = 0
        for number in numbers:
            self.add(number)

    def __contains__(self, number: int) -> bool:
        """Return whether a number was added."""
        byte = number >> 3
        return byte < len(self._bits) and bool(self._bits[byte] >> (number & 7) & 1)

    def __iter__(self) -> Iterator[int]:
        """The numbers, ascending."""
        for place, byte in enumerate(self._bits):
            if byte:
                yield from (place << 3 | bit for bit in range(8) if byte >> bit & 1)

    def add(self, number: int) -> None:
        """Add a number to the set."""
        if number in self:
            return
        byte = number >> 3
        if byte >= len(self._bits):
            # A quarter more than needed, so that growing sets are copied rarely.
            self._bits.extend(bytes(byte + 1 + (byte >> 2) - len(self._bits)))
        self._bits[byte] |= 1 << (number & 7)
        self.count += 1

    def add_run(self, run: RowIdRun) -> int:
        """Add the numbers of a run; returns how many of them are new."""
        before = self.count
        if run.length == 1:
            self.add(run.start)
            return self.count - before
        first, last = run.start >> 3, run.start + run.length - 1 >> 3
        if last >= len(self._bits):
            self._bits.extend(bytes(last + 1 + (last >> 2) - len(self._bits)))
        there = int.from_bytes(self._bits[first : last + 1], "little")
        joined = there | (1 << run.length) - 1 << (run.start & 7)
        self._bits[first : last + 1] = joined.to_bytes(last + 1 - first, "little")
        self.count += joined.bit_count() - there.bit_count()
        return self.count - before

    def bits(self) -> int:
        """The set as a number: bit n is set if n is in the set."""
        return int.from_bytes(self._bits, "little")

    def flags(self) -> bytes:
        """One byte for each id from 0 up to the highest one: 1 if the set has it, else 0."""
        return f"{self.bits():b}"[::-1].encode().translate(_FLAGS)

    def words(self) -> Iterator[tuple[int, int]]:
        """The numbers by 32: the place of each word that has any, and its bits, the lowest for the lowest number."""
        padded = bytes(self._bits) + bytes(-len(self._bits) % _WORD.size)
        return ((place, word) for place, (word,) in enumerate(_WORD.iter_unpack(padded)) if word)

    def pack(self) -> bytes:
        """The set as compressed bytes, which `unpack_row_ids` reads."""
        return zlib.compress(bytes(self._bits).rstrip(b"\0"), 6)


def union(sets: Iterable[RowIdSet]) -> RowIdSet:
    """The numbers of several sets."""
    bits = 0
    for each in sets:
        bits |= each.bits()
    return _from_bits(bits)


def intersection(first: RowIdSet, second: RowIdSet) -> RowIdSet:
    """The numbers that both sets have."""
    return _from_bits(first.bits() & second.bits())


def difference(first: RowIdSet, second: RowIdSet) -> RowIdSet:
    """The numbers of the first set that the second one does not have."""
    return _from_bits(first.bits() & ~second.bits())


def _from_bits(bits: int) -> RowIdSet:
    numbers = RowIdSet()
    numbers._bits = bytearray(bits.to_bytes((bits.bit_length() + 7) >> 3, "little"))  # noqa: SLF001
    numbers.count = bits.bit_count()
    return numbers


def unpack_row_ids(data: bytes | None) -> RowIdSet:
    """The set that `RowIdSet.pack` wrote; no data is the empty set."""
    numbers = RowIdSet()
    if data:
        numbers._bits = bytearray(zlib.decompress(data))  # noqa: SLF001 -- a function of the same module
        numbers.count = int.from_bytes(numbers._bits, "little").bit_count()  # noqa: SLF001
    return numbers
