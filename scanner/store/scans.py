"""Reads scans, and finds scans whose process died."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, Row, Select, delete, select, update

from scanner.model.resource import UserInfo
from scanner.model.scan import ClusterIdentity, Scan, ScanState, Scope
from scanner.store import codec
from scanner.store.closing_sums import sum_report, sum_scan, summed_scans
from scanner.store.logical_rows import SCANS_ENDED
from scanner.store.owner import Owner
from scanner.store.tables import CLUSTERS, SCANS, STAGED_PAGES

USABLE = (ScanState.COMPLETE.value, ScanState.INCOMPLETE.value)
"""The states of scans that are part of history and can be the latest scan."""

LATEST_FIRST = (SCANS.c.finished_at.desc(), SCANS.c.revision.desc(), SCANS.c.number.desc())
"""The order of scans in which the first one answers a moment: dates decide (ADR 44). The newest scan has the highest revision instead."""

_PRESENT_NAME = select(CLUSTERS.c.name).where(CLUSTERS.c.id == SCANS.c.cluster).correlate(SCANS).scalar_subquery()
_COLUMNS = (
    SCANS.c.id,
    SCANS.c.cluster_name,
    _PRESENT_NAME.label("present_name"),
    SCANS.c.cluster_uid,
    SCANS.c.server_version,
    SCANS.c.source,
    SCANS.c.started_at,
    SCANS.c.finished_at,
    SCANS.c.state,
    SCANS.c.scope,
    SCANS.c.tool_version,
    SCANS.c.findings,
    SCANS.c.new,
    SCANS.c.resolved,
    SCANS.c.requester,
    SCANS.c.policy_set_digest,
    SCANS.c.description_digest,
    SCANS.c.notes,
    SCANS.c.preview,
)


def select_scans() -> Select[*tuple[object, ...]]:
    """The query of the rows for `scan_of`."""
    return select(*_COLUMNS)


def scan_of(row: Row[*tuple[object, ...]]) -> Scan:
    """The scan in a row of `select_scans`. It shows the present name of its cluster."""
    earlier = "" if row.cluster_name == row.present_name else row.cluster_name
    cluster = ClusterIdentity(row.present_name, row.cluster_uid, row.server_version, row.source, earlier_name=earlier)
    return Scan(
        id=row.id,
        cluster=cluster,
        started_at=row.started_at,
        finished_at=row.finished_at,
        state=ScanState(row.state),
        scope=codec.from_text(Scope, row.scope),
        tool_version=row.tool_version,
        findings=row.findings,
        new=row.new,
        resolved=row.resolved,
        requester=codec.from_text(UserInfo, row.requester) if row.requester else UserInfo(),
        policy_set_digest=row.policy_set_digest,
        description_digest=row.description_digest,
        notes=tuple(orjson.loads(row.notes)) if row.notes else (),
        preview=row.preview,
    )


def pruned(connection: Connection, ids: Sequence[str]) -> frozenset[str]:
    """Those of some scans, by id, that were pruned: only their tombstones are left."""
    wanted = select(SCANS.c.id).where(SCANS.c.id.in_(ids), SCANS.c.pruned_at.is_not(None))
    return frozenset(connection.execute(wanted).scalars())


class Abandoned(NamedTuple):
    """A running scan whose process is gone. It ended at its last heartbeat, or as it began if its clock was ahead of the database's."""

    number: int
    id: str
    ended: datetime


def abandoned(connection: Connection, now: datetime) -> tuple[Abandoned, ...]:
    """The scans that are recorded as running, but whose process is gone at the moment `now`."""
    columns = ("number", "id", "started_at", "heartbeat", "silence", "host", "process", "process_started")
    running = select(*(SCANS.c[name] for name in columns)).where(SCANS.c.state == ScanState.RUNNING.value)
    return tuple(
        Abandoned(number, scan_id, max(started, heartbeat))
        for number, scan_id, started, heartbeat, silence, *owner in connection.execute(running)
        if not Owner(*owner).alive(heartbeat=heartbeat, now=now, silence=timedelta(seconds=silence))
    )


def with_current_state(scan: Scan, dead: Sequence[Abandoned]) -> Scan:
    """The scan for readers: an abandoned scan has failed, even if the database does not record it yet."""
    ended = next((dead_scan.ended for dead_scan in dead if dead_scan.id == scan.id), None)
    return replace(scan, state=ScanState.FAILED, finished_at=ended) if ended else scan


def mark_failed(connection: Connection, dead: Sequence[Abandoned]) -> None:
    """Mark scans as failed at their last heartbeat, and delete their staged pages."""
    numbers = [scan.number for scan in dead]
    running = SCANS.c.state == ScanState.RUNNING.value
    summed = summed_scans(connection)
    for scan in dead:
        failed = update(SCANS).where(running, SCANS.c.number == scan.number)
        marked = connection.execute(failed.values(state=ScanState.FAILED.value, finished_at=scan.ended)).rowcount
        if marked and scan.number in summed:
            sum_scan(connection, SCANS_ENDED, scan.number)
            sum_report(connection, scan.number)
    connection.execute(delete(STAGED_PAGES).where(STAGED_PAGES.c.scan.in_(numbers)))
