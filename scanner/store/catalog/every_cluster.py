"""Every cluster of a database: its newest scans, which pages show, and the numbers of its scans and runs, which metrics show.

A few queries read one narrow row for each cluster, so that a page about all clusters is cheap.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, Select, case, func, or_, select

from scanner.model.scans.scan import ScanState, Scope
from scanner.store.catalog.clusters import StoredCluster, read_clusters
from scanner.store.catalog.notifications import count_notifications
from scanner.store.catalog.runs import SCAN_OF_RUN, RunClusters, find_last_signs, label_clusters
from scanner.store.catalog.scans import USABLE, find_abandoned_scans
from scanner.store.rows import codec
from scanner.store.rows.sizes import read_most_bytes, read_total_bytes
from scanner.store.rows.tables import RUNS, SCANS

_COLUMNS: Final = ("id", "cluster", "number", "revision", "state", "started_at", "finished_at", "scope", "pruned_at")


class NewestScan(NamedTuple):
    """A scan as a list of clusters shows it. `limited` is true for a scan of some namespaces, kinds, policies or labels alone."""

    id: str
    state: ScanState
    started_at: datetime
    finished_at: datetime | None
    limited: bool
    pruned: bool

    @property
    def ended(self) -> datetime:
        """The end of the scan, or its beginning if it did not end."""
        return self.finished_at or self.started_at


class ClusterScans(NamedTuple):
    """The newest scan of a cluster in any state, the newest one with findings, and the newest complete one; None without one.

    `last_run` is the begin of the last run, also of one that began no scan; None if none is recorded.
    """

    cluster: StoredCluster
    newest: NewestScan | None
    usable: NewestScan | None
    complete: NewestScan | None
    last_run: datetime | None = None


class RunsWithoutScan(NamedTuple):
    """The runs under a name that no scan has: `number` is that of the last one, `reason` why it failed."""

    name: str
    runs: int
    number: int
    started_at: datetime
    reason: str


def read_newest_scans(connection: Connection, now: datetime) -> tuple[ClusterScans, ...]:
    """The newest scans of all clusters, the oldest cluster first; `now` decides which running scans are dead."""
    columns = SCANS.c
    chosen = select(
        columns.cluster,
        func.max(columns.number).label("newest"),
        func.max(case((columns.state.in_(USABLE), columns.revision))).label("usable"),
        func.max(case((columns.state == ScanState.COMPLETE.value, columns.revision))).label("complete"),
    ).group_by(columns.cluster)
    rows: list[Any] = list(connection.execute(chosen))
    last = {row.cluster: row for row in rows}
    scans: dict[int, list[Row[Any]]] = {}
    for row in connection.execute(_select_newest(chosen.subquery())):
        scans.setdefault(row.cluster, []).append(row)
    dead = {scan.id: scan.end for scan in find_abandoned_scans(connection, now)}
    stored = read_clusters(connection)
    runs = _read_last_runs(connection, label_clusters(stored))
    return tuple(
        _build_cluster_scans(cluster, last.get(cluster.id), scans.get(cluster.id, ()), dead, runs.get(cluster.id))
        for cluster in stored
    )


def _read_last_runs(connection: Connection, labels: Mapping[int, str]) -> dict[int, datetime]:
    """The begin of the last run of each cluster."""
    run = RUNS.c
    begun = select(SCANS.c.cluster, run.name, func.max(run.started_at)).select_from(RUNS.outerjoin(SCANS, SCAN_OF_RUN))
    runs = connection.execute(begun.group_by(SCANS.c.cluster, run.name)).all()
    owners = RunClusters(labels, ((cluster, name) for cluster, name, _ in runs))
    last: dict[int, datetime] = {}
    for cluster, name, started in runs:
        owner = owners.find(cluster, name)
        if owner is not None:
            last[owner] = max(started, last.get(owner, started))
    return last


def _select_newest(chosen: Any) -> Any:
    scan, last = SCANS.c, chosen.c
    wanted = or_(scan.number == last.newest, scan.revision == last.usable, scan.revision == last.complete)
    return select(*(scan[name] for name in _COLUMNS)).join(chosen, (scan.cluster == last.cluster) & wanted)


def _build_cluster_scans(
    cluster: StoredCluster,
    last: Any,
    rows: Iterable[Row[Any]],
    dead: Mapping[str, datetime],
    last_run: datetime | None,
) -> ClusterScans:
    numbers = {row.number: row for row in rows}
    revisions = {row.revision: row for row in numbers.values() if row.revision is not None}
    chosen = (
        (numbers.get(last.newest), revisions.get(last.usable), revisions.get(last.complete)) if last else (None,) * 3
    )
    newest, usable, complete = (None if row is None else _build_newest_scan(row, dead) for row in chosen)
    # Scans of older versions, and of other programs, have no run.
    begun = max((each for each in (last_run, newest and newest.started_at) if each), default=None)
    return ClusterScans(cluster, newest, usable, complete, begun)


def _build_newest_scan(row: Row[Any], dead: Mapping[str, datetime]) -> NewestScan:
    """The scan in a row: an abandoned scan has failed, even if the database does not record it yet."""
    ended = dead.get(row.id)
    return NewestScan(
        row.id,
        ScanState.FAILED if ended else ScanState(row.state),
        row.started_at,
        ended or row.finished_at,
        _is_limited(row.scope),
        row.pruned_at is not None,
    )


@lru_cache(maxsize=256)
def _is_limited(scope: str) -> bool:
    return codec.from_text(Scope, scope).is_limited


def read_runs_without_scan(connection: Connection, most: int) -> tuple[RunsWithoutScan, ...]:
    """The names under which runs began, but never a scan: at most so many, those of the newest runs first."""
    run = RUNS.c
    scanned = select(run.name).where(or_(run.scan.is_not(None), run.scan_id != ""))
    last = (
        select(run.name, func.count().label("runs"), func.max(run.number).label("number"))
        .where(run.name.not_in(scanned))
        .group_by(run.name)
        .order_by(func.max(run.number).desc())
        .limit(most)
    ).subquery()
    wanted = select(last.c.name, last.c.runs, last.c.number, run.started_at, run.reason)
    rows = connection.execute(wanted.join(last, last.c.number == run.number).order_by(run.number.desc()))
    return tuple(RunsWithoutScan(*row) for row in rows)


RECENT: Final = timedelta(days=30)
"""How long a run is remembered that reached no cluster."""


class EndedRun(NamedTuple):
    """A run of `assay scan` that does not run any more. A killed one has no `exit_code`, and its last sign of life is its end."""

    number: int
    finished_at: datetime
    exit_code: int | None


class NewestRuns(NamedTuple):
    """The begin of the newest run of a cluster, and the newest run that does not run any more, None without one."""

    begun: datetime
    ended: EndedRun | None


class ClusterNumbers(NamedTuple):
    """A cluster, its scans by state, and the ends of its last complete ones. A scan whose process is gone has failed.

    `label` is the name, or the identity where several clusters have the same name. `newest` is the id of the newest complete or
    partial scan that has a report, empty if there is none.
    `runs` is None without a recorded run. `notifications` are counted by route and state.
    """

    cluster: StoredCluster
    label: str
    newest: str
    scans: Mapping[str, int]
    last: LastComplete
    runs: NewestRuns | None
    notifications: Mapping[tuple[str, str], int]


class AllClusters(NamedTuple):
    """The clusters of a database, the oldest first; recent runs that reached none of them, by name; and the size of the database.

    `read_most_bytes` is the size that the database can reach, None if it is not known.
    """

    clusters: tuple[ClusterNumbers, ...]
    unreached: Mapping[str, NewestRuns]
    database_bytes: int
    most_bytes: int | None = None


def read_all_clusters(connection: Connection, now: datetime) -> AllClusters:
    """The numbers of every cluster at a moment, also of those whose scans have all failed."""
    stored = read_clusters(connection)
    labels = label_clusters(stored)
    states, complete, newest = (
        _count_states(connection, now),
        read_last_complete(connection),
        _read_newest_ids(connection),
    )
    notified = count_notifications(connection)
    runs, unreached = _assign_runs(_read_newest_runs(connection, now), labels)
    clusters = (
        ClusterNumbers(
            cluster,
            labels[cluster.id],
            newest.get(cluster.id, ""),
            states.get(cluster.id, {}),
            complete.get(cluster.id, LastComplete()),
            runs.get(cluster.id),
            notified.get(cluster.id, {}),
        )
        for cluster in stored
    )
    recent = {name: runs for name, runs in sorted(unreached.items()) if name and now - runs.begun <= RECENT}
    return AllClusters(tuple(clusters), recent, read_total_bytes(connection), read_most_bytes(connection))


def _count_states(connection: Connection, now: datetime) -> dict[int, Counter[str]]:
    """The numbers of scans by cluster and state."""
    columns = SCANS.c
    states: defaultdict[int, Counter[str]] = defaultdict(Counter)
    counted = select(columns.cluster, columns.state, func.count()).group_by(columns.cluster, columns.state)
    for cluster, state, number in connection.execute(counted):
        states[cluster][state] = number
    dead = [scan.number for scan in find_abandoned_scans(connection, now)]
    for cluster in connection.execute(select(columns.cluster).where(columns.number.in_(dead))).scalars():
        states[cluster].subtract((ScanState.RUNNING.value,))
        states[cluster].update((ScanState.FAILED.value,))
    return states


class LastComplete(NamedTuple):
    """The ends of the newest complete scan of a cluster, and of the newest one that was not limited; None without one."""

    complete: datetime | None = None
    whole: datetime | None = None


def read_last_complete(connection: Connection, cluster: int | None = None) -> dict[int, LastComplete]:
    """The last complete scans of one cluster or of all. The revision orders scans: a date can be wrong."""
    scan = SCANS.c
    complete = select(scan.cluster, func.max(scan.revision).label("revision")).where(
        scan.state == ScanState.COMPLETE.value, *(() if cluster is None else (scan.cluster == cluster,))
    )
    newest = complete.group_by(scan.cluster, scan.scope).subquery()
    same = (scan.cluster == newest.c.cluster) & (scan.revision == newest.c.revision)
    wanted = select(scan.cluster, scan.finished_at, scan.scope).join(newest, same).order_by(scan.revision)
    last: dict[int, LastComplete] = {}
    for number, ended, scope in connection.execute(wanted):
        whole = last[number].whole if number in last else None
        last[number] = LastComplete(ended, whole if _is_limited(scope) else ended)
    return last


def _read_newest_ids(connection: Connection) -> dict[int, str]:
    """The ids of the newest scans that have a report. The revision orders scans: a date can be wrong."""
    scan = SCANS.c
    usable = scan.state.in_(USABLE) & scan.pruned_at.is_(None)
    newest = (
        select(scan.cluster, func.max(scan.revision).label("revision")).where(usable).group_by(scan.cluster).subquery()
    )
    same = (scan.cluster == newest.c.cluster) & (scan.revision == newest.c.revision)
    return dict(connection.execute(select(scan.cluster, scan.id).select_from(SCANS.join(newest, same))).all())


class _Run(NamedTuple):
    """The newest run, by its number, of a cluster and a name among those that have ended, or among the others.

    `cluster` is None if no scan began, and `ended` while it runs.
    """

    number: int
    cluster: int | None
    name: str
    started_at: datetime
    ended: EndedRun | None


def _read_newest_runs(connection: Connection, now: datetime) -> list[_Run]:
    """The newest runs of each cluster and each name: those whose end is recorded, and those that are killed or still run."""
    ended = [
        _Run(row.number, row.cluster, row.name, row.started_at, EndedRun(row.number, row.finished_at, row.exit_code))
        for row in connection.execute(_select_newest_runs(ended=True))
    ]
    others = connection.execute(_select_newest_runs(ended=False)).all()
    last_signs = find_last_signs(connection, [row.number for row in others], now)
    for row in others:
        last_sign = last_signs[row.number]
        killed = EndedRun(row.number, last_sign, None) if last_sign else None
        ended.append(_Run(row.number, row.cluster, row.name, row.started_at, killed))
    return sorted(ended)


def _select_newest_runs(*, ended: bool) -> Select[Any]:
    row = RUNS.c
    groups = (
        select(SCANS.c.cluster, func.max(row.number).label("number"))
        .select_from(RUNS.outerjoin(SCANS, SCANS.c.number == row.scan if ended else SCAN_OF_RUN))
        .where(row.exit_code.is_not(None) if ended else row.exit_code.is_(None))
        .group_by(row.name, SCANS.c.cluster)
        .subquery()
    )
    columns = (groups.c.cluster, row.number, row.name, row.started_at, row.finished_at, row.exit_code)
    return select(*columns).select_from(RUNS.join(groups, groups.c.number == row.number))


def _assign_runs(
    runs: Sequence[_Run], labels: Mapping[int, str]
) -> tuple[dict[int, NewestRuns], dict[str, NewestRuns]]:
    """The newest runs of each cluster, and those that belong to none by their name. Later runs come last."""
    owners = RunClusters(labels, ((run.cluster, run.name) for run in runs))
    of_clusters: dict[int, NewestRuns] = {}
    unreached: dict[str, NewestRuns] = {}
    for run in runs:
        owner = owners.find(run.cluster, run.name)
        if owner is None:
            unreached[run.name] = _add_run(unreached.get(run.name), run)
        else:
            of_clusters[owner] = _add_run(of_clusters.get(owner), run)
    return of_clusters, unreached


def _add_run(before: NewestRuns | None, run: _Run) -> NewestRuns:
    return NewestRuns(run.started_at, run.ended or (before.ended if before else None))
