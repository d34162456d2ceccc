"""Prunes the bodies of scans: the rows of a scan go, and its row in `scans` stays as a tombstone.

Later scans ask three questions about the scan that last saw an open finding: did it see the finding, with which policies and
rules, and for which user. The tombstone of such a scan keeps the answers: its policies, bindings and rules, the documents that
it could not read, and the tallies that depend on the requester. A later prune deletes them when no open finding needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, select, update

from scanner.model.outcome import GapKind
from scanner.store.closing_sums import Rewriting, forget_sums, hand_over
from scanner.store.comparable import mode_of
from scanner.store.engine import among
from scanner.store.interning import chunks
from scanner.store.logical_rows import OF_TABLES, PARTS, REPORTS, SHARED
from scanner.store.retention_plan import ScanRow, next_owners
from scanner.store.row_ids import RowIdSet, intersection, unpacked
from scanner.store.shared_rows import Owners
from scanner.store.sightings import open_findings
from scanner.store.tables import (
    COVERAGE,
    GAPS,
    SCAN_PLACES,
    SCANS,
    TALLIES,
    UNCHECKED,
)

OF_EVALUATION: Final = frozenset({"policies", "bindings", "rules"})
"""The shared rows that the last scan with an open finding keeps."""


def scans_of(connection: Connection, cluster: int, dead: Collection[int] = ()) -> list[ScanRow]:
    """The scans of a cluster. Those with the numbers `dead` have failed, even if the database does not record it yet."""
    own = SCANS.c
    question = own.source, own.scope, own.requester
    owners = (own[f"{name}_of"] for name in Owners._fields)
    columns = own.number, own.revision, own.state, own.finished_at, own.base, own.pruned_at, own.preview, own.method
    wanted = select(*columns, *question, *owners).where(own.cluster == cluster).order_by(own.number)
    modes: dict[str, tuple[object, ...]] = {}
    rows: list[ScanRow] = []
    for number, revision, state, finished_at, base, pruned_at, preview, method, *rest in connection.execute(wanted):
        if method not in modes:
            modes[method] = mode_of(method)
        rows.append(
            ScanRow(
                number,
                revision,
                "failed" if number in dead else state,
                finished_at,
                (*rest[: len(question)], modes[method]),
                base,
                Owners(*rest[len(question) :]),
                pruned_at is not None,
                preview,
            )
        )
    return rows


def last_seeing(connection: Connection, cluster: int, scans: Iterable[ScanRow]) -> frozenset[int]:
    """The revisions of the scans that were the last to see an open finding."""
    unassigned = RowIdSet(connection.execute(open_findings(cluster)).scalars())
    unchecked = select(UNCHECKED.c.scan, UNCHECKED.c.findings).join(SCANS).where(SCANS.c.cluster == cluster)
    blind = {scan: bytes(findings) for scan, findings in connection.execute(unchecked)}
    revisions: set[int] = set()
    merged = [(scan.revision, scan.number) for scan in scans if scan.revision is not None]
    for revision, number in sorted(merged, reverse=True):
        if not unassigned.count:
            break
        unseen = intersection(unassigned, unpacked(blind.get(number)))
        if unseen.count < unassigned.count:
            revisions.add(revision)
        unassigned = unseen
    return frozenset(revisions)


class Bodies:
    """Prunes scans of one cluster, over a connection that holds the locks of `engine.lock_bodies`."""

    def __init__(self, connection: Connection, cluster: int, scans: Sequence[ScanRow]) -> None:
        """Take all scans of the cluster."""
        self._connection = connection
        self._cluster = cluster
        self._scans = scans
        seeing = last_seeing(connection, cluster, scans)
        self._asked = frozenset(scan.number for scan in scans if scan.revision in seeing)

    def prune(self, numbers: Sequence[int], now: datetime) -> int:
        """Delete the bodies of scans; return the number of deleted rows.

        Scans that were pruned before may be given again: what no open finding needs any more is deleted.
        """
        deleted = sum(self._shared(rows, table, numbers) for rows, table in SHARED.items())
        for portion in chunks(numbers):
            deleted += self._own(portion)
            forget_sums(self._connection, REPORTS, portion)
            fresh = among(self._connection, SCANS.c.number, portion) & SCANS.c.pruned_at.is_(None)
            emptied = {"pruned_at": now, "matched": "", "opinion": ""}
            self._connection.execute(update(SCANS).where(fresh).values(**emptied))
        self._trim_unchecked(numbers)
        return deleted

    def _own(self, numbers: Sequence[int]) -> int:
        """Delete the rows that scans have alone."""
        deleted = self._delete(COVERAGE, numbers) + self._delete(SCAN_PLACES, numbers)
        asked = [number for number in numbers if number in self._asked]
        others = [number for number in numbers if number not in self._asked]
        deleted += self._delete(GAPS, others) + self._delete(TALLIES, others)
        deleted += self._delete_some(GAPS, asked, GAPS.c.kind != GapKind.DOCUMENT.value)
        return deleted + self._delete_some(TALLIES, asked, ~TALLIES.c.requester)

    def _shared(self, rows: str, table: Table, numbers: Sequence[int]) -> int:
        """Delete the rows of a table, or give them to the oldest scan that stays and shares them."""
        keeping = self._asked if rows in OF_EVALUATION else frozenset[int]()
        going = frozenset(numbers) - keeping
        gone = going | (frozenset(scan.number for scan in self._scans if scan.pruned) - keeping)
        column = SCANS.c[f"{rows}_of"]
        for owner, successor in next_owners(self._scans, rows, going, gone).items():
            self._connection.execute(update(table).where(table.c.scan == owner).values(scan=successor))
            hand_over(self._connection, PARTS[table.name], owner, successor)
            sharing = (SCANS.c.cluster == self._cluster) & (column == owner)
            self._connection.execute(update(SCANS).where(sharing).values({column: successor}))
            self._connection.execute(update(SCANS).where(SCANS.c.number == successor).values({column: 0}))
        deleted = 0
        for portion in chunks(sorted(going)):
            deleted += self._delete(table, portion)
            of_portion = among(self._connection, SCANS.c.number, portion)
            self._connection.execute(update(SCANS).where(of_portion, column != 0).values({column: 0}))
        return deleted

    def _delete(self, table: Table, numbers: Sequence[int]) -> int:
        """Delete the rows of scans, and their sums."""
        if not numbers:
            return 0
        for part in OF_TABLES[table.name]:
            forget_sums(self._connection, part, numbers)
        return self._connection.execute(delete(table).where(among(self._connection, table.c.scan, numbers))).rowcount

    def _delete_some(self, table: Table, numbers: Sequence[int], condition: ColumnElement[bool]) -> int:
        """Delete the rows of scans that fit a condition."""
        if not numbers:
            return 0
        chosen = among(self._connection, table.c.scan, numbers)
        with Rewriting(self._connection).of(OF_TABLES[table.name], chosen):
            return self._connection.execute(delete(table).where(chosen, condition)).rowcount

    def _trim_unchecked(self, numbers: Sequence[int]) -> None:
        """Of the findings that a pruned scan left unchecked, keep those that are still open: others have a time of their own."""
        still_open: RowIdSet | None = None
        own = UNCHECKED.c
        for portion in chunks(numbers):
            wanted = select(own.scan, own.findings).where(among(self._connection, own.scan, portion))
            for scan, data in self._connection.execute(wanted).all():
                if still_open is None:
                    still_open = RowIdSet(self._connection.execute(open_findings(self._cluster)).scalars())
                before = unpacked(bytes(data))
                left = intersection(still_open, before)
                if left.count == before.count:
                    continue
                self._connection.execute(delete(UNCHECKED).where(own.scan == scan))
                if left.count:
                    self._connection.execute(insert(UNCHECKED).values(scan=scan, findings=left.packed()))


def rows_of(connection: Connection, numbers: Sequence[int]) -> dict[str, int]:
    """The number of rows that scans have in each table, without those that are shared with a scan that stays."""
    counts: dict[str, int] = {}
    for table in (COVERAGE, GAPS, TALLIES):
        for portion in chunks(numbers):
            counted = select(func.count()).select_from(table).where(among(connection, table.c.scan, portion))
            counts[table.name] = counts.get(table.name, 0) + connection.execute(counted).scalar_one()
    return counts
