"""What a scan listed, missed and counted: the lines that are written anew for every scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields

from sqlalchemy import Connection, Table, select, update

from scanner.model.outcome import Gap
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.scan import Coverage, Health, Outside, ScanEnd
from scanner.store.engine import insert_rows
from scanner.store.packing import StagedPage, clean
from scanner.store.tables import (
    BINDINGS,
    COVERAGE,
    GAPS,
    HEALTH,
    OUTSIDE,
    POLICIES,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    TALLIES,
)

_TALLY = ("scan", "check", "kind", "namespace", "outcome", "count", "requester")


class Ledger:
    """The sums over the pages of one scan."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.gaps: set[Gap] = set()
        self._counts: Counter[tuple[int, int, str, str]] = Counter()
        self._requester: set[int] = set()
        self._matched: Counter[BindingKey] = Counter()

    def add(self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int]) -> None:
        """Add one page, given the numbers of its checks and kinds."""
        for check, kind, namespace, outcome, count, requester in page.tallies:
            self._counts[checks[check], kinds[kind], namespace, outcome] += count
            if requester:
                self._requester.add(checks[check])
        self._matched.update(page.matched)
        self.gaps.update(page.gaps)

    def write(self, connection: Connection, scan: int, end: ScanEnd) -> None:
        """Write everything down; `gaps` must be complete by now."""
        insert_lines(connection, COVERAGE, scan, map(_line, end.coverage))
        insert_lines(connection, HEALTH, scan, map(_line, end.health))
        insert_lines(connection, OUTSIDE, scan, map(_line, end.outside))
        insert_lines(connection, GAPS, scan, map(_line, sorted(self.gaps)))
        tallies = [(scan, *key, count, key[0] in self._requester) for key, count in sorted(self._counts.items())]
        insert_rows(connection, TALLIES, _TALLY, tallies)
        self._write_policies(connection, scan, frozenset(end.evaluated_policies))
        self._write_bindings(connection, scan)

    def _write_policies(self, connection: Connection, scan: int, evaluated: frozenset[PolicyKey]) -> None:
        used = SCAN_POLICIES.c
        named = select(used.position, POLICIES.c.language, POLICIES.c.name).join(POLICIES).where(used.scan == scan)
        for position, *policy in connection.execute(named).all():
            matched = sum(count for (*of, _), count in self._matched.items() if of == policy)
            values = {"matched": matched, "evaluated": tuple(policy) in evaluated}
            connection.execute(update(SCAN_POLICIES).where(used.scan == scan, used.position == position).values(values))

    def _write_bindings(self, connection: Connection, scan: int) -> None:
        used = SCAN_BINDINGS.c
        columns = (BINDINGS.c.language, BINDINGS.c.policy_name, BINDINGS.c.name)
        named = select(used.position, *columns).join(BINDINGS).where(used.scan == scan)
        for position, *binding in connection.execute(named).all():
            values = {"matched": self._matched[tuple(binding)]}
            connection.execute(update(SCAN_BINDINGS).where(used.scan == scan, used.position == position).values(values))


def insert_lines(connection: Connection, table: Table, scan: int, lines: Iterable[dict[str, str | int]]) -> None:
    """Write lines of a scan, numbered in their order."""
    rows = [{"scan": scan, "position": position, **line} for position, line in enumerate(lines)]
    if rows:
        connection.execute(table.insert(), rows)


def _line(noun: Coverage | Health | Gap | Outside) -> dict[str, str | int]:
    """The columns of these tables are the fields of their nouns."""
    values = ((item.name, getattr(noun, item.name)) for item in fields(noun))
    return {name: clean(str(value)) if isinstance(value, str) else value for name, value in values}
