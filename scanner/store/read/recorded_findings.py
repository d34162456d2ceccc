"""Reads the findings that a scan recorded, without their history: what the digests of a scan cover.

There can be a million, so the query has few columns, and checks, kinds and verdicts, which findings share, are kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, select

from scanner.model.outcome import Finding
from scanner.store.database.engine import is_among
from scanner.store.read.findings import is_open_in, read_texts
from scanner.store.rows.columns import (
    CheckColumns,
    KindColumns,
    ObjectColumns,
    VerdictColumns,
    columns_of,
    finding_of,
)
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, EVIDENCE, FINDINGS, KINDS, OBJECTS, VERDICTS

_MOST_KEPT: Final = 20_000


class _FindingRow(NamedTuple):
    """The columns of the query."""

    id: int
    fingerprint: bytes
    check: int
    kind: int
    verdict: int
    evidence: int | None
    namespace: str
    name: str
    uid: str


def read_by_fingerprint(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Iterator[Finding]:
    """The findings of the scan of a revision in the order of their fingerprints, without excerpts and resource versions.

    `unchecked` are the ids of the rows that this scan did not check: they are left out.
    """
    columns = (FINDINGS.c[name] for name in _FindingRow._fields[:6])
    ordered = (
        select(*columns, *columns_of(OBJECTS, ObjectColumns))
        .join_from(FINDINGS, OBJECTS, OBJECTS.c.id == FINDINGS.c.object)
        .where(is_open_in(cluster, revision))
        .order_by(FINDINGS.c.fingerprint)
        .execution_options(yield_per=CHUNK)
    )
    shared = _SharedTexts(connection)
    with connection.execute(ordered) as result:
        for portion in result.partitions():
            rows = [row for row in map(_FindingRow._make, portion) if row.id not in unchecked]
            yield from shared.build_findings(rows)


class _SharedTexts:
    """The checks, kinds and verdicts of findings."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._checks: dict[int, CheckColumns] = {}
        self._kinds: dict[int, KindColumns] = {}
        self._verdicts: dict[int, VerdictColumns] = {}

    def build_findings(self, rows: Sequence[_FindingRow]) -> Iterator[Finding]:
        """The findings of some rows, in their order."""
        self._read(self._checks, CHECKS, CheckColumns, {row.check for row in rows})
        self._read(self._kinds, KINDS, KindColumns, {row.kind for row in rows})
        self._read(self._verdicts, VERDICTS, VerdictColumns, {row.verdict for row in rows})
        evidence = read_texts(self._connection, EVIDENCE.c.reasons, {row.evidence for row in rows})
        for row in rows:
            yield finding_of(
                bytes(row.fingerprint).hex(),
                "",
                self._checks[row.check],
                self._kinds[row.kind],
                ObjectColumns(row.namespace, row.name, row.uid),
                self._verdicts[row.verdict],
                evidence[row.evidence],
                "",
            )

    def _read(self, known: dict[int, Any], table: Table, columns: type[Any], numbers: set[int]) -> None:
        """Read the rows of a table that are not known."""
        if len(known) > _MOST_KEPT:
            known.clear()
        for portion in chunks(sorted(numbers - known.keys())):
            wanted = select(table.c.id, *columns_of(table, columns)).where(
                is_among(self._connection, table.c.id, portion)
            )
            known.update((number, columns._make(values)) for number, *values in self._connection.execute(wanted))
