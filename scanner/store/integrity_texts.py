"""Finds shared rows, such as messages, whose content has changed since it was stored: their digest is another one."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, select

from scanner.store.interning import digest
from scanner.store.retention_texts import KEPT_FOR_EVER, REFERENCES
from scanner.store.tables import OBJECT_SETS, OBJECTS, PLACES, SET_LISTS

COMPRESSED: Final = (OBJECT_SETS, SET_LISTS, PLACES)
"""The tables whose digest is that of the plain content of their last column: libraries compress differently."""
SHARED_TEXTS: Final[Sequence[Table]] = tuple(table for table in (*REFERENCES, *KEPT_FOR_EVER) if table is not OBJECTS)
"""The tables of shared rows with a digest."""


def changed_texts(
    connection: Connection, table: Table, newest: int | None = None
) -> Iterator[tuple[int, bytes | None]]:
    """The ids of rows with another digest than that of their content, and the digest of that; None if it cannot be read.

    Of the `newest` rows, or of all.
    """
    of_row = _of_content if table in COMPRESSED else _of_key
    added = sum(column.server_default is not None for column in table.columns)
    wanted = select(table).order_by(table.c.id.desc()).limit(newest).execution_options(yield_per=1000)
    with connection.execute(wanted) as rows:
        for number, stored, *key in rows:
            now = of_row(key, added)
            if now is None or bytes(stored) != now:
                yield number, now


def _of_key(key: Sequence[Any], added: int) -> bytes | None:
    """The digest of a row of `interning`: columns that a migration added are part of it if they are not empty."""
    values = tuple(bytes(value) if isinstance(value, memoryview) else value for value in key)
    try:
        return digest(values[:-added] if added and not any(values[-added:]) else values)
    except TypeError:
        return None  # A damaged row can have bytes in the place of a text.


def _of_content(key: Sequence[Any], _: int) -> bytes | None:
    try:
        return hashlib.sha256(zlib.decompress(bytes(key[-1]))).digest()
    except (zlib.error, TypeError):
        return None
