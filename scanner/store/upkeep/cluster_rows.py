"""The rows of one cluster, and their deletion in portions.

A row belongs to a cluster if it has the id of the cluster, or refers to a row that does, such as a scan. This follows from the
foreign keys of the tables, so a new table needs no change here. Rows that clusters share are none of them: see `references`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Table,
    delete,
    false,
    func,
    or_,
    select,
    tuple_,
)

from scanner.store.database.engine import is_among, lock_bodies, writing
from scanner.store.rows.interning import chunks
from scanner.store.rows.references import REFERENCES
from scanner.store.rows.tables import CLUSTERS, METADATA, RUNS, SCANS

PORTION: Final = 10_000
"""The number of rows that one transaction deletes."""
_SCANS: Final = 20
"""The number of scans whose rows one transaction deletes."""
_APART: Final = frozenset({CLUSTERS, RUNS, *REFERENCES})
"""The cluster itself; runs, which can have no scan; and rows that sets and findings refer to, such as objects."""


def list_owned_tables() -> Iterator[Table]:
    """The tables with rows of clusters, those with references to others first."""
    return (table for table in reversed(METADATA.sorted_tables) if _is_owned(table))


def _is_owned(table: Table) -> bool:
    if table in _APART:
        return False
    return "cluster" in table.c or any(_is_owned(key.column.table) for key in table.foreign_keys)


def is_of_cluster(table: Table, cluster: int) -> ColumnElement[bool]:
    """The condition that a row of a table belongs to a cluster."""
    if "cluster" in table.c:
        return table.c.cluster == cluster
    owned = [key for key in table.foreign_keys if _is_owned(key.column.table)]
    rows = ((key, select(key.column).where(is_of_cluster(key.column.table, cluster))) for key in owned)
    return or_(false(), *(key.parent.in_(numbers) for key, numbers in rows))


def count_owned_rows(connection: Connection, cluster: int) -> dict[str, int]:
    """The number of rows of a cluster in each table that has some."""
    tables = (*list_owned_tables(), *(table for table in REFERENCES if "cluster" in table.c))
    counts = {
        table.name: connection.execute(
            select(func.count()).select_from(table).where(is_of_cluster(table, cluster))
        ).scalar_one()
        for table in tables
    }
    return {name: count for name, count in counts.items() if count}


def delete_owned_rows(engine: Engine, cluster: int) -> int:
    """Delete the rows of a cluster in short transactions; return their number. Safe to interrupt and to repeat."""
    tables = list(list_owned_tables())
    of_scans = [table for table in tables if "cluster" not in table.c and "scan" in table.c]
    deleted = _delete_rows_of_scans(engine, cluster, of_scans)
    return deleted + sum(_delete_table(engine, cluster, table) for table in tables if table not in of_scans)


def _delete_rows_of_scans(engine: Engine, cluster: int, tables: list[Table]) -> int:
    """Delete the rows that have the number of a scan."""
    with engine.connect() as connection:
        scans = connection.execute(select(SCANS.c.number).where(SCANS.c.cluster == cluster)).scalars().all()
    deleted = 0
    for start in range(0, len(scans), _SCANS):
        with writing(engine) as connection:
            lock_bodies(connection, cluster)
            for table in tables:
                chosen = is_among(connection, table.c.scan, scans[start : start + _SCANS])
                deleted += connection.execute(delete(table).where(chosen)).rowcount
    return deleted


def _delete_table(engine: Engine, cluster: int, table: Table) -> int:
    """Delete the rows of a table in the order of their keys, so that each portion begins where the last one ended."""
    columns = tuple(table.primary_key.columns)
    key = tuple_(*columns)
    rest = is_of_cluster(table, cluster)
    deleted = 0
    while True:
        with writing(engine) as connection:
            lock_bodies(connection, cluster)
            wanted = select(*columns).where(rest).order_by(*columns).offset(PORTION - 1).limit(1)
            last = connection.execute(wanted).one_or_none()
            chosen = rest if last is None else rest & (key <= tuple_(*last))
            deleted += connection.execute(delete(table).where(chosen)).rowcount
        if last is None:
            return deleted
        rest = is_of_cluster(table, cluster) & (key > tuple_(*last))


def delete_runs(connection: Connection, numbers: list[int]) -> None:
    """Delete runs by their numbers."""
    for portion in chunks(numbers):
        connection.execute(delete(RUNS).where(is_among(connection, RUNS.c.number, portion)))
