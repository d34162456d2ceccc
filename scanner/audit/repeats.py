"""Detects repeated objects of a list, with eight bytes for each object.

A list can be larger than all other data of a scan, so hashes are kept instead of names: two hashes that are equal by
chance mark a list as inconsistent, never as clean. The hashes are kept in sorted runs; a run absorbs shorter ones until it is long.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

_HASHES = "q"
_LONG = 200_000
"""The length from which a run absorbs no other: sorting holds forty bytes for each object of both."""


class RepeatDetector:
    """The objects of a list so far."""

    def __init__(self) -> None:
        """Begin with no object."""
        self._runs: list[array[int]] = []

    def find_repeats(self, names: Iterable[str]) -> frozenset[str]:
        """The names among these that were added before; by chance also a name with the hash of one of them."""
        hashes = [(name, hash(name)) for name in names]
        repeats: list[str] = []
        for run in self._runs:
            end = len(run)
            repeats += [name for name, number in hashes if (at := bisect_left(run, number)) < end and run[at] == number]
        return frozenset(repeats)

    def add(self, names: Iterable[str]) -> None:
        """Add the names of some objects."""
        run = array(_HASHES, sorted(map(hash, names)))
        while self._runs and len(self._runs[-1]) <= len(run) < _LONG:
            run = array(_HASHES, sorted(self._runs.pop() + run))
        self._runs.append(run)
