"""Values that are read again after some seconds."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from time import monotonic
from typing import Final, Generic, TypeVar

ValueT = TypeVar("ValueT")
_MOST: Final = 1_000


class Recent(Generic[ValueT]):
    """Remembers values by key for `seconds`; what changes meanwhile is seen that much later."""

    def __init__(self, seconds: float) -> None:
        self._seconds: Final = seconds
        self._values: Final[dict[Hashable, tuple[float, ValueT]]] = {}
        self._lock: Final = Lock()

    def value(self, key: Hashable, read: Callable[[], ValueT]) -> ValueT:
        """The value of a key, read if it is not recent."""
        with self._lock:
            kept = self._values.get(key)
        if kept is not None and monotonic() - kept[0] < self._seconds:
            return kept[1]
        value = read()
        with self._lock:
            self._values.pop(key, None)
            self._forget()
            self._values[key] = monotonic(), value
        return value

    def _forget(self) -> None:
        """Drop what is not recent, and the oldest of too many values. Later values stand behind earlier ones."""
        oldest = monotonic() - self._seconds
        while self._values:
            first = next(iter(self._values))
            if self._values[first][0] > oldest and len(self._values) < _MOST:
                return
            del self._values[first]
