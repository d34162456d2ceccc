"""Derives which scan saw which finding from the rows, so that sightings need not be stored.

A scan saw a finding if the finding's row covers the scan's revision and the scan did not leave it unchecked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, and_, select

from scanner.store.rows.row_ids import RowIdSet, unpack_row_ids
from scanner.store.rows.tables import FINDINGS, OPEN, SCANS, UNCHECKED


@dataclass(frozen=True, slots=True)
class MergedScan:
    """A scan in its cluster's history, and the findings that it left unchecked."""

    revision: int
    unchecked: RowIdSet

    def saw(self, number: int, since: int) -> bool:
        """Return whether the scan saw the finding of an open row, given the row's id and first revision."""
        return since <= self.revision and number not in self.unchecked


def read_merged_scans(connection: Connection, cluster: int, *, after: int, before: int = OPEN) -> Iterator[MergedScan]:
    """The merged scans of a cluster whose revision lies between `after` and `before`, both excluded, newest first."""
    wanted = (
        select(SCANS.c.revision, UNCHECKED.c.findings)
        .outerjoin(UNCHECKED, UNCHECKED.c.scan == SCANS.c.number)
        .where(and_(SCANS.c.cluster == cluster, SCANS.c.revision > after, SCANS.c.revision < before))
        .order_by(SCANS.c.revision.desc())
    )
    with connection.execute(wanted) as rows:
        for revision, data in rows:
            yield MergedScan(revision, unpack_row_ids(data))


def read_unchecked(connection: Connection, scan: int) -> RowIdSet:
    """The ids of the findings that a scan, by its number, left open without checking them."""
    return unpack_row_ids(connection.execute(select(UNCHECKED.c.findings).where(UNCHECKED.c.scan == scan)).scalar())


def group_by_last_seen(
    connection: Connection, cluster: int, numbers: Sequence[int], *, before: int
) -> dict[int, list[int]]:
    """The row ids of open findings, by the last revision before `before` whose scan saw them."""
    by_revision: dict[int, list[int]] = {}
    unassigned = list(numbers)
    for scan in read_merged_scans(connection, cluster, after=0, before=before):
        if not unassigned:
            break
        by_revision[scan.revision] = [number for number in unassigned if number not in scan.unchecked]
        unassigned = [number for number in unassigned if number in scan.unchecked]
    return {revision: seen for revision, seen in by_revision.items() if seen}


def select_open_findings(cluster: int) -> Select[int]:
    """The ids of a cluster's open findings."""
    return select(FINDINGS.c.id).where(FINDINGS.c.cluster == cluster, FINDINGS.c.until == OPEN)
