"""Writes the findings that a scan left unchecked: as a compressed set for its own reports, and in parts that SQL reads for views.

The parts are those of the newest merged scan of a cluster alone, so only what differs from the scan before is written.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from scanner.store.engine import among, insert_rows
from scanner.store.interning import chunks
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import UNCHECKED, UNCHECKED_NOW


def write_unchecked(connection: Connection, cluster: int, scan: int, findings: RowIdSet) -> None:
    """Write the ids of the findings that the newest scan of a cluster left open without checking them."""
    if findings.count:
        connection.execute(insert(UNCHECKED).values(scan=scan, findings=findings.packed()))
    before, now = parts_of(connection, cluster), dict(findings.words())
    own = UNCHECKED_NOW.c
    differing = [part for part, bits in before.items() if now.get(part) != bits]
    for portion in chunks(differing):
        connection.execute(delete(UNCHECKED_NOW).where(own.cluster == cluster, among(connection, own.part, portion)))
    written = [(cluster, part, bits) for part, bits in now.items() if before.get(part) != bits]
    insert_rows(connection, UNCHECKED_NOW, ("cluster", "part", "bits"), written)


def parts_of(connection: Connection, cluster: int) -> dict[int, int]:
    """The stored parts of a cluster: 32 ids each, the lowest bit for the lowest id."""
    own = UNCHECKED_NOW.c
    stored = select(own.part, own.bits).where(own.cluster == cluster)
    return {row.part: row.bits for row in connection.execute(stored)}
