"""Runs of `assay scan`: a row before the cluster is contacted, closed with the exit code and the reason."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, func, insert, or_, select, update

from scanner.errors import UsageError
from scanner.model.scans.run import KILLED, Run, RunDetails, explain_kill
from scanner.model.scans.scan import ScanState, Scope
from scanner.model.texts import clean
from scanner.store.catalog.clusters import StoredCluster, find_cluster
from scanner.store.rows import codec
from scanner.store.rows.gap_lists import read_gaps_of_scans
from scanner.store.rows.interning import reserve_ids
from scanner.store.rows.tables import CLUSTERS, RUNS, SCANS

_AT_ONCE: Final = 500
_WITHOUT_BEATS: Final = timedelta(minutes=15)
"""The time in which a run may contact its cluster, or write its report: only a scan that runs has a heartbeat."""
SCAN_OF_RUN: Final = (SCANS.c.number == RUNS.c.scan) | (RUNS.c.scan.is_(None) & (SCANS.c.id == RUNS.c.scan_id))
"""A run that has not ended names its scan by id alone."""


def begin_run(connection: Connection, name: str, now: datetime, command_line: Iterable[str] = ()) -> int:
    """Record that a run begins; return its number."""
    [number] = reserve_ids(connection, RUNS, 1)
    owner = get_current_process()
    values = {
        "number": number,
        "name": clean(name),
        "started_at": now,
        "reason": "",
        "host": clean(owner.host),
        "process": owner.process,
        "process_started": owner.started,
        "command_line": orjson.dumps([clean(argument) for argument in command_line]).decode(),
    }
    connection.execute(insert(RUNS).values(values))
    return number


def name_run(connection: Connection, number: int, name: str) -> None:
    """Record the name of a run."""
    connection.execute(update(RUNS).where(RUNS.c.number == number).values(name=clean(name)))


def begin_scan(connection: Connection, number: int, scan_id: str) -> None:
    """Record the id of the scan that a run begins."""
    connection.execute(update(RUNS).where(RUNS.c.number == number).values(scan_id=clean(scan_id)))


def end_run(connection: Connection, number: int, *, exit_code: int, reason: str, scan_id: str, now: datetime) -> None:
    """Record the end of a run. A scan that never began leaves the run without a scan."""
    scan = select(SCANS.c.number).where(SCANS.c.id == scan_id).scalar_subquery()
    values = {"finished_at": now, "exit_code": exit_code, "reason": clean(reason), "scan": scan}
    connection.execute(update(RUNS).where(RUNS.c.number == number).values(values))


def close_killed_runs(connection: Connection, now: datetime) -> None:
    """Record the end of runs whose process is gone at the moment `now`: their last sign of life.

    A run whose scan is still recorded as running stays open. A run that was closed by mistake corrects its end when it ends.
    """
    unfinished = _select_runs().where(RUNS.c.exit_code.is_(None))
    for row in connection.execute(unfinished).all():
        if row.state == ScanState.RUNNING.value or _is_alive(row, now):
            continue
        last = _find_last_sign(row)
        values = {"finished_at": last, "exit_code": KILLED, "reason": explain_kill(last), "scan": row.scan_number}
        still_open = RUNS.c.number == row.number, RUNS.c.exit_code.is_(None)
        connection.execute(update(RUNS).where(*still_open).values(values))


def list_runs(
    connection: Connection,
    now: datetime,
    *,
    limit: int | None = None,
    cluster: str | None = None,
    since: datetime | None = None,
    before: int | None = None,
    number: int | None = None,
) -> tuple[RunDetails, ...]:
    """The newest runs, the newest first: of one cluster (by name, UID or identity), since a moment, before another run, or with a number.

    Raises UsageError if no run is of that cluster, if several clusters have the name, and if there is no run `before`.
    """
    chosen = _build_conditions(connection, cluster, since)
    if before is not None:
        started = find_run(connection, before, now).run.started_at
        run = RUNS.c
        chosen += ((run.started_at < started) | ((run.started_at == started) & (run.number < before)),)
    if number is not None:
        chosen += (RUNS.c.number == number,)
    wanted = _select_runs().where(*chosen).order_by(RUNS.c.started_at.desc(), RUNS.c.number.desc()).limit(limit)
    return _build_details(connection, connection.execute(wanted).all(), now)


def find_first_run(connection: Connection, cluster: str | None) -> datetime | None:
    """The begin of the first recorded run, of one cluster or of all; None without one. Raises as `list_runs` does."""
    wanted = _select_runs().where(*_build_conditions(connection, cluster, None))
    first = wanted.with_only_columns(func.min(RUNS.c.started_at), maintain_column_froms=True)
    begun: datetime | None = connection.execute(first).scalar_one()
    return begun


def count_runs(connection: Connection, cluster: str | None, since: datetime | None) -> int:
    """The number of the runs of one cluster, or since a moment. Raises as `list_runs` does."""
    wanted = _select_runs().where(*_build_conditions(connection, cluster, since))
    return connection.execute(wanted.with_only_columns(func.count(), maintain_column_froms=True)).scalar_one()


def _build_conditions(
    connection: Connection, cluster: str | None, since: datetime | None
) -> tuple[ColumnElement[bool], ...]:
    return (
        *(() if cluster is None else (_is_of_cluster(connection, cluster),)),
        *(() if since is None else (RUNS.c.started_at >= since,)),
    )


def find_run(connection: Connection, number: int, now: datetime) -> RunDetails:
    """The run with a number. Raises UsageError for an unknown one."""
    row = connection.execute(_select_runs().where(RUNS.c.number == number)).one_or_none()
    if row is None:
        raise UsageError(f"There is no run {number} in this database. `assay runs` lists the runs.")
    [details] = _build_details(connection, [row], now)
    return details


def list_clusters_of_runs(connection: Connection) -> tuple[str, ...]:
    """The clusters that runs have scanned, by name, or by identity where several have the same name; in alphabetical order."""
    scanned = select(CLUSTERS.c.name, CLUSTERS.c.identity).where(
        CLUSTERS.c.id.in_(select(SCANS.c.cluster).join(RUNS, SCAN_OF_RUN))
    )
    rows = connection.execute(scanned).all()
    names = [row.name for row in rows]
    return tuple(sorted(row.identity if names.count(row.name) > 1 else row.name for row in rows))


def list_open_runs(connection: Connection, cluster: str | None, now: datetime) -> tuple[RunDetails, ...]:
    """The runs of a cluster, by its identity, or of all, that have not ended and whose process may still run."""
    wanted = _select_runs().where(*_build_conditions(connection, cluster, None), RUNS.c.exit_code.is_(None))
    details = _build_details(connection, connection.execute(wanted).all(), now)
    return tuple(each for each in details if each.last_sign is None)


def find_last_signs(connection: Connection, numbers: Sequence[int], now: datetime) -> Mapping[int, datetime | None]:
    """The last sign of life of each of some open runs, by their numbers: None while the process may still run."""
    signs: dict[int, datetime | None] = {}
    for start in range(0, len(numbers), _AT_ONCE):
        wanted = _select_runs().where(RUNS.c.number.in_(numbers[start : start + _AT_ONCE]))
        for row in connection.execute(wanted):
            signs[row.number] = None if _is_alive(row, now) else _find_last_sign(row)
    return signs


def list_names_of_runs(connection: Connection, *, without: Collection[int]) -> frozenset[str]:
    """The names of the runs that have scanned other clusters than those with some numbers."""
    scanned = select(RUNS.c.name).join(SCANS, SCAN_OF_RUN).where(SCANS.c.cluster.not_in(without)).distinct()
    return frozenset(connection.execute(scanned).scalars())


def list_run_numbers(
    connection: Connection, stored: Sequence[StoredCluster], cluster: int | None, name: str
) -> list[int]:
    """The numbers of the runs of a cluster; with None, those that belong to no cluster and have a name. `stored` are all clusters."""
    scanned = select(RUNS.c.number, SCANS.c.cluster, RUNS.c.name).select_from(RUNS.outerjoin(SCANS, SCAN_OF_RUN))
    runs = connection.execute(scanned).all()
    owners = RunClusters(label_clusters(stored), ((row.cluster, row.name) for row in runs))
    return [
        row.number for row in runs if owners.find(row.cluster, row.name) == cluster and (cluster or row.name == name)
    ]


def rename_runs(connection: Connection, cluster: int, old: str, new: str, *, alone: bool) -> None:
    """Give the runs of a cluster with one name another one; `alone`, also those without a scan that have the name."""
    run, scan_of_run = RUNS.c, select(SCANS.c.number).where(SCAN_OF_RUN).correlate(RUNS)
    chosen: list[ColumnElement[bool]] = [scan_of_run.where(SCANS.c.cluster == cluster).exists()]
    if alone:
        chosen.append(~scan_of_run.exists())
    connection.execute(update(RUNS).where(run.name == old, or_(*chosen)).values(name=new))


def _is_of_cluster(connection: Connection, cluster: str) -> ColumnElement[bool]:
    """The runs that scanned a cluster, and those without a scan under a name that its runs have."""
    named = find_cluster(connection, cluster)
    scans_of = select(SCANS.c.id).where(SCANS.c.cluster == (named.id if named else 0))
    names_of = select(RUNS.c.name).where(RUNS.c.scan.in_(select(SCANS.c.number).where(SCANS.c.id.in_(scans_of))))
    without_scan = SCANS.c.id.is_(None) & (RUNS.c.name.in_(names_of) | (RUNS.c.name == cluster))
    if (
        named is None
        and connection.execute(select(RUNS.c.number).where(RUNS.c.name == cluster).limit(1)).first() is None
    ):
        known = ", ".join(list_clusters_of_runs(connection)) or "no cluster"
        raise UsageError(f"There is no run of cluster {cluster!r}: the database has runs of {known}.")
    return SCANS.c.id.in_(scans_of) | without_scan


def _select_runs() -> Select[Any]:
    columns = (column for column in RUNS.c if column.name not in {"scan", "scan_id"})
    scan = (SCANS.c.number.label("scan_number"), SCANS.c.id, SCANS.c.state, SCANS.c.scope)
    life = (SCANS.c.heartbeat, SCANS.c.silence, SCANS.c.finished_at.label("scan_finished"))
    return select(*columns, *scan, *life).select_from(RUNS.outerjoin(SCANS, SCAN_OF_RUN))


def _build_details(connection: Connection, rows: Iterable[Row[Any]], now: datetime) -> tuple[RunDetails, ...]:
    rows = list(rows)
    partial = [row.scan_number for row in rows if row.state == ScanState.INCOMPLETE.value]
    gaps = read_gaps_of_scans(connection, partial)
    return tuple(_build_detail(row, tuple(gap.where for gap in gaps.get(row.scan_number, ())), now) for row in rows)


def _build_detail(row: Row[Any], gaps: tuple[str, ...], now: datetime) -> RunDetails:
    ended = {ScanState.COMPLETE.value: True, ScanState.INCOMPLETE.value: False}
    return RunDetails(
        Run(
            number=row.number,
            name=row.name,
            started_at=row.started_at,
            finished_at=row.finished_at,
            exit_code=row.exit_code,
            reason=row.reason,
            scan=row.id or "",
            host=row.host,
            command_line=tuple(orjson.loads(row.command_line)) if row.command_line else (),
        ),
        last_sign=None if row.exit_code is not None or _is_alive(row, now) else _find_last_sign(row),
        complete=ended.get(row.state),
        gaps=gaps,
        scope=codec.from_text(Scope, row.scope) if row.scope else None,
    )


def _find_last_sign(row: Row[Any]) -> datetime:
    """The end of the scan of a run, the last heartbeat of one that did not end, or the start of the run."""
    started: datetime = row.started_at
    ended = None if row.state == ScanState.FAILED.value else row.scan_finished
    return max(started, row.heartbeat or started, ended or started)


def _is_alive(row: Row[Any], now: datetime) -> bool:
    """Return whether the process of an open run may still run. Of runs of older versions, the last sign of life decides."""
    beats = row.state in {ScanState.RUNNING.value, ScanState.FAILED.value}
    silence = timedelta(seconds=row.silence) if beats else _WITHOUT_BEATS
    if not row.process:
        return now - _find_last_sign(row) <= silence
    owner = ScanProcess(row.host, row.process, row.process_started)
    return owner.is_alive(heartbeat=_find_last_sign(row), now=now, silence=silence)


# The process that writes a scan, and whether it still runs.
#
# A killed process leaves no note. On its own host the process id decides, together with the start time of the process
# (ids are reused, in containers at once); on another host only the last heartbeat decides.


@dataclass(frozen=True, slots=True)
class ScanProcess:
    """The process that writes a scan. `started` is empty if the system does not report it."""

    host: str
    process: int
    started: str

    def is_alive(self, *, heartbeat: datetime, now: datetime, silence: timedelta) -> bool:
        """Return whether the process may still run.

        On this host the process id and the start time decide; on another host the process is alive until its last heartbeat
        is older than `silence`.
        """
        if self.host != socket.gethostname():
            return now - heartbeat <= silence
        return _is_running(self.process) and self.started in {"", _read_start_time(self.process)}


def get_current_process() -> ScanProcess:
    """The running process as an owner."""
    return ScanProcess(socket.gethostname(), os.getpid(), _read_start_time(os.getpid()))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read_start_time(process: int) -> str:
    """The start time of a process. Linux: field 22 of /proc/PID/stat, counted from the end of the name in brackets."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def label_clusters(stored: Sequence[StoredCluster]) -> Mapping[int, str]:
    """The names of clusters by their ids, or their identities where several have the same name."""
    names = [cluster.name for cluster in stored]
    return {cluster.id: cluster.identity if names.count(cluster.name) > 1 else cluster.name for cluster in stored}


class RunClusters:
    """The clusters of runs.

    A run without a scan belongs to the cluster with its name as label, else to the only cluster that runs of this name have scanned.
    """

    def __init__(self, labels: Mapping[int, str], runs: Iterable[tuple[int | None, str]]) -> None:
        """Take the labels of all clusters, and the cluster of the scan and the name of each run."""
        self._clusters_by_label = {label: cluster for cluster, label in labels.items()}
        self._clusters_by_name: defaultdict[str, set[int]] = defaultdict(set)
        for cluster, name in runs:
            if cluster is not None:
                self._clusters_by_name[name].add(cluster)

    def find(self, cluster: int | None, name: str) -> int | None:
        """The cluster of a run, by the cluster of its scan and its name; None if it belongs to none."""
        if cluster is not None:
            return cluster
        scanned = self._clusters_by_name.get(name, set())
        return self._clusters_by_label.get(name, next(iter(scanned)) if len(scanned) == 1 else None)
