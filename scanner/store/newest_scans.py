"""Finds the newest scans of every cluster: one narrow row for each, so that a page about all clusters is cheap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, case, func, or_, select

from scanner.model.scan import ScanState, Scope
from scanner.store import codec
from scanner.store.clusters import StoredCluster, stored_clusters
from scanner.store.run_owners import RunOwners, labels_of
from scanner.store.runs import SCAN_OF_RUN
from scanner.store.scans import USABLE, abandoned
from scanner.store.tables import RUNS, SCANS

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


def newest_scans(connection: Connection, now: datetime) -> tuple[ClusterScans, ...]:
    """The newest scans of all clusters, the oldest cluster first; `now` decides which running scans are dead."""
    own = SCANS.c
    chosen = select(
        own.cluster,
        func.max(own.number).label("newest"),
        func.max(case((own.state.in_(USABLE), own.revision))).label("usable"),
        func.max(case((own.state == ScanState.COMPLETE.value, own.revision))).label("complete"),
    ).group_by(own.cluster)
    rows: list[Any] = list(connection.execute(chosen))
    last = {row.cluster: row for row in rows}
    scans: dict[int, list[Row[Any]]] = {}
    for row in connection.execute(_select(chosen.subquery())):
        scans.setdefault(row.cluster, []).append(row)
    dead = {scan.id: scan.ended for scan in abandoned(connection, now)}
    stored = stored_clusters(connection)
    runs = _last_runs(connection, labels_of(stored))
    return tuple(
        _of_cluster(cluster, last.get(cluster.id), scans.get(cluster.id, ()), dead, runs.get(cluster.id))
        for cluster in stored
    )


def _last_runs(connection: Connection, labels: Mapping[int, str]) -> dict[int, datetime]:
    """The begin of the last run of each cluster."""
    own = RUNS.c
    begun = select(SCANS.c.cluster, own.name, func.max(own.started_at)).select_from(RUNS.outerjoin(SCANS, SCAN_OF_RUN))
    runs = connection.execute(begun.group_by(SCANS.c.cluster, own.name)).all()
    owners = RunOwners(labels, ((cluster, name) for cluster, name, _ in runs))
    last: dict[int, datetime] = {}
    for cluster, name, started in runs:
        owner = owners.of(cluster, name)
        if owner is not None:
            last[owner] = max(started, last.get(owner, started))
    return last


def _select(chosen: Any) -> Any:
    own, last = SCANS.c, chosen.c
    wanted = or_(own.number == last.newest, own.revision == last.usable, own.revision == last.complete)
    return select(*(own[name] for name in _COLUMNS)).join(chosen, (own.cluster == last.cluster) & wanted)


def _of_cluster(
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
    newest, usable, complete = (None if row is None else _scan(row, dead) for row in chosen)
    # Scans of older versions, and of other programs, have no run.
    begun = max((each for each in (last_run, newest and newest.started_at) if each), default=None)
    return ClusterScans(cluster, newest, usable, complete, begun)


def _scan(row: Row[Any], dead: Mapping[str, datetime]) -> NewestScan:
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


def runs_without_scan(connection: Connection, most: int) -> tuple[RunsWithoutScan, ...]:
    """The names under which runs began, but never a scan: at most so many, those of the newest runs first."""
    own = RUNS.c
    scanned = select(own.name).where(or_(own.scan.is_not(None), own.scan_id != ""))
    last = (
        select(own.name, func.count().label("runs"), func.max(own.number).label("number"))
        .where(own.name.not_in(scanned))
        .group_by(own.name)
        .order_by(func.max(own.number).desc())
        .limit(most)
    ).subquery()
    wanted = select(last.c.name, last.c.runs, last.c.number, own.started_at, own.reason)
    rows = connection.execute(wanted.join(last, last.c.number == own.number).order_by(own.number.desc()))
    return tuple(RunsWithoutScan(*row) for row in rows)
