"""The scans of a cluster a page at a time, and the newest scan of every cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from scanner.model.scan import Scan
from scanner.store.scans import USABLE, abandoned, scan_of, select_scans, with_current_state
from scanner.store.tables import SCANS


class ListedScan(NamedTuple):
    """A scan in any state. Of a pruned one, only the totals are left."""

    number: int
    scan: Scan
    pruned: bool


class ScanPage(NamedTuple):
    """Some scans of a cluster, the newest first, and the number of all."""

    scans: tuple[ListedScan, ...]
    total: int


def scan_page(connection: Connection, cluster: int, now: datetime, *, before: int | None, limit: int) -> ScanPage:
    """The newest scans of a cluster whose numbers are lower than `before`."""
    own = SCANS.c
    wanted = select_scans().add_columns(own.number, own.pruned_at).where(own.cluster == cluster)
    if before is not None:
        wanted = wanted.where(own.number < before)
    rows = connection.execute(wanted.order_by(own.number.desc()).limit(limit)).all()
    dead = abandoned(connection, now)
    total = connection.execute(select(func.count()).where(own.cluster == cluster)).scalar_one()
    scans = (ListedScan(row.number, with_current_state(scan_of(row), dead), row.pruned_at is not None) for row in rows)
    return ScanPage(tuple(scans), total)


def newest_of_clusters(connection: Connection) -> Mapping[int, Scan]:
    """The newest scan in history of every cluster, by the id of the cluster."""
    own = SCANS.c
    usable = own.state.in_(USABLE)
    newest = (
        select(own.cluster, func.max(own.revision).label("revision")).where(usable).group_by(own.cluster).subquery()
    )
    of_cluster = (newest.c.cluster == own.cluster) & (newest.c.revision == own.revision)
    wanted = select_scans().add_columns(own.cluster).join(newest, of_cluster)
    return {row.cluster: scan_of(row) for row in connection.execute(wanted)}
