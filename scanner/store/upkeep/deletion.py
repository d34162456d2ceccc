"""Deletes the history of a cluster: its rows, its runs, and the texts that only it had. A tombstone with dates and counts stays.

The first transaction takes the cluster out of every list and frees its names. The others delete its rows in portions, so scans of
other clusters go on meanwhile, and a deletion that is killed is continued by the next one (ADR 76).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine, Table, case, delete, func, insert, select, update

from scanner import __version__
from scanner.errors import NotFound, StoreError
from scanner.model.scans.scan import ScanState
from scanner.store.catalog.clusters import (
    StoredCluster,
    find_deleted,
    mark_deleted,
    match_clusters,
    read_clusters,
)
from scanner.store.catalog.runs import label_clusters, list_run_numbers
from scanner.store.database.clocks import clock_of
from scanner.store.database.engine import (
    lock_bodies,
    make_overwriting_engine,
    make_reading_engine,
    merge_log,
    writing_shared,
)
from scanner.store.database.store_errors import as_store_error
from scanner.store.rows.interning import reserve_ids
from scanner.store.rows.references import delete_unreferenced
from scanner.store.rows.search_index import drop_deleted_entries
from scanner.store.rows.shared_rows import RowOwners
from scanner.store.rows.sizes import measure_used_bytes
from scanner.store.rows.tables import CLOSING_SUMS, CLUSTERS, DELETED_CLUSTERS, FINDINGS, OBJECTS, RUNS, SCANS
from scanner.store.upkeep.cluster_rows import count_owned_rows, delete_owned_rows, delete_runs
from scanner.store.upkeep.named_cluster import find_named_cluster, reject_open_runs, reject_running, unknown_cluster
from scanner.store.upkeep.planner_statistics import renew_statistics
from scanner.store.upkeep.retention import find_database
from scanner.store.upkeep.schema import check_schema


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """The rows that a deletion would delete, by table, without those that clusters share."""

    name: str
    rows: dict[str, int]


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """A deleted cluster: the number of its tombstone, and the numbers of scans, runs and rows, and of bytes for later scans.

    `bytes` is None if not known. `continued` is true for a deletion that was begun earlier; `rows` are those that were left then.
    """

    name: str
    tombstone: int
    scans: int
    runs: int
    rows: int
    bytes: int | None = None
    continued: bool = False


class _Begun(NamedTuple):
    """A deletion that has a tombstone and has not ended. `cluster` is None if its row is gone, or if only runs had the name."""

    tombstone: int
    cluster: StoredCluster | None
    scans: int
    runs: int


class _Named(NamedTuple):
    """What a name stands for: a cluster, or only runs that reached none; and the numbers of its runs."""

    name: str
    cluster: StoredCluster | None
    runs: list[int]


def plan_deletion(url: str, name: str) -> DeletionPlan:
    """The rows that a deletion would delete. Writes nothing. Raises as `delete_cluster` does, but not for a scan that runs."""
    address = find_database(url)
    engine = make_reading_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            with engine.connect() as connection:
                named = _find(connection, name)
                rows = count_owned_rows(connection, named.cluster.id) if named.cluster else {}
                return DeletionPlan(named.name, {**rows, **({RUNS.name: len(named.runs)} if named.runs else {})})
    finally:
        engine.dispose()


def delete_cluster(
    url: str, name: str, now: datetime | None = None, timer: Callable[[], float] = time.monotonic
) -> list[DeletionResult]:
    """Delete the cluster with a name, a UID, a path or an identity, or the runs of a name that never reached a cluster.

    Deletions that were begun earlier are ended first; a name that one of them has is deleted then. `now`, by default the time of
    the database's clock, decides which scans still run; `timer` counts the seconds for which scans are waited for.

    Raises UsageError for an unknown cluster, and while the cluster is scanned; StoreError when the database cannot be used, and
    while scans of other clusters leave no moment to delete what they could share.
    """
    address = find_database(url)
    engine = make_overwriting_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            begun = _read_begun(engine)
            results = [_finish(engine, each, timer, continued=True) for each in begun]
            if not any(each.cluster and match_clusters([each.cluster], name) for each in begun):
                # A deletion that lacked its last step alone has no name any more: it may be the one that the user repeats.
                with suppress(*([NotFound] if any(each.cluster is None for each in begun) else [])):
                    new = _begin(engine, name, now or clock_of(engine)())
                    results.append(_finish(engine, new, timer, continued=False))
            merge_log(engine)
            return results
    finally:
        engine.dispose()


def _find(connection: Connection, name: str) -> _Named:
    stored = read_clusters(connection)
    if match_clusters(stored, name):
        cluster = find_named_cluster(stored, name)
        return _Named(cluster.name, cluster, list_run_numbers(connection, stored, cluster.id, cluster.name))
    runs = list_run_numbers(connection, stored, None, name)
    if not runs:
        unreached = connection.execute(select(RUNS.c.name).distinct()).scalars()
        raise unknown_cluster(name, dict.fromkeys((*label_clusters(stored).values(), *unreached)))
    return _Named(name, None, runs)


def _begin(engine: Engine, name: str, now: datetime) -> _Begun:
    """Take a cluster out of every list, delete its runs, and write its tombstone."""
    with writing_shared(engine) as connection:
        named = _find(connection, name)
        cluster = named.cluster
        if cluster is None:
            reject_open_runs(connection, name, name, now)
        else:
            # A merge is not waited for: the lock of all clusters is held here, and other scans could not begin.
            reject_running(connection, (cluster,), now)
            lock_bodies(connection, cluster.id)
            reject_running(connection, (cluster,), now)
        tombstone = _insert_tombstone(connection, named, now)
        delete_runs(connection, named.runs)
        if cluster is not None:
            _end_scans(connection, cluster.id, now)
            mark_deleted(connection, cluster, tombstone)
        return next(each for each in _list_begun(connection) if each.tombstone == tombstone)


def _insert_tombstone(connection: Connection, named: _Named, now: datetime) -> int:
    cluster = named.cluster.id if named.cluster else 0
    scan = SCANS.c
    oldest, newest = connection.execute(
        select(func.min(scan.started_at), func.max(scan.started_at)).where(scan.cluster == cluster)
    ).one()
    ids = connection.execute(select(scan.id).where(scan.cluster == cluster).order_by(scan.number)).scalars().all()
    [number] = reserve_ids(connection, DELETED_CLUSTERS, 1)
    values = {
        "number": number,
        "began_at": now,
        "oldest_scan": oldest,
        "newest_scan": newest,
        "scans": len(ids),
        "runs": len(named.runs),
        **{table.name: _count(connection, table, cluster) for table in (OBJECTS, FINDINGS)},
        "scans_digest": _digest_ids(ids),
        "tool_version": __version__,
    }
    connection.execute(insert(DELETED_CLUSTERS).values(values))
    return number


def _digest_ids(ids: Sequence[str]) -> str:
    """The digest by which the holder of all reports of a cluster finds its tombstone: SHA-256 of the ids of the scans, a line each."""
    return hashlib.sha256("".join(f"{scan_id}\n" for scan_id in ids).encode()).hexdigest()


def _end_scans(connection: Connection, cluster: int, now: datetime) -> None:
    """Take the scans of a cluster out of history, so that nothing reads a part of them."""
    number = SCANS.c.number
    of_cluster = SCANS.c.cluster == cluster
    connection.execute(delete(CLOSING_SUMS).where(CLOSING_SUMS.c.scan.in_(select(number).where(of_cluster))))
    pruned = case((SCANS.c.pruned_at.is_(None), now), else_=SCANS.c.pruned_at)
    owners = {f"{rows}_of": 0 for rows in RowOwners._fields}
    ended = {"state": ScanState.FAILED.value, "revision": None, "pruned_at": pruned, **owners}
    connection.execute(update(SCANS).where(of_cluster).values(ended))


def _read_begun(engine: Engine) -> list[_Begun]:
    with engine.connect() as connection:
        return _list_begun(connection)


def _list_begun(connection: Connection) -> list[_Begun]:
    tombstone = DELETED_CLUSTERS.c
    wanted = select(tombstone.number, tombstone.scans, tombstone.runs).where(tombstone.ended_at.is_(None))
    rows = connection.execute(wanted.order_by(tombstone.number)).all()
    return [_Begun(row.number, find_deleted(connection, row.number), row.scans, row.runs) for row in rows]


def _finish(engine: Engine, begun: _Begun, timer: Callable[[], float], *, continued: bool) -> DeletionResult:
    """Delete what is left of a cluster, and record that its deletion has ended."""
    before = measure_used_bytes(engine)
    rows = delete_owned_rows(engine, begun.cluster.id) if begun.cluster else 0
    shared, finished = delete_unreferenced(engine, timer)
    if not finished:
        raise StoreError(_UNFINISHED)
    drop_deleted_entries(engine)
    with writing_shared(engine) as connection:
        if begun.cluster is not None:
            connection.execute(delete(CLUSTERS).where(CLUSTERS.c.id == begun.cluster.id))
    renew_statistics(engine)
    with writing_shared(engine) as connection:
        ended = update(DELETED_CLUSTERS).where(DELETED_CLUSTERS.c.number == begun.tombstone)
        connection.execute(ended.values(ended_at=clock_of(engine)()))
    after = measure_used_bytes(engine)
    freed = None if before is None or after is None else max(before - after, 0)
    name = begun.cluster.name if begun.cluster else ""
    return DeletionResult(name, begun.tombstone, begun.scans, begun.runs, rows + shared, freed, continued)


_UNFINISHED: Final = (
    "Scans of other clusters began or ended all the time, so texts of the deleted cluster are left. Run the command again when "
    "no scan runs: it continues the deletion."
)


def _count(connection: Connection, table: Table, cluster: int) -> int:
    return connection.execute(select(func.count()).select_from(table).where(table.c.cluster == cluster)).scalar_one()
