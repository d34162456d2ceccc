"""Rows that never change, in memory while a reader is open: pages of different dates refer to the same verdicts, causes and labels.

Ids are never used again (see `ids`), and history before the newest revision stays as it is, so what was read once stays true.
Engines without `Remembered`, as those of scans and of the command line, read everything again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, TypeVar, cast

from sqlalchemy import Connection

from scanner.model.population import Kept

OPTION: Final = "assay_remembered"
"""The option of an engine that has a `Remembered`."""
_MOST: Final = 16_000_000
_ENTRY: Final = 200
"""The bytes of an entry beside its texts, about."""

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class Remembered:
    """The latest values of several kinds by key, with about 16 MB in all. Its methods may be called by several threads."""

    def __init__(self, most: int = _MOST) -> None:
        """Remember so many bytes."""
        self._most: Final = most
        self._values: Final[dict[Hashable, dict[Any, Any]]] = {}
        self._size = 0
        self._lock: Final = Lock()

    def values(
        self, kind: Hashable, keys: Sequence[KeyT], read: Callable[[Sequence[KeyT]], Mapping[KeyT, ValueT]]
    ) -> dict[KeyT, ValueT]:
        """The values of some keys of a kind; `read` gets the keys that are not remembered."""
        known: dict[KeyT, ValueT] = self._values.get(kind, {})
        found = {key: known[key] for key in keys if key in known}
        missing = [key for key in keys if key not in found]
        if missing:
            fresh = read(missing)
            found.update(fresh)
            self._keep(kind, fresh)
        return found

    def _keep(self, kind: Hashable, fresh: Mapping[Any, Any]) -> None:
        with self._lock:
            if self._size > self._most:
                # Other threads may read the old values, which stay as they are.
                self._values.clear()
                self._size = 0
            known = self._values.setdefault(kind, {})
            self._size += sum(_size(value) for key, value in fresh.items() if key not in known)
            known.update(fresh)


def _size(value: object) -> int:
    """The bytes of a value, about: those of its texts, and of the labels of an object."""
    if isinstance(value, Kept):
        return _ENTRY + sum(len(name) + len(text) for name, text in (*value.labels, *value.annotations))
    return _ENTRY + (sum(len(part) for part in value if isinstance(part, str)) if isinstance(value, tuple) else 0)


def remembered(
    connection: Connection,
    kind: Hashable,
    keys: Sequence[KeyT],
    read: Callable[[Sequence[KeyT]], Mapping[KeyT, ValueT]],
) -> Mapping[KeyT, ValueT]:
    """The values of some keys, remembered by the engine of a connection, or read."""
    memory = cast("Remembered | None", connection.get_execution_options().get(OPTION))
    if memory is None:
        return read(keys) if keys else {}
    return memory.values(kind, keys, read)
