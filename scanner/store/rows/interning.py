"""Ids of rows: new ones, and those of content-addressed tables, where equal rows are stored once.

Ids are assigned here and not by the database, which saves a round trip per row. They are never used again, even after rows are deleted:
the table `last_ids` has the highest id of each table.

On PostgreSQL several clusters are scanned into one database at the same time, and none waits for the closing transaction of another:
ids are reserved over a connection of its own that commits at once, and new content-addressed rows, which other scans often need too,
are committed at once. On SQLite, which has one writer, ids are reserved in the writer's transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import orjson
from sqlalchemy import Connection, Table, TextClause, select, text

from scanner.store.database.engine import committing_immediately, insert_missing, is_among
from scanner.store.rows.search_index import index_inserted


def reserve_ids(connection: Connection, table: Table, count: int) -> range:
    """Reserve `count` consecutive row ids of a table. The connection is in a transaction that writes."""
    if not count:
        return range(0)
    with committing_immediately(connection) as separate:
        parameters = {"name": table.name, "count": count}
        last: int | None = separate.execute(_RAISE_LAST_ID, parameters).scalar()
        if last is None:
            last = separate.execute(_first_ids_statement(table), parameters).scalar_one()
    return range(last - count + 1, last + 1)


_RAISE_LAST_ID: Final = text("UPDATE last_ids SET id = id + :count WHERE name = :name RETURNING id")


def _first_ids_statement(table: Table) -> TextClause:
    """The statement for a table that `last_ids` does not have: its ids go on from the highest one in the table.

    Only then may the table be read: PostgreSQL would visit all rows that the closing transaction has inserted so far.
    """
    [key] = table.primary_key.columns
    return text(
        f"INSERT INTO last_ids (name, id) SELECT :name, :count + coalesce(max({key.name}), 0) FROM {table.name} "  # noqa: S608 - names of our own tables
        "WHERE true ON CONFLICT (name) DO UPDATE SET id = last_ids.id + :count RETURNING id"
    )


_Value = TypeVar("_Value")
_MOST_CACHED = 20_000


Key: TypeAlias = tuple[str | int | bool | bytes | None, ...]


CHUNK = 1000
"""The number of values in one statement, well under every database's limit."""


class Interner:
    """The ids of the rows of one table, cached for one transaction.

    A key has the values of the table's columns in order, without the leading `id` and `digest`. Columns that migrations added are
    part of the digest only up to the last one that is not empty, so that older rows keep their digests.
    """

    def __init__(self, connection: Connection, table: Table) -> None:
        """The connection is in a transaction that writes."""
        self._connection = connection
        self._table = table
        self._columns = [column.name for column in table.columns]
        self._added = sum(column.server_default is not None for column in table.columns)
        self._ids: dict[bytes, int] = {}

    def intern(self, keys: Sequence[Key]) -> list[int]:
        """The ids of keys, in the order of the keys; rows of new keys are inserted."""
        if len(self._ids) > _MOST_CACHED:
            self._ids.clear()
        names = {key: self._digest_key(key) for key in dict.fromkeys(keys)}
        self._find([name for name in names.values() if name not in self._ids])
        self._add({name: key for key, name in names.items() if name not in self._ids})
        return [self._ids[names[key]] for key in keys]

    def intern_optional(self, keys: Sequence[Key | None]) -> list[int]:
        """The ids of keys, in their order, with 0 for None."""
        numbers = iter(self.intern([key for key in keys if key is not None]))
        return [0 if key is None else next(numbers) for key in keys]

    def find_known(self, keys: Sequence[Key]) -> dict[Key, int]:
        """The ids of those keys that are stored; nothing is inserted."""
        names = {key: self._digest_key(key) for key in dict.fromkeys(keys)}
        self._find([name for name in names.values() if name not in self._ids])
        return {key: self._ids[name] for key, name in names.items() if name in self._ids}

    def find_digest(self, name: bytes) -> int | None:
        """The id of the row with a digest, or None; nothing is inserted."""
        self._find([name])
        return self._ids.get(name)

    def intern_digests(self, keys: Mapping[bytes, Key]) -> dict[bytes, int]:
        """The ids of keys whose digests the caller computed; new keys are stored."""
        self._find([name for name in keys if name not in self._ids])
        self._add({name: key for name, key in keys.items() if name not in self._ids})
        return {name: self._ids[name] for name in keys}

    def _digest_key(self, key: Key) -> bytes:
        end = len(key)
        while end > len(key) - self._added and not key[end - 1]:
            end -= 1
        return digest(key[:end])

    def _find(self, names: list[bytes]) -> None:
        table = self._table.c
        for portion in chunks(names):
            wanted = is_among(self._connection, table.digest, portion)
            for name, number in self._connection.execute(select(table.digest, table.id).where(wanted)):
                self._ids[bytes(name)] = number

    def _add(self, keys: dict[bytes, Key]) -> None:
        if not keys:
            return
        numbers = reserve_ids(self._connection, self._table, len(keys))
        rows = [(number, name, *key) for number, (name, key) in zip(numbers, keys.items(), strict=True)]
        if insert_missing(self._connection, self._table, self._columns, rows, index_inserted) == len(rows):
            self._ids.update(zip(keys, numbers, strict=True))
        else:
            # Another scan has inserted some of them since they were read.
            self._find(list(keys))


def digest(key: Key) -> bytes:
    """The digest that identifies a key: BLAKE2b, 16 bytes."""
    return hashlib.blake2b(orjson.dumps(key), digest_size=16).digest()


def chunks(values: Sequence[_Value]) -> list[list[_Value]]:
    """The values in their order, in portions that fit into one statement."""
    return [list(values[start : start + CHUNK]) for start in range(0, len(values), CHUNK)]
