"""A flag that forces the exact evaluator, for callers that need details of values that generated code drops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class ExactOnly:
    """The number of open blocks in which the closures alone evaluate, in all threads.

    Every evaluation reads the number, which is faster than a variable of the context. Another thread that evaluates meanwhile uses
    the closures, too: it has the same results, later.
    """

    __slots__ = ("_lock", "blocks")

    def __init__(self) -> None:
        self.blocks = 0
        self._lock = Lock()

    def add(self, blocks: int) -> None:
        """Count blocks that begin, or, as a negative number, that end."""
        with self._lock:
            self.blocks += blocks


EXACT_ONLY = ExactOnly()


@contextmanager
def force_closures() -> Iterator[None]:
    """Evaluate, inside the block, by the closures alone."""
    EXACT_ONLY.add(1)
    try:
        yield
    finally:
        EXACT_ONLY.add(-1)
