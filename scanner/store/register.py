"""Counts the scans of a cluster by state, lists the newest of them, and measures the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from sqlalchemy import Connection, func, select

from scanner.model.register import RECENT, DayCounts, Register, ScanLine
from scanner.model.scan import ScanState
from scanner.store.sizes import total_bytes
from scanner.store.tables import SCANS
from scanner.store.trends import days

NEWEST: Final = 60
"""The scans that a register lists."""
_FIELDS: Final = ("id", "state", "started_at", "finished_at", "tool_version", "findings", "new", "resolved")


def register_of(connection: Connection, cluster: int, scan: int, until: date) -> Register:
    """The register of a cluster, by its number, with the scans up to one, by its number, and the days up to one. A scan that was pruned counts."""
    own = SCANS.c.cluster == cluster
    states = connection.execute(select(SCANS.c.state, func.count()).where(own).group_by(SCANS.c.state)).all()
    complete = select(SCANS.c.finished_at).where(own, SCANS.c.state == ScanState.COMPLETE.value)
    newest = complete.order_by(SCANS.c.revision.desc()).limit(1)
    return Register(
        scans=dict(sorted((state, number) for state, number in states)),
        last_complete=connection.execute(newest).scalar(),
        database_bytes=total_bytes(connection),
        days=tuple(_days(connection, cluster, until))[-RECENT:],
        lines=_lines(connection, cluster, scan),
    )


def _days(connection: Connection, cluster: int, until: date) -> Iterator[DayCounts]:
    for each in days(connection, cluster, until - timedelta(days=4 * RECENT), until):
        yield DayCounts(each.day, each.findings, each.new, each.resolved)


def _lines(connection: Connection, cluster: int, scan: int) -> tuple[ScanLine, ...]:
    """The newest scans up to one of them, the newest first."""
    own = SCANS.c
    scope = connection.execute(select(own.scope).where(own.number == scan)).scalar_one()
    columns = (
        *(own[name] for name in _FIELDS),
        (own.scope == scope).label("alike"),
        own.policy_set_digest,
        own.preview,
    )
    wanted = select(*columns).where(own.cluster == cluster, own.number <= scan)
    rows = connection.execute(wanted.order_by(own.number.desc()).limit(NEWEST)).all()
    lines: list[ScanLine] = []
    digest = ""
    for row in reversed(rows):
        rules = row.policy_set_digest if row.alike and not row.preview else ""
        facts = {name: getattr(row, name) for name in _FIELDS}
        lines.append(ScanLine(**facts, alike=bool(row.alike), rules_changed=bool(digest and rules) and digest != rules))
        digest = rules or digest
    return tuple(reversed(lines))
