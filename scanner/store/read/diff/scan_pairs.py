"""Names the scans that are compared: the newest comparable ones, an earlier one, or those that a user names."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from scanner.errors import UsageError
from scanner.store.catalog.scans import find_abandoned_scans, find_newest_comparable, find_newest_pair
from scanner.store.read.stored_scan import ScanRow, read_scan_row
from scanner.store.rows.tables import SCANS


def find_newest_scans_to_compare(connection: Connection, cluster: int, name: str) -> tuple[str, str]:
    """The ids of the two newest comparable scans of a cluster, complete or not. Raises UsageError without two."""
    pair = find_newest_pair(connection, cluster)
    if pair is None:
        raise UsageError(
            f"No two scans of {name} are comparable: these have the same scope, operation, requester and options, and none is a "
            "preview. "
            "Name two scans to compare them anyway. `assay scans` lists all scans."
        )
    earlier, later = (_find_id(connection, cluster, revision) for revision in pair)
    return earlier, later


def find_earlier_scan_to_compare(connection: Connection, scan_id: str, now: datetime) -> str:
    """The id of the newest earlier scan that is comparable with a scan and has a report. Raises UsageError without one."""
    scan = _read_merged_scan(connection, scan_id, now)
    earlier = find_newest_comparable(connection, scan.number, scan.revision or 0, with_report=True)
    if earlier is None:
        raise UsageError(
            f"No scan before {scan_id} is comparable with it: such a scan has the same scope, operation, requester and options, "
            "and is no preview. "
            "Name a second scan to compare these two anyway. `assay scans` lists all scans."
        )
    return _find_id(connection, scan.cluster, earlier)


def find_scan_before(connection: Connection, scan_id: str, days: int, now: datetime) -> str | None:
    """The id of the newest scan that is comparable with a scan, has a report, and ended so many days before it, or earlier.

    None if there is no such scan; with 0 days, of all scans before it.
    """
    scan = _read_merged_scan(connection, scan_id, now)
    ended = connection.execute(select(SCANS.c.finished_at).where(SCANS.c.number == scan.number)).scalar_one()
    latest = ended - timedelta(days=days) if days else None
    earlier = find_newest_comparable(connection, scan.number, scan.revision or 0, with_report=True, ended_by=latest)
    return None if earlier is None else _find_id(connection, scan.cluster, earlier)


def read_scan_pair(connection: Connection, before_id: str, now_id: str, now: datetime) -> tuple[ScanRow, ScanRow]:
    """The scans with two full ids, the earlier one first; `now` decides which running scans are dead.

    Raises UsageError for scans of two clusters, for scans without findings or without a report, and for the wrong order.
    """
    before, later = (_read_merged_scan(connection, scan_id, now) for scan_id in (before_id, now_id))
    _reject_pair(before, later, before_id, now_id)
    return before, later


def _read_merged_scan(connection: Connection, scan_id: str, now: datetime) -> ScanRow:
    """A scan in history. Raises UsageError as a report does, and for a failed scan."""
    scan = read_scan_row(connection, scan_id, find_abandoned_scans(connection, now))
    if scan.revision is None:
        raise UsageError(f"Scan {scan_id} failed and has no findings to compare. `assay scans` lists all scans.")
    return scan


def _reject_pair(before: ScanRow, now: ScanRow, before_id: str, now_id: str) -> None:
    if before.cluster != now.cluster:
        raise UsageError(
            f"Scans {before_id} and {now_id} are of different clusters: only scans of one cluster are compared"
        )
    if before_id == now_id:
        raise UsageError(f"Scan {now_id} is named twice: name two scans, such as last~1 and last")
    if (before.revision or 0) > (now.revision or 0):
        raise UsageError(
            f"Scan {before_id} is newer than {now_id}: name the earlier one first: assay diff {now_id} {before_id}"
        )


def _find_id(connection: Connection, cluster: int, revision: int) -> str:
    at = SCANS.c.cluster == cluster, SCANS.c.revision == revision
    return str(connection.execute(select(SCANS.c.id).where(*at)).scalar_one())
