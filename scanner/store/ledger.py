"""What a scan listed, missed and counted: the lines that are written anew for every scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

import orjson
from sqlalchemy import Connection, select

from scanner.model.outcome import Gap
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.scan import Coverage, Health, OutOfScope, ScanEnd
from scanner.store.engine import insert_rows
from scanner.store.packing import StagedPage, clean
from scanner.store.shared_rows import Lines, insert_lines, lines_of, share_lines
from scanner.store.tables import (
    COVERAGE,
    GAPS,
    HEALTH,
    OUTSIDE,
    POLICIES,
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

    def write(self, connection: Connection, scan: int, end: ScanEnd, earlier: Lines) -> dict[str, int | str]:
        """Write everything down but what an earlier scan has; `gaps` must be complete by now. What the scan's own row says."""
        insert_lines(connection, COVERAGE, scan, map(_line, end.coverage))
        insert_lines(connection, GAPS, scan, map(_line, sorted(self.gaps)))
        tallies = [(scan, *key, count, key[0] in self._requester) for key, count in sorted(self._counts.items())]
        insert_rows(connection, TALLIES, _TALLY, tallies)
        return {
            "matched": orjson.dumps(self._by_policy(connection, scan)).decode(),
            "health_of": share_lines(connection, HEALTH, scan, map(_line, end.health), earlier.health),
            "outside_of": share_lines(connection, OUTSIDE, scan, map(_line, end.outside), earlier.outside),
        }

    def _by_policy(self, connection: Connection, scan: int) -> list[int]:
        """How many objects each policy of the scan matched, in the order of these."""
        matched: Counter[PolicyKey] = Counter()
        for (language, policy, _), count in self._matched.items():
            matched[language, policy] += count
        used = SCAN_POLICIES.c
        named = select(POLICIES.c.language, POLICIES.c.name).select_from(SCAN_POLICIES.join(POLICIES))
        mine = named.where(used.scan == lines_of(connection, scan).policies).order_by(used.position)
        return [matched[language, policy] for language, policy in connection.execute(mine).all()]


def _line(noun: Coverage | Health | Gap | OutOfScope) -> dict[str, str | int]:
    """The columns of these tables are the fields of their nouns."""
    values = ((item.name, getattr(noun, item.name)) for item in fields(noun))
    return {name: clean(str(value)) if isinstance(value, str) else value for name, value in values}
