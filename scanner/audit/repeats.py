"""Which objects of a list have come already, in eight bytes each.

A list can be larger than everything else a scan remembers, so hashes are kept instead of names: two that are equal by
chance make a list look doubtful, not clean. They stand in sorted runs, of which a longer one takes in a shorter one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable

_HASHES = "q"


class RepeatDetector:
    """The objects that have come so far."""

    def __init__(self) -> None:
        """None has."""
        self._runs: list[array[int]] = []

    def among(self, names: Iterable[str]) -> frozenset[str]:
        """Those of some objects that have come."""
        return frozenset(name for name in names if self._has(hash(name)))

    def add(self, names: Iterable[str]) -> None:
        """Some objects have come."""
        run = array(_HASHES, sorted(map(hash, names)))
        while self._runs and len(self._runs[-1]) <= len(run):
            run = array(_HASHES, sorted(self._runs.pop() + run))
        self._runs.append(run)

    def _has(self, number: int) -> bool:
        return any((at := bisect_left(run, number)) < len(run) and run[at] == number for run in self._runs)
