"""The clusters and checks that have findings with a verdict, so that a search names them with a message.

Findings have no index by verdict, which would need ten bytes for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection, Select, Table, delete, insert, select, text

from scanner.store.columns import FindingColumns
from scanner.store.tables import FINDINGS, VERDICT_USES

_MOST_KNOWN: Final = 20_000
_INSERT: Final = text(
    'INSERT INTO verdict_uses (verdict, cluster, "check") VALUES (:verdict, :cluster, :check) ON CONFLICT DO NOTHING'
)


class VerdictUses:
    """Writes the uses of one cluster while a scan is merged into its history."""

    def __init__(self, connection: Connection, cluster: int) -> None:
        """The connection is in a transaction that writes history."""
        self._connection = connection
        self._cluster = cluster
        self._known: set[tuple[int, int]] = set()

    def add(self, findings: Iterable[FindingColumns]) -> None:
        """Add the uses of inserted rows."""
        new = {(each.verdict, each.check) for each in findings} - self._known
        if not new:
            return
        rows = [{"verdict": verdict, "cluster": self._cluster, "check": check} for verdict, check in sorted(new)]
        self._connection.execute(_INSERT, rows)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known |= new


def forget_unused(connection: Connection, cluster: int) -> int:
    """Delete the uses without a finding of a cluster; return their number. The connection holds the lock of the cluster's history."""
    own = VERDICT_USES.c
    stale = connection.execute(uses_of(VERDICT_USES, cluster).except_(uses_of(FINDINGS, cluster))).all()
    for row in stale:
        gone = own.cluster == cluster, own.verdict == row.verdict, own.check == row.check
        connection.execute(delete(VERDICT_USES).where(*gone))
    return len(stale)


def rebuild_uses(connection: Connection) -> None:
    """Make the uses of all clusters anew from the findings."""
    connection.execute(delete(VERDICT_USES))
    own = VERDICT_USES.c
    used = select(FINDINGS.c.verdict, FINDINGS.c.cluster, FINDINGS.c.check).distinct()
    connection.execute(insert(VERDICT_USES).from_select([own.verdict, own.cluster, own.check], used))


def uses_of(table: Table, cluster: int) -> Select[tuple[int, int]]:
    """The verdicts and checks of a cluster in `findings` or in `verdict_uses`."""
    return select(table.c.verdict, table.c.check).where(table.c.cluster == cluster).distinct()
