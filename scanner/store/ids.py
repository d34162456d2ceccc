"""Row ids that are never used again, even after rows are deleted: the table `last_ids` has the highest id of each table.

On PostgreSQL several clusters are scanned into one database at the same time. Ids are reserved there over a connection of
its own that commits at once, so that no scan waits for the closing transaction of another scan. On SQLite, which has one
writer, ids are reserved in the writer's transaction.
"""

from __future__ import annotations

from sqlalchemy import Connection, Table, text

from scanner.store.engine import committing_at_once


def reserve(connection: Connection, table: Table, count: int) -> range:
    """Reserve `count` consecutive row ids of a table. The connection is in a transaction that writes."""
    if not count:
        return range(0)
    [key] = table.primary_key.columns
    # Without a row in `last_ids`, ids go on from the highest id in the table.
    statement = text(
        f"INSERT INTO last_ids (name, id) SELECT '{table.name}', :count + coalesce(max({key.name}), 0) FROM {table.name} "  # noqa: S608 - names of our own tables
        "WHERE true ON CONFLICT (name) DO UPDATE SET id = last_ids.id + :count RETURNING id"
    )
    with committing_at_once(connection) as own:
        last: int = own.execute(statement, {"count": count}).scalar_one()
    return range(last - count + 1, last + 1)
