"""The samples of columns that PostgreSQL keeps for its planner, in which values of deleted rows stay until a table is analyzed.

`ANALYZE` leaves the samples of an empty table as they are. Such a table gets a row without content for the time of a transaction
that analyzes it; no other transaction sees the row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Column, Connection, Engine, Float, Integer, LargeBinary, Table, select, text

from scanner.store.database.engine import writing
from scanner.store.rows import search_index
from scanner.store.rows.tables import METADATA, UtcTime

_SAMPLED: Final = text("SELECT DISTINCT tablename FROM pg_stats WHERE schemaname = current_schema()")


def renew_statistics(engine: Engine) -> None:
    """Take new samples of all tables in PostgreSQL; SQLite keeps none."""
    if engine.dialect.name != "postgresql":
        return
    tables = [*METADATA.sorted_tables, search_index.WORDS]
    with engine.connect() as connection:
        sampled = frozenset(connection.execute(_SAMPLED).scalars())
        empty = [table for table in tables if _is_empty(connection, table)]
    for table in tables:
        if table not in empty:
            with writing(engine) as connection:
                _analyze(connection, table)
    if any(table.name in sampled for table in empty):
        with writing(engine) as connection:
            _sample_empty(connection, [table for table in empty if _is_empty(connection, table)])


def _is_empty(connection: Connection, table: Table) -> bool:
    return connection.execute(select(text("1")).select_from(table).limit(1)).first() is None


def _analyze(connection: Connection, table: Table) -> None:
    connection.exec_driver_sql(f"ANALYZE {table.name}")


def _sample_empty(connection: Connection, tables: list[Table]) -> None:
    """Analyze empty tables, those to which others refer first, while each has a row without content."""
    for table in tables:
        connection.execute(table.insert().values({column.name: _blank(column, connection) for column in table.columns}))
    for table in tables:
        _analyze(connection, table)
    for table in reversed(tables):
        connection.execute(table.delete())


def _blank(column: Column[Any], connection: Connection) -> object:
    """A value without content; of a foreign key that of any row."""
    for key in column.foreign_keys:
        return connection.execute(select(key.column).limit(1)).scalar_one()
    match column.type:
        case Boolean():
            return False
        case BigInteger() | Integer() | Float():
            return 0
        case LargeBinary():
            return b""
        case UtcTime():
            return datetime(1970, 1, 1, tzinfo=UTC)
        case _:
            return ""
