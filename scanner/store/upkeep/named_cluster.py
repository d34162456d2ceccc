"""The cluster that a command names and changes, and the scans that keep the command from doing so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches

from sqlalchemy import Connection, select

from scanner.errors import NotFound, UsageError
from scanner.model.scans.scan import ScanState
from scanner.store.catalog.clusters import StoredCluster, match_clusters
from scanner.store.catalog.runs import label_clusters, list_open_runs
from scanner.store.catalog.scans import find_abandoned_scans
from scanner.store.rows.tables import SCANS


def find_named_cluster(stored: Sequence[StoredCluster], text: str) -> StoredCluster:
    """The cluster that a text names. Raises UsageError with the known clusters unless it is exactly one."""
    chosen = match_clusters(stored, text)
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        identities = ", ".join(row.identity for row in chosen)
        raise UsageError(
            f"The name {text} is ambiguous: the database has several such clusters. Name one of: {identities}"
        )
    raise unknown_cluster(text, label_clusters(stored).values())


def unknown_cluster(text: str, names: Iterable[str]) -> NotFound:
    """The error for a cluster that the database does not have; it suggests the names that are like it, else all of them."""
    known = list(names)
    alike = get_close_matches(text, known)
    if alike:
        return NotFound(f"There is no cluster {text!r} in this database. Did you mean {' or '.join(alike)}?")
    return NotFound(f"There is no cluster {text!r} in this database: it has {', '.join(known) or 'no cluster'}.")


def reject_running(connection: Connection, clusters: Sequence[StoredCluster], now: datetime) -> None:
    """Raise UsageError while a process scans one of the clusters: its output and its notifications have the present name."""
    dead = [scan.number for scan in find_abandoned_scans(connection, now)]
    for cluster in clusters:
        columns = SCANS.c
        open_scans = (
            columns.cluster == cluster.id,
            columns.state == ScanState.RUNNING.value,
            columns.number.not_in(dead),
        )
        scan = connection.execute(select(columns.id).where(*open_scans).limit(1)).scalar()
        if scan is not None:
            raise UsageError(
                f"Scan {scan} of {cluster.name} is running: run the command again when the scan has ended, or end it."
            )
        reject_open_runs(connection, cluster.identity, cluster.name, now)


def reject_open_runs(connection: Connection, identity: str, name: str, now: datetime) -> None:
    """Raise UsageError while a run lasts, of the cluster with an identity, or under a name that no cluster has."""
    for details in list_open_runs(connection, identity, now):
        raise UsageError(
            f"Run {details.run.number} of {name} has not ended: run the command again when the run has ended."
        )
