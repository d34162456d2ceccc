"""Counts the scans of a cluster by state, and measures the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from sqlalchemy import Connection, func, select

from scanner.model.register import RECENT, DayCounts, Register
from scanner.model.scan import ScanState
from scanner.store.sizes import total_bytes
from scanner.store.tables import SCANS
from scanner.store.trends import days


def register_of(connection: Connection, cluster: int, until: date) -> Register:
    """The register of a cluster, by its number, with the days up to one. A scan that was pruned counts."""
    own = SCANS.c.cluster == cluster
    states = connection.execute(select(SCANS.c.state, func.count()).where(own).group_by(SCANS.c.state)).all()
    complete = select(func.max(SCANS.c.finished_at)).where(own, SCANS.c.state == ScanState.COMPLETE.value)
    return Register(
        scans=dict(sorted((state, number) for state, number in states)),
        last_complete=connection.execute(complete).scalar(),
        database_bytes=total_bytes(connection),
        days=tuple(_days(connection, cluster, until))[-RECENT:],
    )


def _days(connection: Connection, cluster: int, until: date) -> Iterator[DayCounts]:
    for each in days(connection, cluster, until - timedelta(days=4 * RECENT)):
        if each.day <= until:
            yield DayCounts(each.day, each.findings, each.new, each.resolved)
