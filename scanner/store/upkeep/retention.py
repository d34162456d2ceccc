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
from scanner.store.catalog.clusters import read_clusters
from scanner.store.catalog.scans import find_abandoned_scans, mark_dead_scans_failed, scan_of, select_scans
from scanner.store.database.address import Address, address_of
from scanner.store.database.clocks import clock_of
from scanner.store.database.engine import (
    lock_bodies,
    lock_history,
    make_engine,
    make_reading_engine,
    merge_log,
    writing,
)
from scanner.store.database.store_errors import as_store_error
from scanner.store.history.daily import KEPT_DAYS, forget_days, forget_fixes
from scanner.store.rows.interning import chunks
from scanner.store.rows.references import delete_unreferenced
from scanner.store.rows.search_index import forget_unused
from scanner.store.rows.sizes import measure_used_bytes, read_table_sizes
from scanner.store.rows.tables import SCANS
from scanner.store.upkeep.retention_plan import RetainedScan, RetentionRule, list_prunable, list_used
from scanner.store.upkeep.retention_rows import BodyPruner, count_rows, delete_unneeded, find_unneeded, read_scans
from scanner.store.upkeep.schema import check_schema

PORTION: Final = 50
"""The number of scans that one transaction prunes."""


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The result of a prune: the numbers of scans, of deleted rows, and of bytes that are free for later scans.

    `finished` is False if shared rows are left because scans began or ended all the time. `bytes` is None if not known.
    """

    scans: int
    rows: int
    bytes: int | None = None
    finished: bool = True


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """The rows that a prune would delete: scans, the number of rows, and about how many bytes; None if the bytes are not known."""

    scans: tuple[Scan, ...]
    rows: int
    bytes: int | None


def prune(url: str, rule: RetentionRule, now: datetime | None = None) -> PruneResult:
    """Prune a database, by default as of now by its own clock. Raises UsageError if it is missing or empty, StoreError when it cannot be used."""
    address = find_database(url)
    engine = make_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            now = now or clock_of(engine)()
            before = measure_used_bytes(engine)
            mark_dead_scans_failed(engine, now)
            scans = rows = 0
            for cluster in _list_clusters(engine):
                pruned, deleted = _prune_cluster(engine, cluster, rule, now)
                scans, rows = scans + pruned, rows + deleted
            deleted, finished = delete_unreferenced(engine)
            merge_log(engine)
            after = measure_used_bytes(engine)
            freed = None if before is None or after is None else max(before - after, 0)
            return PruneResult(scans, rows + deleted, freed, finished)
    finally:
        engine.dispose()


def plan_prune(url: str, rule: RetentionRule, now: datetime | None = None) -> PrunePlan:
    """The scans and rows that a prune would delete; rows that scans share are not counted. Writes nothing.

    Raises UsageError if the database is missing or empty, StoreError when it cannot be used.
    """
    address = find_database(url)
    engine = make_reading_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            now = now or clock_of(engine)()
            with engine.connect() as connection:
                return _plan(connection, rule, now)
    finally:
        engine.dispose()


def _plan(connection: Connection, rule: RetentionRule, now: datetime) -> PrunePlan:
    dead = {scan.number for scan in find_abandoned_scans(connection, now)}
    scans: list[Scan] = []
    rows = Counter[str]()
    for cluster in read_clusters(connection):
        of_cluster = read_scans(connection, cluster.id, dead)
        going = list_prunable(of_cluster, rule, now)
        unneeded = find_unneeded(connection, cluster.id, of_cluster, going)
        for portion in chunks(going):
            chosen = select_scans().where(SCANS.c.number.in_(portion)).order_by(SCANS.c.number)
            scans += (scan_of(row) for row in connection.execute(chosen))
        rows.update(count_rows(connection, going))
        rows.update({"findings": unneeded.findings.count, "population": len(unneeded.objects)})
    known = {size.name: size for size in read_table_sizes(connection)}
    per_row = {name: size.bytes / size.rows for name, size in known.items() if size.bytes is not None and size.rows}
    freed = int(sum(count * per_row.get(name, 0) for name, count in rows.items())) if per_row else None
    return PrunePlan(tuple(scans), rows.total(), freed)


def _prune_cluster(engine: Engine, cluster: int, rule: RetentionRule, now: datetime) -> tuple[int, int]:
    """Prune the scans of a cluster; return the numbers of scans and of deleted rows."""
    pruned = deleted = 0
    while True:
        with writing(engine) as connection:
            lock_bodies(connection, cluster)
            scans = read_scans(connection, cluster)
            going = list_prunable(scans, rule, now)[:PORTION]
            # The last round prunes no scan: it trims tombstones that kept rows for findings which were open.
            deleted += BodyPruner(connection, cluster, scans).prune(going or _find_released(scans), now)
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


def _find_released(scans: Sequence[RetainedScan]) -> list[int]:
    """The tombstones that may have kept rows for findings that were open then."""
    used = frozenset(list_used(scans))
    return [scan.number for scan in scans if scan.pruned and scan.number not in used]


def _list_clusters(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return [cluster.id for cluster in read_clusters(connection)]


def find_database(url: str) -> Address:
    """The address of a database. Raises UsageError for an invalid one, and for a file that does not exist."""
    address = address_of(url)
    if address.path is not None and not address.path.exists():
        raise UsageError(f"The database {address.path} does not exist. Name another one with --db.")
    return address
