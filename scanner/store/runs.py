"""Runs of `assay scan`: a row before the cluster is contacted, closed with the exit code and the reason."""

from __future__ import annotations

import socket
from datetime import datetime

from sqlalchemy import Connection, func, insert, select, update

from scanner.model.run import Run
from scanner.model.texts import clean
from scanner.store.ids import reserve
from scanner.store.tables import RUNS, SCANS


def begin_run(connection: Connection, name: str, now: datetime) -> int:
    """Record that a run begins; return its number."""
    [number] = reserve(connection, RUNS, 1)
    values = {
        "number": number,
        "name": clean(name),
        "started_at": now,
        "reason": "",
        "host": clean(socket.gethostname()),
    }
    connection.execute(insert(RUNS).values(values))
    return number


def name_run(connection: Connection, number: int, name: str) -> None:
    """Record the name of a run."""
    connection.execute(update(RUNS).where(RUNS.c.number == number).values(name=clean(name)))


def end_run(connection: Connection, number: int, *, exit_code: int, reason: str, scan_id: str, now: datetime) -> None:
    """Record the end of a run. A scan that never began leaves the run without a scan."""
    scan = select(SCANS.c.number).where(SCANS.c.id == scan_id).scalar_subquery()
    values = {"finished_at": now, "exit_code": exit_code, "reason": clean(reason), "scan": scan}
    connection.execute(update(RUNS).where(RUNS.c.number == number).values(values))


def runs(connection: Connection, limit: int) -> tuple[Run, ...]:
    """The newest runs, the newest first."""
    columns = [RUNS.c[name] for name in ("number", "name", "started_at", "finished_at", "exit_code", "reason", "host")]
    newest = select(*columns, func.coalesce(SCANS.c.id, "").label("scan")).outerjoin(
        SCANS, SCANS.c.number == RUNS.c.scan
    )
    rows = connection.execute(newest.order_by(RUNS.c.number.desc()).limit(limit)).mappings()
    return tuple(Run(**row) for row in rows)
