"""Finds damage: shared texts that differ from their digests, and rows that differ from the closing sums of the scans that wrote them.

A scan checks what it builds on before it begins, its newest scan and the newest rows, and accepts damage if the user wants it.
`assay db check` reads all.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Engine, Table, func, select, update

from scanner.errors import DatabaseUnusable
from scanner.model.scans.scan import ScanState
from scanner.store.catalog.clusters import read_deleted_ids
from scanner.store.database.address import Address
from scanner.store.database.engine import is_among, reading_snapshot
from scanner.store.rows.closing_sums import (
    BITS,
    FINDING_PARTS,
    NO_BLOCK,
    NO_ROWS,
    POPULATION_PARTS,
    Sum,
    SumKey,
    add_up,
    add_up_rows,
    compute_report_sums,
    find_summed_scans,
    make_scan_getter,
    read_sums,
    replace_sums,
)
from scanner.store.rows.daily_lists import read_counts_of_set
from scanner.store.rows.gap_lists import read_gaps_of_scans
from scanner.store.rows.interning import digest
from scanner.store.rows.logical_rows import (
    DAILY_TALLIES,
    GAPS,
    LIST_PARTS,
    REPORTS,
    REVISION_PARTS,
    SCAN_PARTS,
    SCANS_ENDED,
    TALLIES,
    Encoder,
    LogicalPart,
)
from scanner.store.rows.references import REFERENCES
from scanner.store.rows.shared_rows import read_owners
from scanner.store.rows.tables import (
    CLOSING_SUMS,
    DAYS,
    GAP_LISTS,
    OBJECT_SETS,
    OBJECTS,
    PLACES,
    SCANS,
    SET_LISTS,
    TALLY_LISTS,
    TALLY_SETS,
)
from scanner.store.rows.tally_lists import TallySums

# Finds shared rows, such as messages, whose content has changed since it was stored: their digest is another one.

UNREADABLE: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, zlib.error)
"""What damaged rows raise when they are decoded."""
COMPRESSED: Final = (OBJECT_SETS, SET_LISTS, PLACES, GAP_LISTS)
"""The tables whose digest is that of the plain content of their last column: libraries compress differently."""
_SUMMED: Final = (TALLY_LISTS, TALLY_SETS)
"""The tables whose digest is a sum of logical rows."""
SHARED_TEXTS: Final[Sequence[Table]] = tuple(table for table in REFERENCES if table is not OBJECTS)
"""The tables of shared rows with a digest."""


def find_changed_texts(
    connection: Connection, table: Table, newest: int | None = None
) -> Iterator[tuple[int, bytes | None]]:
    """The ids of rows with another digest than that of their content, and the digest of that; None if it cannot be read.

    Of the `newest` rows, or of all.
    """
    if table in _SUMMED:
        yield from _find_changed_sums(connection, table, newest)
        return
    of_row = _digest_content if table in COMPRESSED else _digest_key
    added = sum(column.server_default is not None for column in table.columns)
    wanted = select(table).order_by(table.c.id.desc()).limit(newest).execution_options(yield_per=1000)
    with connection.execute(wanted) as rows:
        for number, stored, *key in rows:
            now = of_row(key, added)
            if now is None or bytes(stored) != now:
                yield number, now


def _find_changed_sums(connection: Connection, table: Table, newest: int | None) -> Iterator[tuple[int, bytes | None]]:
    sums = TallySums(connection, Encoder(connection))
    add_up = sums.add_up_list if table is TALLY_LISTS else sums.add_up_set
    wanted = select(table.c.id, table.c.digest).order_by(table.c.id.desc()).limit(newest)
    for number, stored in connection.execute(wanted).all():
        try:
            now = add_up(number)
        except UNREADABLE:
            yield number, None
            continue
        if bytes(stored) != now.digest:
            yield number, now.digest


def _digest_key(key: Sequence[Any], added: int) -> bytes | None:
    """The digest of a row of `interning`: columns that a migration added are part of it if they are not empty."""
    values = tuple(bytes(value) if isinstance(value, memoryview) else value for value in key)
    try:
        return digest(values[:-added] if added and not any(values[-added:]) else values)
    except TypeError:
        return None  # A damaged row can have bytes in the place of a text.


def _digest_content(key: Sequence[Any], _: int) -> bytes | None:
    try:
        return hashlib.sha256(zlib.decompress(bytes(key[-1]))).digest()
    except (zlib.error, TypeError):
        return None


_MOST_ROWS: Final = 20_000
"""The number of findings, and of intervals of objects, that a scan reads."""
_MOST_TEXTS: Final = 1_000
"""The number of shared rows of each table that a scan reads."""
_SHOWN: Final = 5
_TEXTS: Final = tuple(table for table in SHARED_TEXTS if table not in (*COMPRESSED, *_SUMMED))


def find_damage(engine: Engine, cluster: int, *, everything: bool = False) -> list[str]:
    """The places of damage in what the next scan of a cluster builds on, or in all of the database. A first scan builds on nothing."""
    with reading_snapshot(engine) as connection:
        check = SumCheck(connection)
        if not everything and not check.has_base(cluster):
            return []
        try:
            differences = list(check.check_all() if everything else check.check_base(cluster, _MOST_ROWS))
            texts = list(_list_changed_texts(connection, None if everything else _MOST_TEXTS))
        except UNREADABLE as error:
            return [f"rows cannot be decoded ({type(error).__name__})"]
        return [*texts, *(f"{each.where} ({each.what})" for each in differences)]


def damage_error(address: Address, damage: Sequence[str]) -> DatabaseUnusable:
    """The error of a scan that would build on damage."""
    return DatabaseUnusable(
        f"The database {address.text} is damaged, and a scan would build on the damage: {_join_places(damage)}. "
        "Restore the database from a backup, and scan again; without a backup, pass --accept-damage to go on with the rows as they are. "
        "`assay db check` lists every problem."
    )


def note_acceptance(damage: Sequence[str]) -> str:
    """The note of a scan that accepts damage."""
    return f"the database was damaged before this scan, and --accept-damage accepted the rows as they were: {_join_places(damage)}"


def accept_damage(connection: Connection) -> None:
    """Let the digests and the sums be those of the rows that are there. The connection is in a transaction that writes history."""
    for table in (*_TEXTS, *_SUMMED):
        for number, now in list(find_changed_texts(connection, table)):
            taken = select(table.c.id).where(table.c.digest == now)
            if now is not None and connection.execute(taken).first() is None:
                connection.execute(update(table).where(table.c.id == number).values(digest=now))
    differences = list(SumCheck(connection).check_all())
    replace_sums(connection, {each.key: each.now for each in differences if each.key is not None})


def _list_changed_texts(connection: Connection, newest: int | None) -> Iterator[str]:
    for table in _TEXTS:
        if numbers := [number for number, _ in find_changed_texts(connection, table, newest)]:
            rows = ", ".join(map(str, numbers[:_SHOWN]))
            yield f"{table.name} {rows} (the content has changed since it was stored)"


def _join_places(damage: Sequence[str]) -> str:
    more = len(damage) - _SHOWN
    return "; ".join(damage[:_SHOWN]) + (f"; and {more:,} more" if more > 0 else "")


# Compares the rows of a database with the closing sums of the scans that wrote them: see `closing_sums`.
#
# Rows and sums are read in portions, so memory does not grow with the database. A scan of an older version has no
# sums.

_DIFFER: Final = "rows differ from those that the scan wrote: their closing sum is another one"
_SCANS_AT_ONCE: Final = 100


class SumDifference(NamedTuple):
    """A fault, and its rows of a scan; the key of the sum, and the sum of the rows that are there. A scan may lack both."""

    what: str
    where: str
    key: SumKey | None = None
    now: Sum = NO_ROWS


@dataclass(frozen=True, slots=True)
class _CheckedScan:
    id: str
    cluster: int
    revision: int | None
    running: bool
    pruned: bool


class SumCheck:
    """Compares rows with sums over one connection."""

    def __init__(self, connection: Connection) -> None:
        """Read which scans have sums."""
        self._connection = connection
        # Of a cluster that is being deleted, neither rows nor sums are whole.
        self._deleted = read_deleted_ids(connection)
        row = SCANS.c
        columns = row.number, row.id, row.cluster, row.revision, row.state, row.pruned_at
        wanted = select(*columns).where(row.cluster.not_in(self._deleted))
        self._scans = {
            number: _CheckedScan(scan, cluster, revision, state == ScanState.RUNNING.value, pruned is not None)
            for number, scan, cluster, revision, state, pruned in connection.execute(wanted)
        }
        self._summed = find_summed_scans(connection)
        self._encoder = Encoder(connection)
        self._tallies = TallySums(connection, self._encoder)
        self._numbers = {
            (scan.cluster, scan.revision): number for number, scan in self._scans.items() if scan.revision is not None
        }

    def check_all(self) -> Iterator[SumDifference]:
        """The differences of all scans."""
        yield from self._find_scans_without_sums()
        numbers = sorted(self._scans)
        for start in range(0, len(numbers), _SCANS_AT_ONCE):
            yield from self.check_scans(numbers[start : start + _SCANS_AT_ONCE])
        yield from self.check_revisions()
        for parts in (FINDING_PARTS, POPULATION_PARTS):
            for block in self._list_blocks(parts[0]):
                yield from self.check_block(parts, block)[1]

    def has_base(self, cluster: int) -> bool:
        """Return whether a scan of a cluster is merged."""
        return any(scan.cluster == cluster and scan.revision is not None for scan in self._scans.values())

    def check_base(self, cluster: int, most_rows: int) -> Iterator[SumDifference]:
        """The differences of what the next scan of a cluster builds on: its newest scan, and its newest blocks up to so many rows."""
        merged = [
            number for number, scan in self._scans.items() if scan.cluster == cluster and scan.revision is not None
        ]
        if not merged:
            return
        yield from self._find_scans_without_sums()
        newest = max(merged, key=lambda number: self._scans[number].revision or 0)
        owners = frozenset(read_owners(self._connection, newest))
        yield from self.check_scans([newest, *sorted(owners - {newest})], reports=False)
        yield from self.check_revisions()
        for parts in (FINDING_PARTS, POPULATION_PARTS):
            left = most_rows
            for block in self._list_blocks_of(parts[0], cluster):
                if left <= 0:
                    break
                rows, differences = self.check_block(parts, block)
                yield from differences
                left -= rows

    def check_scans(self, numbers: Sequence[int], *, reports: bool = True) -> Iterator[SumDifference]:
        """The differences of the rows that belong to some scans, without those in blocks; with what only their own `reports` show."""
        computed: dict[SumKey, Sum] = {}
        for part in SCAN_PARTS:
            column = part.table.c[part.scan]
            rows = self._connection.execute(select(part.table).where(is_among(self._connection, column, numbers))).all()
            if part is SCANS_ENDED:
                rows = [row for row in rows if not self._scans[row.number].running]
            computed |= add_up(self._encoder, part, rows, make_scan_getter(part, self._numbers))
        computed |= self._add_up_lists(numbers)
        if reports:
            there = (number for number in numbers if not self._scans[number].running and not self._scans[number].pruned)
            computed |= compute_report_sums(self._connection, list(there))
        closing_sum = CLOSING_SUMS.c
        names = [part.name for part in (*SCAN_PARTS, *LIST_PARTS, *([REPORTS] if reports else []))]
        chosen = closing_sum.part.in_(names), is_among(self._connection, closing_sum.scan, numbers)
        yield from self._compare_sums(read_sums(self._connection, *chosen), computed, _name_part)

    def _add_up_lists(self, numbers: Sequence[int]) -> dict[SumKey, Sum]:
        """The sums of the rows in the lists of some scans."""
        sums: dict[SumKey, Sum] = {}
        for scan, gaps in read_gaps_of_scans(self._connection, numbers).items():
            sums[SumKey(GAPS.name, NO_BLOCK, scan)] = add_up_rows(self._encoder, GAPS, gaps)
        tallied = is_among(self._connection, SCANS.c.number, numbers) & SCANS.c.tallies.is_not(None)
        for scan, number in self._connection.execute(select(SCANS.c.number, SCANS.c.tallies).where(tallied)).all():
            sums[SumKey(TALLIES.name, NO_BLOCK, scan)] = self._tallies.add_up_set(number)
        day = DAYS.c
        of_scans = is_among(self._connection, day.scan, numbers) & day.tallies.is_not(None)
        for number, scan, tallies in self._connection.execute(
            select(day.number, day.scan, day.tallies).where(of_scans)
        ).all():
            rows = [(number, *pair) for pair in read_counts_of_set(self._connection, tallies)]
            sums[SumKey(DAILY_TALLIES.name, NO_BLOCK, scan)] = add_up_rows(self._encoder, DAILY_TALLIES, rows)
        # A scan writes no sum of no rows.
        return {key: each for key, each in sums.items() if each.rows}

    def check_revisions(self) -> Iterator[SumDifference]:
        """The differences of the rows that belong to the revisions of clusters, without those in blocks: they are few."""
        for part in REVISION_PARTS:
            wanted = select(part.table).where(part.table.c.cluster.not_in(self._deleted))
            rows = self._connection.execute(wanted).all()
            computed = add_up(self._encoder, part, rows, make_scan_getter(part, self._numbers))
            stored = read_sums(self._connection, CLOSING_SUMS.c.part == part.name)
            yield from self._compare_sums(stored, computed, _name_part)

    def check_block(self, parts: Sequence[LogicalPart], block: int) -> tuple[int, list[SumDifference]]:
        """The number of rows in a block of ids, and the differences."""
        column = parts[0].table.c[parts[0].block]
        of_block = column.between(block << BITS, (block + 1 << BITS) - 1)
        wanted = select(parts[0].table).where(of_block, parts[0].table.c.cluster.not_in(self._deleted))
        rows = self._connection.execute(wanted).all()
        computed: dict[SumKey, Sum] = {}
        for part in parts:
            computed |= add_up(self._encoder, part, rows, make_scan_getter(part, self._numbers))
        closing_sum = CLOSING_SUMS.c
        stored = read_sums(
            self._connection, closing_sum.part.in_([part.name for part in parts]), closing_sum.block == block
        )
        return len(rows), list(self._compare_sums(stored, computed, _name_block))

    def _compare_sums(
        self, stored: Mapping[SumKey, Sum], computed: Mapping[SumKey, Sum], place: Callable[[SumKey], str]
    ) -> Iterator[SumDifference]:
        for key in sorted(stored.keys() | computed.keys()):
            before, now = stored.get(key), computed.get(key)
            if before == now or (before is None and key.scan not in self._summed and key.scan in self._scans):
                continue
            scan = self._scans.get(key.scan)
            of = f" of scan {scan.id}" if scan else " of a scan that does not exist"
            yield SumDifference(
                _describe_difference(before or NO_ROWS, now or NO_ROWS), f"{place(key)}{of}", key, now or NO_ROWS
            )

    def _find_scans_without_sums(self) -> Iterator[SumDifference]:
        """Scans without sums that are newer than one with sums."""
        first = min(self._summed, default=None)
        if first is None:
            return
        for number, scan in self._scans.items():
            if number > first and number not in self._summed:
                yield SumDifference("the scan has no closing sums", f"scan {scan.id}")

    def _list_blocks(self, part: LogicalPart) -> Iterator[int]:
        """The blocks that have rows or sums."""
        column, closing_sum = part.table.c[part.block], CLOSING_SUMS.c
        highest = self._connection.execute(select(func.max(column))).scalar()
        highest_sum = self._connection.execute(
            select(func.max(closing_sum.block)).where(closing_sum.part == part.name)
        ).scalar()
        return iter(
            range(max(-1 if highest is None else highest >> BITS, -1 if highest_sum is None else highest_sum) + 1)
        )

    def _list_blocks_of(self, part: LogicalPart, cluster: int) -> list[int]:
        """The blocks with rows that scans of a cluster wrote, the newest first."""
        closing_sum = CLOSING_SUMS.c
        wanted = select(closing_sum.block).distinct().join(SCANS, SCANS.c.number == closing_sum.scan)
        wanted = wanted.where(closing_sum.part == part.name, SCANS.c.cluster == cluster).order_by(
            closing_sum.block.desc()
        )
        return list(self._connection.execute(wanted).scalars())


def _name_part(key: SumKey) -> str:
    return key.part


def _name_block(key: SumKey) -> str:
    table = key.part.partition(" ")[0]
    return f"{table} {key.block << BITS} to {(key.block + 1 << BITS) - 1}"


def _describe_difference(before: Sum, now: Sum) -> str:
    if before.rows == now.rows:
        return _DIFFER
    return f"the scan wrote {before.rows:,} rows, and {now.rows:,} are there"
