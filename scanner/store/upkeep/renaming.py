"""Gives the history of a cluster another name: the name that later scans pass as `--cluster-name` to continue the history.

Nothing that a scan recorded changes: a scan keeps the name that it had, and shows that of its cluster. Two histories are never
joined. A name whose history has no merged scan is free: its failed scans go over to the renamed history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from sqlalchemy import Connection, delete, func, select, update

from scanner.errors import UsageError
from scanner.store.catalog.clusters import (
    StoredCluster,
    are_alike,
    key_of_given_name,
    read_clusters,
    update_cluster,
)
from scanner.store.catalog.runs import list_names_of_runs, rename_runs
from scanner.store.database.engine import lock_bodies, make_engine, merge_log, writing_shared
from scanner.store.database.store_errors import as_store_error
from scanner.store.rows.tables import CLUSTERS, SCANS
from scanner.store.upkeep.named_cluster import find_named_cluster, reject_running
from scanner.store.upkeep.retention import find_database
from scanner.store.upkeep.schema import check_schema


@dataclass(frozen=True, slots=True)
class RenameResult:
    """The result: the names of the history before and after, and the number of its scans. `changed` is False for the same name."""

    before: str
    name: str
    scans: int
    changed: bool


def rename_cluster(url: str, old: str, new: str, now: datetime) -> RenameResult:
    """Rename the history of the cluster with the name, the UID, the path or the identity `old`; `now` decides which scans still run.

    Raises UsageError for a name that cannot be given, an unknown cluster, the name of another history, and while the cluster is
    scanned; StoreError when the database cannot be used.
    """
    _reject_name(new)
    address = find_database(url)
    engine = make_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            with writing_shared(engine) as connection:
                renamed = _rename(connection, old, new, now)
            merge_log(engine)
            return renamed
    finally:
        engine.dispose()


def _rename(connection: Connection, old: str, new: str, now: datetime) -> RenameResult:
    stored = read_clusters(connection)
    cluster = find_named_cluster(stored, old)
    wanted = cluster._replace(identity=key_of_given_name(new), name=new)
    if wanted == cluster:
        return RenameResult(cluster.name, new, _count_scans(connection, cluster.id), changed=False)
    others = [row for row in stored if row.id != cluster.id]
    free = _find_free_histories(connection, cluster, others, new)
    numbers = [cluster.id, *(row.id for row in free)]
    # A merge is not waited for: the lock of all clusters is held here, and other scans could not begin.
    reject_running(connection, (cluster, *free), now)
    for number in numbers:
        lock_bodies(connection, number)
    reject_running(connection, (cluster, *free), now)
    for row in free:
        _take_scans(connection, row, cluster)
    taken = {row.name for row in others} | list_names_of_runs(connection, without=numbers)
    update_cluster(connection, cluster, wanted)
    rename_runs(connection, cluster.id, cluster.name, new, alone=cluster.name not in taken)
    return RenameResult(cluster.name, new, _count_scans(connection, cluster.id), changed=True)


def _reject_name(name: str) -> None:
    if not name.strip():
        raise UsageError("The new name is empty: write the name that later scans pass as --cluster-name.")
    if name != name.strip() or not name.isprintable():
        raise UsageError(
            f"The new name {name!r} has a control character, or a space at an end: write letters, digits and . _ - : / @"
        )


def _find_free_histories(
    connection: Connection, cluster: StoredCluster, others: Sequence[StoredCluster], new: str
) -> list[StoredCluster]:
    """The histories with the new name that have no merged scan, and are none of another cluster. Raises UsageError for others."""
    named = [row for row in others if new in {row.name, row.identity, *row.marks.values()}]
    for row in named:
        merged = _count_merged_scans(connection, row.id)
        if merged or not row.has_given_name or not are_alike(cluster, row):
            raise UsageError(_describe_conflict(row, new, merged))
    return named


def _describe_conflict(other: StoredCluster, new: str, merged: int) -> str:
    scans = f"with {merged:,} scan{'s' * (merged != 1)}" if merged else "without a finished scan"
    return (
        f"{new} is the name of another history, {other.identity}, {scans}; histories are not joined. Choose another name, or "
        f"give that history another one first: assay db rename-cluster {quote(other.identity)} OTHER"
    )


def _count_merged_scans(connection: Connection, cluster: int) -> int:
    merged = select(func.count()).where(SCANS.c.cluster == cluster, SCANS.c.revision.is_not(None))
    return connection.execute(merged).scalar_one()


def _count_scans(connection: Connection, cluster: int) -> int:
    return connection.execute(select(func.count()).where(SCANS.c.cluster == cluster)).scalar_one()


def _take_scans(connection: Connection, free: StoredCluster, cluster: StoredCluster) -> None:
    """Give the failed scans of a history without merged scans to another history, and delete it."""
    connection.execute(update(SCANS).where(SCANS.c.cluster == free.id).values(cluster=cluster.id))
    connection.execute(delete(CLUSTERS).where(CLUSTERS.c.id == free.id))
