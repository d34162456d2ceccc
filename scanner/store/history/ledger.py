"""What every scan records besides history: coverage, gaps, tallies, and the findings that it left unchecked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields

import orjson
from sqlalchemy import Connection, delete, insert, select, update

from scanner.model.outcome import Gap
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.scans.health import Health
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import Coverage, ScanEnd, UncoveredKind
from scanner.model.texts import clean
from scanner.store.catalog import scans
from scanner.store.database.engine import insert_rows, is_among
from scanner.store.history.staged_pages import StagedPage
from scanner.store.rows.closing_sums import sum_listed, sum_rows
from scanner.store.rows.gap_lists import GapRow, write_gaps
from scanner.store.rows.interning import chunks
from scanner.store.rows.logical_rows import GAPS, TALLIES
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.shared_rows import Row, insert_rows_of_scan, read_owners, share_rows
from scanner.store.rows.tables import (
    COVERAGE,
    HEALTH,
    OUTSIDE,
    POLICIES,
    SCAN_POLICIES,
    SCANS,
    UNCHECKED,
    UNCHECKED_NOW,
    UNCOVERED,
)
from scanner.store.rows.tally_lists import TallyRow, write_tallies


class Ledger:
    """The sums over the pages of one scan."""

    def __init__(self) -> None:
        """Start with nothing. `sets` has the id of the list of sets of each kind, by API version and kind."""
        self.gaps: set[Gap] = set()
        self.sets: dict[tuple[str, str], int] = {}
        self._counts: Counter[tuple[int, int, str, str]] = Counter()
        self._requester: set[int] = set()
        self._matched: Counter[BindingKey] = Counter()

    def add(self, page: StagedPage, checks: Sequence[int], kinds: Sequence[int]) -> None:
        """Add a page, given the ids of its checks and kinds."""
        for check, kind, namespace, outcome, count, requester in page.tallies:
            self._counts[checks[check], kinds[kind], namespace, outcome] += count
            if requester:
                self._requester.add(checks[check])
        self._matched.update(page.matched)
        self.gaps.update(page.gaps)

    def list_tallies(self) -> list[TallyRow]:
        """The tallies of the scan."""
        return [TallyRow(*key, count, key[0] in self._requester) for key, count in self._counts.items()]

    def write(self, connection: Connection, scan: int, end: ScanEnd) -> dict[str, int | str]:
        """Write everything except what an earlier scan has; `gaps` must be complete. Returns columns of the scan's row."""
        insert_rows_of_scan(connection, COVERAGE, scan, map(self._build_coverage_row, end.coverage))
        self._write_lists(connection, scan)
        return {
            "notes": orjson.dumps(list(map(clean, end.notes))).decode() if end.notes else "",
            "object_counts": scans.encode_object_counts(end.counts),
            "matched": orjson.dumps(self._count_by_policy(connection, scan)).decode(),
            "health_of": share_rows(connection, HEALTH, scan, map(_build_row, end.health)),
            "outside_of": share_rows(connection, OUTSIDE, scan, map(_build_row, end.outside)),
            "uncovered_of": share_rows(connection, UNCOVERED, scan, map(_build_row, end.uncovered)),
        }

    def _write_lists(self, connection: Connection, scan: int) -> None:
        """Store gaps and tallies. What follows reads them from the row of the scan."""
        gaps = [
            GapRow(position, clean(gap.kind), clean(gap.where), clean(gap.why))
            for position, gap in enumerate(sorted(self.gaps))
        ]
        tallies = write_tallies(connection, self.list_tallies())
        lists = {"gaps": write_gaps(connection, gaps), "tallies": tallies.number if tallies else None}
        connection.execute(update(SCANS).where(SCANS.c.number == scan).values(**lists))
        sum_rows(connection, [GAPS], scan, gaps)
        if tallies:
            sum_listed(connection, TALLIES, scan, tallies.sum)

    def _build_coverage_row(self, coverage: Coverage) -> Row:
        row = _build_row(coverage)
        return {**row, "sets": self.sets.get((str(row["api_version"]), str(row["kind"])))}

    def _count_by_policy(self, connection: Connection, scan: int) -> list[int]:
        """The number of objects that each policy of the scan matched, in the order of the policies."""
        matched: Counter[PolicyKey] = Counter()
        for (language, policy, _), count in self._matched.items():
            matched[language, policy] += count
        used = SCAN_POLICIES.c
        named = select(POLICIES.c.language, POLICIES.c.name).select_from(SCAN_POLICIES.join(POLICIES))
        of_scan = named.where(used.scan == read_owners(connection, scan).policies).order_by(used.position)
        return [matched[language, policy] for language, policy in connection.execute(of_scan).all()]


def _build_row(noun: Coverage | Health | OutOfScope | UncoveredKind) -> dict[str, str | int | bytes | None]:
    """The columns of these tables, which are the fields of the nouns."""
    values = ((item.name, getattr(noun, item.name)) for item in fields(noun))
    return {name: clean(str(value)) if isinstance(value, str) else value for name, value in values}


# Writes the findings that a scan left unchecked: as a compressed set for its own reports, and in parts that SQL reads
# for views.
#
# The parts are those of the newest merged scan of a cluster alone, so only what differs from the scan before is
# written.


def write_unchecked(connection: Connection, cluster: int, scan: int, findings: RowIdSet) -> None:
    """Write the ids of the findings that the newest scan of a cluster left open without checking them."""
    if findings.count:
        connection.execute(insert(UNCHECKED).values(scan=scan, findings=findings.pack()))
    before, now = read_unchecked_parts(connection, cluster), dict(findings.words())
    columns = UNCHECKED_NOW.c
    differing = [part for part, bits in before.items() if now.get(part) != bits]
    for portion in chunks(differing):
        connection.execute(
            delete(UNCHECKED_NOW).where(columns.cluster == cluster, is_among(connection, columns.part, portion))
        )
    written = [(cluster, part, bits) for part, bits in now.items() if before.get(part) != bits]
    insert_rows(connection, UNCHECKED_NOW, ("cluster", "part", "bits"), written)


def read_unchecked_parts(connection: Connection, cluster: int) -> dict[int, int]:
    """The stored parts of a cluster: 32 ids each, the lowest bit for the lowest id."""
    part = UNCHECKED_NOW.c
    stored = select(part.part, part.bits).where(part.cluster == cluster)
    return {row.part: row.bits for row in connection.execute(stored)}
