"""Retention: old scans lose their bodies, and what is kept reads as before.

A prune marks scans as pruned in portions, then deletes the intervals that no report needs, then the shared rows to which nothing
refers. Each transaction is short and leaves the database whole: a prune that is interrupted is continued by the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Engine

from scanner.errors import UsageError
from scanner.model.scans.scan import Scan
from scanner.store.catalog.clusters import stored_clusters
from scanner.store.catalog.scans import abandoned, mark_failed, scan_of, select_scans
from scanner.store.database.address import Address, address_of
from scanner.store.database.clocks import clock_of
from scanner.store.database.engine import engine_for, lock_bodies, lock_history, merge_log, reading_engine_for, writing
from scanner.store.database.store_errors import as_store_error
from scanner.store.history.daily import KEPT_DAYS, forget_days, forget_fixes
from scanner.store.rows.interning import chunks
from scanner.store.rows.references import delete_unreferenced
from scanner.store.rows.search_index import forget_unused
from scanner.store.rows.sizes import sizes, used_bytes
from scanner.store.rows.tables import SCANS
from scanner.store.upkeep.retention_plan import Rule, ScanRow, in_use, prunable
from scanner.store.upkeep.retention_rows import Bodies, delete_unneeded, rows_of, scans_of, unneeded
from scanner.store.upkeep.schema import check

PORTION: Final = 50
"""The number of scans that one transaction prunes."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The result of a prune: the numbers of scans, of deleted rows, and of bytes that are free for later scans.

    `finished` is False if shared rows are left because scans began or ended all the time. `bytes` is None if not known.
    """

    scans: int
    rows: int
    bytes: int | None = None
    finished: bool = True


@dataclass(frozen=True, slots=True)
class Planned:
    """The rows that a prune would delete: scans, the number of rows, and about how many bytes; None if the bytes are not known."""

    scans: tuple[Scan, ...]
    rows: int
    bytes: int | None


def prune(url: str, rule: Rule, now: datetime | None = None) -> Pruned:
    """Prune a database, by default as of now by its own clock. Raises UsageError if it is missing or empty, StoreError when it cannot be used."""
    address = existing(url)
    engine = engine_for(address)
    try:
        with as_store_error(address):
            check(engine, address)
            now = now or clock_of(engine)()
            before = _used(engine)
            _mark_dead_scans_failed(engine, now)
            scans = rows = 0
            for cluster in _clusters(engine):
                pruned, deleted = _prune_cluster(engine, cluster, rule, now)
                scans, rows = scans + pruned, rows + deleted
            deleted, finished = delete_unreferenced(engine)
            merge_log(engine)
            after = _used(engine)
            freed = None if before is None or after is None else max(before - after, 0)
            return Pruned(scans, rows + deleted, freed, finished)
    finally:
        engine.dispose()


def would_prune(url: str, rule: Rule, now: datetime | None = None) -> Planned:
    """The scans and rows that a prune would delete; rows that scans share are not counted. Writes nothing.

    Raises UsageError if the database is missing or empty, StoreError when it cannot be used.
    """
    address = existing(url)
    engine = reading_engine_for(address)
    try:
        with as_store_error(address):
            check(engine, address)
            now = now or clock_of(engine)()
            with engine.connect() as connection:
                return _counted(connection, rule, now)
    finally:
        engine.dispose()


def _counted(connection: Connection, rule: Rule, now: datetime) -> Planned:
    dead = {scan.number for scan in abandoned(connection, now)}
    scans: list[Scan] = []
    rows = Counter[str]()
    for cluster in stored_clusters(connection):
        of_cluster = scans_of(connection, cluster.id, dead)
        going = prunable(of_cluster, rule, now)
        found = unneeded(connection, cluster.id, of_cluster, going)
        for portion in chunks(going):
            chosen = select_scans().where(SCANS.c.number.in_(portion)).order_by(SCANS.c.number)
            scans += (scan_of(row) for row in connection.execute(chosen))
        rows.update(rows_of(connection, going))
        rows.update({"findings": found.findings.count, "population": len(found.objects)})
    known = {size.name: size for size in sizes(connection)}
    per_row = {name: size.bytes / size.rows for name, size in known.items() if size.bytes is not None and size.rows}
    freed = int(sum(count * per_row.get(name, 0) for name, count in rows.items())) if per_row else None
    return Planned(tuple(scans), rows.total(), freed)


def _prune_cluster(engine: Engine, cluster: int, rule: Rule, now: datetime) -> tuple[int, int]:
    """Prune the scans of a cluster; return the numbers of scans and of deleted rows."""
    pruned = deleted = 0
    while True:
        with writing(engine) as connection:
            lock_bodies(connection, cluster)
            scans = scans_of(connection, cluster)
            going = prunable(scans, rule, now)[:PORTION]
            deleted += Bodies(connection, cluster, scans).prune(going or _released(scans), now)
            pruned += len(going)
            if not going:
                before = now.astimezone(UTC).date() - timedelta(days=max(KEPT_DAYS, rule.days))
                deleted += forget_days(connection, cluster, before) + forget_fixes(connection, cluster, before)
                break
    deleted += delete_unneeded(engine, cluster)
    with writing(engine) as connection:
        lock_history(connection, cluster)
        forget_unused(connection, cluster)
    return pruned, deleted


def _released(scans: Sequence[ScanRow]) -> list[int]:
    """The tombstones that may have kept rows for findings that were open then."""
    used = frozenset(in_use(scans))
    return [scan.number for scan in scans if scan.pruned and scan.number not in used]


def _clusters(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return [cluster.id for cluster in stored_clusters(connection)]


def _mark_dead_scans_failed(engine: Engine, now: datetime) -> None:
    with engine.connect() as connection:
        dead = abandoned(connection, now)
    if dead:
        with writing(engine) as connection:
            mark_failed(connection, dead)


def existing(url: str) -> Address:
    """The address of a database. Raises UsageError for an invalid one, and for a file that does not exist."""
    address = address_of(url)
    if address.path is not None and not address.path.exists():
        raise UsageError(f"The database {address.path} does not exist. Name another one with --db.")
    return address


def _used(engine: Engine) -> int | None:
    with engine.connect() as connection:
        return used_bytes(connection)
