"""Streams of the rows of a table in the order of its key, as Python values that do not depend on the database.

Rows go by the drivers, not by SQLAlchemy, whose work for each row would take most of the time of a copy. Memory holds some megabytes of
rows at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Float,
    Integer,
    LargeBinary,
    Select,
    String,
    Table,
    select,
    tuple_,
)

from scanner.store.rows.search_index import is_mark
from scanner.store.rows.tables import LAST_IDS

RawRow: TypeAlias = Sequence[Any]
Convert: TypeAlias = Callable[[Any], Any]

_FEWEST: Final = 16
_MOST: Final = 2_000
"""The rows of one batch."""
_BATCH_BYTES: Final = 1 << 21
"""The bytes of one batch, about."""
_SAMPLE: Final = 32
_BATCHES: Final = 25
"""The batches of one transaction."""


class TableSum(NamedTuple):
    """The number of rows of a table, and their digest in the order of the key."""

    rows: int
    digest: str


def read_batches(connection: Connection, table: Table, after: RawRow | None = None) -> Iterator[Sequence[RawRow]]:
    """The rows of a table whose keys are higher than `after`, in batches; the connection reads one snapshot."""
    wanted = _select_rows(table)
    if after is not None:
        wanted = wanted.where(tuple_(*table.primary_key.columns) > tuple_(*after))
    decoders = _find_converters(table, connection.dialect, _decoder)
    compiled = wanted.compile(dialect=connection.dialect, compile_kwargs={"render_postcompile": True})
    parameters = [compiled.params[name] for name in compiled.positiontup or ()] or compiled.params
    # A cursor with a name is one of the server: without it, the driver of PostgreSQL would read all rows at once.
    options: dict[str, Any] = {} if connection.dialect.name == "sqlite" else {"name": "copied", "binary": True}
    with closing(connection.connection.cursor(**options)) as cursor:
        cursor.execute(str(compiled), parameters)
        wanted_rows = _FEWEST
        while rows := cursor.fetchmany(wanted_rows):
            yield _convert(rows, decoders)
            wanted_rows = _count_next(rows)


def _select_rows(table: Table) -> Select[Any]:
    return select(table).where(*_find_conditions(table)).order_by(*table.primary_key.columns)


def _find_conditions(table: Table) -> Iterable[ColumnElement[bool]]:
    """The rows that a copy has: the index of a search is made anew, and with it what is recorded about the index."""
    return (~is_mark(LAST_IDS.c.name),) if table is LAST_IDS else ()


def _count_next(rows: Sequence[RawRow]) -> int:
    """The number of rows of the next batch, by the sizes of some rows of this one."""
    sample = rows[:: max(1, len(rows) // _SAMPLE)]
    size = sum(len(value) for row in sample for value in row if isinstance(value, (str, bytes)))
    return min(max(_FEWEST, _BATCH_BYTES * len(sample) // max(size, 1)), _MOST)


def write_batches(connection: Connection, table: Table, batches: Iterator[Sequence[RawRow]]) -> int:
    """Insert the rows of the next batches, as many as a transaction takes; return their number."""
    encoders = _find_converters(table, connection.dialect, _encoder)
    converted = (_convert(rows, encoders) for rows in islice(batches, _BATCHES))
    quote = connection.dialect.identifier_preparer.quote
    names = ", ".join(map(quote, table.c.keys()))
    count = 0
    with closing(connection.connection.cursor()) as cursor:
        if connection.dialect.name == "sqlite":
            places = ", ".join("?" * len(table.columns))
            for rows in converted:
                cursor.executemany(f"INSERT INTO {quote(table.name)} ({names}) VALUES ({places})", rows)  # noqa: S608 - names of our own tables
                count += len(rows)
            return count
        with cursor.copy(f"COPY {quote(table.name)} ({names}) FROM STDIN") as copy:
            for rows in converted:
                for row in rows:
                    copy.write_row(row)
                count += len(rows)
    return count


def find_last_key(connection: Connection, table: Table) -> RawRow | None:
    """The highest key of a table; None without a row."""
    columns = table.primary_key.columns
    wanted = select(*columns).where(*_find_conditions(table)).order_by(*(column.desc() for column in columns)).limit(1)
    row = connection.execute(wanted).one_or_none()
    return None if row is None else tuple(row)


def sum_table(connection: Connection, table: Table) -> TableSum:
    """The number and the digest of the rows of a table, which are equal for equal rows in both databases."""
    digest, count = hashlib.blake2b(digest_size=16), 0
    for rows in read_batches(connection, table):
        digest.update(b"".join([orjson.dumps(tuple(row), default=bytes.hex) for row in rows]))
        count += len(rows)
    return TableSum(count, digest.hexdigest())


def _find_converters(
    table: Table, dialect: Dialect, find: Callable[[Any, Dialect], Convert | None]
) -> list[tuple[int, Convert]]:
    """The places of the columns whose values differ between Python and the driver, with their converters."""
    found = ((place, find(column.type, dialect)) for place, column in enumerate(table.columns))
    return [(place, convert) for place, convert in found if convert is not None]


def _decoder(kind: Any, dialect: Dialect) -> Convert | None:
    convert: Convert | None = kind.dialect_impl(dialect).result_processor(dialect, None) if _differs(kind) else None
    return convert


def _encoder(kind: Any, dialect: Dialect) -> Convert | None:
    convert: Convert | None = kind.dialect_impl(dialect).bind_processor(dialect) if _differs(kind) else None
    return convert


def _differs(kind: Any) -> bool:
    """Return whether the drivers have other values of a type than Python: numbers, texts and bytes are the same in all."""
    return not isinstance(kind, (Integer, Float, String, LargeBinary))


def _convert(rows: Sequence[RawRow], converters: Sequence[tuple[int, Convert]]) -> Sequence[RawRow]:
    if not converters:
        return rows
    changed = [list(row) for row in rows]
    for place, convert in converters:
        for row in changed:
            row[place] = convert(row[place])
    return changed
