"""The size of a database: rows and bytes of each table, and the scans of each cluster."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import OperationalError

from scanner.store.rows import search_index
from scanner.store.rows.search_entries import SOURCES
from scanner.store.rows.tables import CLUSTERS, DELETED_CLUSTERS, METADATA, SCANS


class TableSize(NamedTuple):
    """A table with its rows, and its bytes with indexes; None if the database does not show them."""

    name: str
    rows: int
    bytes: int | None


class ClusterSize(NamedTuple):
    """The scans of a cluster: their number, how many of them are pruned, and the begin of the oldest and of the newest."""

    name: str
    scans: int
    pruned: int
    oldest: datetime
    newest: datetime


class DeletedCluster(NamedTuple):
    """The tombstone of a deleted cluster. `ended` is None while rows of it are left; `oldest` and `newest` are the begins of its scans.

    `digest` is the SHA-256 of the ids of its scans, a line each, in the order of their numbers.
    """

    number: int
    began: datetime
    ended: datetime | None
    scans: int
    runs: int
    objects: int
    findings: int
    oldest: datetime | None
    newest: datetime | None
    digest: str


class Stats(NamedTuple):
    """The size of a database: `bytes` in all, `free` of them for later scans; None if the database does not show it.

    `per_day` is the number of used bytes for each day between the oldest and the newest scan.
    """

    tables: tuple[TableSize, ...]
    clusters: tuple[ClusterSize, ...]
    deleted: tuple[DeletedCluster, ...]
    bytes: int
    free: int | None
    per_day: int


def read_stats(connection: Connection) -> Stats:
    """The size of a database."""
    clusters = _read_cluster_sizes(connection)
    total = read_total_bytes(connection)
    used = read_used_bytes(connection)
    seconds = 0.0
    if clusters:
        oldest = min(cluster.oldest for cluster in clusters)
        seconds = (max(cluster.newest for cluster in clusters) - oldest).total_seconds()
    per_day = int((total if used is None else used) / max(seconds / 86_400, 1))
    deleted = _read_deleted(connection)
    return Stats(
        read_table_sizes(connection), clusters, deleted, total, None if used is None else total - used, per_day
    )


def read_table_sizes(connection: Connection) -> tuple[TableSize, ...]:
    """The size of each table, the largest first. The index of a search counts the rows that it finds."""
    known = _read_bytes(connection)
    rows = {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in METADATA.sorted_tables
    }
    rows[search_index.NAME] = sum(rows[table.name] for table in SOURCES)
    tables = [TableSize(name, count, known.get(name, 0) if known else None) for name, count in rows.items()]
    return tuple(sorted(tables, key=lambda table: (-(table.bytes or 0), table.name)))


def measure_used_bytes(engine: Engine) -> int | None:
    """As `read_used_bytes`, on a connection of its own."""
    with engine.connect() as connection:
        return read_used_bytes(connection)


def read_used_bytes(connection: Connection) -> int | None:
    """The bytes of a SQLite file that hold data; None for PostgreSQL, which does not show them."""
    if connection.dialect.name != "sqlite":
        return None
    size, pages, free = (
        int(connection.execute(text(f"PRAGMA {name}")).scalar_one())
        for name in ("page_size", "page_count", "freelist_count")
    )
    return size * (pages - free)


def read_total_bytes(connection: Connection) -> int:
    """The bytes of a database: of the SQLite file, or of the tables and indexes in PostgreSQL."""
    if connection.dialect.name == "sqlite":
        size, pages = (
            int(connection.execute(text(f"PRAGMA {name}")).scalar_one()) for name in ("page_size", "page_count")
        )
        return size * pages
    return sum(_read_bytes(connection).values())


def read_most_bytes(connection: Connection) -> int | None:
    """The size that a SQLite file can reach: its size, and what is free on its volume. None for PostgreSQL, which does not show it."""
    if connection.dialect.name != "sqlite":
        return None
    path = next((str(row[2]) for row in connection.execute(text("PRAGMA database_list")) if row[1] == "main"), "")
    try:
        return read_total_bytes(connection) + shutil.disk_usage(Path(path).parent).free if path else None
    except OSError:
        return None


def _read_bytes(connection: Connection) -> dict[str, int]:
    """The bytes of each table with its indexes; empty for a SQLite library that was built without `dbstat`."""
    if connection.dialect.name == "postgresql":
        wanted = "SELECT name, pg_total_relation_size(to_regclass(name)) FROM unnest(CAST(:names AS text[])) AS name WHERE to_regclass(name) IS NOT NULL"
        names = [*METADATA.tables, search_index.NAME]
        return {str(name): int(size) for name, size in connection.execute(text(wanted), {"names": names})}
    wanted = "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) WHERE aggregate = TRUE GROUP BY tbl_name"
    try:
        known = {str(name): int(size) for name, size in connection.execute(text(wanted))}
    except OperationalError:
        return {}
    # FTS5 keeps an index in tables whose names begin with that of the index.
    known[search_index.NAME] = sum(size for name, size in known.items() if name.startswith(f"{search_index.NAME}_"))
    return known


def _read_cluster_sizes(connection: Connection) -> tuple[ClusterSize, ...]:
    scan = SCANS.c
    counts = func.count(), func.count(scan.pruned_at), func.min(scan.started_at), func.max(scan.started_at)
    wanted = select(CLUSTERS.c.name, *counts).join(CLUSTERS).group_by(CLUSTERS.c.id, CLUSTERS.c.name)
    return tuple(ClusterSize(*row) for row in connection.execute(wanted.order_by(CLUSTERS.c.name, CLUSTERS.c.id)))


def _read_deleted(connection: Connection) -> tuple[DeletedCluster, ...]:
    times = "began_at", "ended_at"
    names = "number", *times, "scans", "runs", "objects", "findings", "oldest_scan", "newest_scan", "scans_digest"
    wanted = select(*(DELETED_CLUSTERS.c[name] for name in names)).order_by(DELETED_CLUSTERS.c.number)
    return tuple(DeletedCluster(*row) for row in connection.execute(wanted))
