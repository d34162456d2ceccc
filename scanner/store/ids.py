"""Row ids that are never used again, even after rows are deleted: the table `last_ids` has the highest id of each table.

On PostgreSQL several clusters are scanned into one database at the same time. Ids are reserved there over a connection of
its own that commits at once, so that no scan waits for the closing transaction of another scan. On SQLite, which has one
writer, ids are reserved in the writer's transaction.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Table, TextClause, text

from scanner.store.engine import committing_at_once


def reserve(connection: Connection, table: Table, count: int) -> range:
    """Reserve `count` consecutive row ids of a table. The connection is in a transaction that writes."""
    if not count:
        return range(0)
    with committing_at_once(connection) as own:
        given = {"name": table.name, "count": count}
        last: int | None = own.execute(_RAISED, given).scalar()
        if last is None:
            last = own.execute(_first(table), given).scalar_one()
    return range(last - count + 1, last + 1)


_RAISED: Final = text("UPDATE last_ids SET id = id + :count WHERE name = :name RETURNING id")


def _first(table: Table) -> TextClause:
    """The statement for a table that `last_ids` does not have: its ids go on from the highest one in the table.

    Only then may the table be read: PostgreSQL would visit all rows that the closing transaction has inserted so far.
    """
    [key] = table.primary_key.columns
    return text(
        f"INSERT INTO last_ids (name, id) SELECT :name, :count + coalesce(max({key.name}), 0) FROM {table.name} "  # noqa: S608 - names of our own tables
        "WHERE true ON CONFLICT (name) DO UPDATE SET id = last_ids.id + :count RETURNING id"
    )
