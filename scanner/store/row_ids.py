"""Sets of row ids: one bit per id in memory, and very small when stored, because such ids form runs."""

from __future__ import annotations

import zlib
from collections.abc import Iterable


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

    def add(self, number: int) -> None:
        """Add a number to the set."""
        if number in self:
            return
        byte = number >> 3
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 + (byte >> 2) - len(self._bits)))
        self._bits[byte] |= 1 << (number & 7)
        self.count += 1

    def packed(self) -> bytes:
        """The set as compressed bytes, which `unpacked` reads."""
        return zlib.compress(bytes(self._bits).rstrip(b"\0"), 6)


def unpacked(data: bytes | None) -> RowIdSet:
    """The set that `packed` wrote; no data is the empty set."""
    numbers = RowIdSet()
    if data:
        numbers._bits = bytearray(zlib.decompress(data))  # noqa: SLF001 -- a function of the same module
        numbers.count = int.from_bytes(numbers._bits, "little").bit_count()  # noqa: SLF001
    return numbers
