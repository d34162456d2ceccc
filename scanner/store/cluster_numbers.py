"""The scans and runs of all clusters, counted in a few queries: what metrics need to know before they read a scan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select

from scanner.model.scan import ScanState
from scanner.store.clusters import StoredCluster, stored_clusters
from scanner.store.notifications import counts
from scanner.store.run_owners import RunOwners, labels_of
from scanner.store.scans import USABLE, abandoned
from scanner.store.sizes import most_bytes, total_bytes
from scanner.store.tables import RUNS, SCANS

RECENT: Final = timedelta(days=30)
"""How long a run is remembered that reached no cluster."""


class NewestRun(NamedTuple):
    """A run of `assay scan` that has ended, by its name in the register."""

    number: int
    name: str
    finished_at: datetime
    exit_code: int


class ClusterNumbers(NamedTuple):
    """A cluster, its scans by state, and the end of the newest complete one. A scan whose process is gone has failed.

    `label` is the name, or the identity where several clusters have the same name. `newest` is the id of the newest complete or
    partial scan that has a report, empty if there is none. `notifications` are counted by route and state.
    """

    cluster: StoredCluster
    label: str
    newest: str
    scans: Mapping[str, int]
    last_complete: datetime | None
    run: NewestRun | None
    notifications: Mapping[tuple[str, str], int]


class AllClusters(NamedTuple):
    """The clusters of a database, the oldest first; recent runs that reached none of them, by name; and the size of the database.

    `most_bytes` is the size that the database can reach, None if it is not known.
    """

    clusters: tuple[ClusterNumbers, ...]
    unreached: tuple[NewestRun, ...]
    database_bytes: int
    most_bytes: int | None = None


def all_clusters(connection: Connection, now: datetime) -> AllClusters:
    """The numbers of every cluster at a moment, also of those whose scans have all failed."""
    stored = stored_clusters(connection)
    labels = labels_of(stored)
    states, complete, newest = _states(connection, now), _last_complete(connection), _newest(connection)
    notified = counts(connection)
    runs, unreached = _by_cluster(_newest_runs(connection), labels)
    clusters = (
        ClusterNumbers(
            cluster,
            labels[cluster.id],
            newest.get(cluster.id, ""),
            states.get(cluster.id, {}),
            complete.get(cluster.id),
            runs.get(cluster.id),
            notified.get(cluster.id, {}),
        )
        for cluster in stored
    )
    recent = (run for run in unreached if run.name and now - run.finished_at <= RECENT)
    return AllClusters(tuple(clusters), tuple(recent), total_bytes(connection), most_bytes(connection))


def _states(connection: Connection, now: datetime) -> dict[int, Counter[str]]:
    """The numbers of scans by cluster and state."""
    own = SCANS.c
    states: defaultdict[int, Counter[str]] = defaultdict(Counter)
    counted = select(own.cluster, own.state, func.count()).group_by(own.cluster, own.state)
    for cluster, state, number in connection.execute(counted):
        states[cluster][state] = number
    dead = [scan.number for scan in abandoned(connection, now)]
    for cluster in connection.execute(select(own.cluster).where(own.number.in_(dead))).scalars():
        states[cluster].subtract((ScanState.RUNNING.value,))
        states[cluster].update((ScanState.FAILED.value,))
    return states


def _last_complete(connection: Connection) -> dict[int, datetime]:
    """The ends of the newest complete scans. The revision orders scans: a date can be wrong."""
    own = SCANS.c
    complete = select(own.cluster, func.max(own.revision).label("revision")).where(
        own.state == ScanState.COMPLETE.value
    )
    newest = complete.group_by(own.cluster).subquery()
    same = (own.cluster == newest.c.cluster) & (own.revision == newest.c.revision)
    return dict(connection.execute(select(own.cluster, own.finished_at).join(newest, same)).all())


def _newest(connection: Connection) -> dict[int, str]:
    """The ids of the newest scans that have a report. The revision orders scans: a date can be wrong."""
    own = SCANS.c
    usable = own.state.in_(USABLE) & own.pruned_at.is_(None)
    newest = (
        select(own.cluster, func.max(own.revision).label("revision")).where(usable).group_by(own.cluster).subquery()
    )
    same = (own.cluster == newest.c.cluster) & (own.revision == newest.c.revision)
    return dict(connection.execute(select(own.cluster, own.id).select_from(SCANS.join(newest, same))).all())


def _newest_runs(connection: Connection) -> list[tuple[int | None, NewestRun]]:
    """The newest run that has ended of each cluster and each name of runs; without a cluster if no scan began."""
    own = RUNS.c
    groups = (
        select(SCANS.c.cluster, func.max(own.number).label("number"))
        .select_from(RUNS.outerjoin(SCANS, SCANS.c.number == own.scan))
        .where(own.exit_code.is_not(None))
        .group_by(own.name, SCANS.c.cluster)
        .subquery()
    )
    columns = (own[name] for name in NewestRun._fields)
    wanted = select(groups.c.cluster, *columns).select_from(RUNS.join(groups, groups.c.number == own.number))
    return [(cluster, NewestRun(*run)) for cluster, *run in connection.execute(wanted.order_by(own.number))]


def _by_cluster(
    runs: Iterable[tuple[int | None, NewestRun]], labels: Mapping[int, str]
) -> tuple[dict[int, NewestRun], tuple[NewestRun, ...]]:
    """The newest run of each cluster, and the runs that belong to none. Later runs have higher numbers."""
    runs = tuple(runs)
    owners = RunOwners(labels, ((cluster, run.name) for cluster, run in runs))
    newest: dict[int, NewestRun] = {}
    unreached = []
    for cluster, run in runs:
        owner = owners.of(cluster, run.name)
        if owner is None:
            unreached.append(run)
        elif owner not in newest or newest[owner].number < run.number:
            newest[owner] = run
    return newest, tuple(sorted(unreached, key=lambda run: run.name))
