"""The closing sums of scans: for each part of what a scan wrote, the number of its logical rows and the sum of their digests.

A sum is that of the digests as numbers, modulo 2^256 (ADR 57). It does not depend on an order, so a row that is deleted later is
subtracted. Rows with ids are divided into blocks of 1,024 ids. A scan computes its sums from the rows that it writes; rows whose
columns a merge sets step by step are read at its end, within its transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby, islice
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, select, update

from scanner.store.database.engine import insert_rows, is_among
from scanner.store.rows.interning import chunks
from scanner.store.rows.logical_rows import (
    FINDINGS_BEGUN,
    FINDINGS_ENDED,
    PARTS,
    POPULATION_BEGUN,
    POPULATION_ENDED,
    REPORTS,
    SCANS_BEGUN,
    SHARED_TABLES,
    Encoder,
    LogicalPart,
    RawRow,
    digest_of,
)
from scanner.store.rows.tables import CLOSING_SUMS, SCANS

BITS: Final = 10
"""The ids of a block are equal but for so many of their lowest bits."""
_MODULUS: Final = 1 << 256
_BYTES: Final = 32
NO_BLOCK: Final = 0
"""The block of parts without blocks."""
_COLUMNS: Final = ("part", "block", "scan", "rows", "sum")
FINDING_PARTS: Final = (FINDINGS_BEGUN, FINDINGS_ENDED)
POPULATION_PARTS: Final = (POPULATION_BEGUN, POPULATION_ENDED)


class SumKey(NamedTuple):
    """The key of a sum. Parts without blocks have the block 0."""

    part: str
    block: int
    scan: int


class Sum(NamedTuple):
    """A number of rows, and the sum of their digests."""

    rows: int
    total: int

    @property
    def digest(self) -> bytes:
        """The sum of the digests as bytes."""
        return self.total.to_bytes(_BYTES)

    def add(self, rows: int, total: int) -> Sum:
        """The sum with other rows; negative numbers take rows away."""
        return Sum(self.rows + rows, (self.total + total) % _MODULUS)


NO_ROWS: Final = Sum(0, 0)


def add_up(
    encoder: Encoder, part: LogicalPart, rows: Sequence[RawRow], scan_of: Callable[[RawRow], int]
) -> dict[SumKey, Sum]:
    """The sums of raw rows, which have all columns of their table; rows that are none of the part are left out."""
    chosen = part.select_rows(rows)
    place = part.place_of(part.block) if part.block else None
    blocks = [NO_BLOCK] * len(chosen) if place is None else [row[place] >> BITS for row in chosen]
    digests = encoder.compute_digests(part, chosen)
    sums: dict[SumKey, Sum] = {}
    # Rows are in the order of their ids nearly always, so those of a block follow each other.
    for (block, scan), run in groupby(zip(blocks, map(scan_of, chosen), strict=True)):
        several = list(islice(digests, sum(1 for _ in run)))
        key = SumKey(part.name, block, scan)
        sums[key] = sums.get(key, NO_ROWS).add(len(several), sum(several))
    return sums


def add_up_rows(encoder: Encoder, part: LogicalPart, rows: Sequence[RawRow]) -> Sum:
    """The sum of the raw rows of one list."""
    return NO_ROWS.add(len(rows), sum(encoder.compute_digests(part, rows)))


class ScanSums:
    """The sums of one scan, while the scan is closed."""

    def __init__(self, connection: Connection, scan: int) -> None:
        """The connection is in the transaction that writes the rows."""
        self._connection = connection
        self._scan = scan
        self._encoder = Encoder(connection)
        self._sums: dict[SumKey, Sum] = {}

    def add(self, part: LogicalPart, rows: Sequence[RawRow]) -> None:
        """Add rows that the scan wrote, with all columns of the table in their order."""
        for key, (count, total) in add_up(self._encoder, part, rows, lambda _: self._scan).items():
            self._sums[key] = self._sums.get(key, NO_ROWS).add(count, total)

    def know_objects(self, objects: Sequence[RawRow]) -> None:
        """Keep the identities of objects that the scan wrote, so that rows which refer to them need no reading."""
        self._encoder.know_objects(objects)

    def read(self, part: LogicalPart, *conditions: ColumnElement[bool]) -> None:
        """Add rows that this transaction wrote in several steps."""
        wanted = select(part.table).where(*conditions).execution_options(yield_per=1000)
        with self._connection.execute(wanted) as rows:
            for portion in rows.partitions():
                self.add(part, portion)

    def write(self) -> None:
        """Write the sums."""
        insert_sums(self._connection, self._sums)


def sum_rows(connection: Connection, parts: Sequence[LogicalPart], scan: int, rows: Sequence[RawRow]) -> None:
    """Write the sums of the rows of a table that a scan wrote in one step, with all columns of the table in their order."""
    sums = ScanSums(connection, scan)
    for part in parts:
        sums.add(part, rows)
    sums.write()


def sum_listed(connection: Connection, part: LogicalPart, scan: int, each: Sum) -> None:
    """Write the sum of the rows of a list that a scan has."""
    if each.rows:
        insert_sums(connection, {SumKey(part.name, NO_BLOCK, scan): each})


def sum_scan(connection: Connection, part: LogicalPart, scan: int) -> None:
    """Write the sum of a part of the row of a scan, which this transaction wrote."""
    sums = ScanSums(connection, scan)
    sums.read(part, SCANS.c.number == scan)
    sums.write()


def insert_sums(connection: Connection, sums: Mapping[SumKey, Sum]) -> None:
    """Insert sums that the table does not have."""
    rows = [(*key, each.rows, each.digest) for key, each in sorted(sums.items())]
    insert_rows(connection, CLOSING_SUMS, _COLUMNS, rows)


def read_sums(connection: Connection, *conditions: ColumnElement[bool]) -> dict[SumKey, Sum]:
    """The sums in the table that fit some conditions."""
    closing_sum = CLOSING_SUMS.c
    wanted = select(closing_sum.part, closing_sum.block, closing_sum.scan, closing_sum.rows, closing_sum.sum).where(
        *conditions
    )
    return {
        SumKey(part, block, scan): Sum(rows, int.from_bytes(bytes(total)))
        for part, block, scan, rows, total in connection.execute(wanted)
    }


def find_summed_scans(connection: Connection) -> frozenset[int]:
    """The numbers of the scans with sums."""
    closing_sum = CLOSING_SUMS.c
    return frozenset(connection.execute(select(closing_sum.scan).where(closing_sum.part == SCANS_BEGUN.name)).scalars())


def forget_sums(connection: Connection, part: LogicalPart, scans: Collection[int]) -> None:
    """Delete the sums of a part of some scans, whose rows are deleted."""
    closing_sum = CLOSING_SUMS.c
    for portion in chunks(list(scans)):
        connection.execute(
            delete(CLOSING_SUMS).where(closing_sum.part == part.name, is_among(connection, closing_sum.scan, portion))
        )


def hand_over(connection: Connection, part: LogicalPart, before: int, after: int) -> None:
    """Give the sum of a part to the scan that owns the rows now; without a sum, that of an older version, compute it."""
    closing_sum = CLOSING_SUMS.c
    moved = update(CLOSING_SUMS).where(closing_sum.part == part.name, closing_sum.scan == before).values(scan=after)
    if not connection.execute(moved).rowcount and after in find_summed_scans(connection):
        sums = ScanSums(connection, after)
        sums.read(part, part.table.c.scan == after)
        sums.write()


def replace_sums(connection: Connection, sums: Mapping[SumKey, Sum]) -> None:
    """Replace sums by others; a sum of no rows is deleted."""
    closing_sum = CLOSING_SUMS.c
    for key, each in sums.items():
        place = closing_sum.part == key.part, closing_sum.block == key.block, closing_sum.scan == key.scan
        connection.execute(delete(CLOSING_SUMS).where(*place))
        if each.rows:
            insert_sums(connection, {key: each})


class SumUpdater:
    """Keeps sums true while rows that scans wrote are changed or deleted in one transaction."""

    def __init__(self, connection: Connection) -> None:
        """The connection is in the transaction that changes the rows."""
        self._connection = connection
        self._summed = find_summed_scans(connection)
        scan = SCANS.c
        merged = select(scan.cluster, scan.revision, scan.number).where(scan.revision.is_not(None))
        self._numbers = {(cluster, revision): number for cluster, revision, number in connection.execute(merged)}

    @contextmanager
    def updating(self, parts: Sequence[LogicalPart], *conditions: ColumnElement[bool]) -> Iterator[None]:
        """A block that changes or deletes the rows of a table that fit some conditions before and after."""
        before = self._compute_sums(parts, conditions)
        yield
        after = self._compute_sums(parts, conditions)
        changes = {
            key: after.get(key, NO_ROWS).add(-before.get(key, NO_ROWS).rows, -before.get(key, NO_ROWS).total)
            for key in before.keys() | after.keys()
        }
        self._apply({key: change for key, change in changes.items() if change != NO_ROWS and key.scan in self._summed})

    def replace(self, part: LogicalPart, scan: int, before: Sequence[RawRow], after: Sequence[RawRow]) -> None:
        """Take the change of the rows in a list of a scan into its sum."""
        if scan not in self._summed:
            return
        encoder = Encoder(self._connection)
        earlier, now = add_up_rows(encoder, part, before), add_up_rows(encoder, part, after)
        self._apply({SumKey(part.name, NO_BLOCK, scan): now.add(-earlier.rows, -earlier.total)})

    def _compute_sums(
        self, parts: Sequence[LogicalPart], conditions: Iterable[ColumnElement[bool]]
    ) -> dict[SumKey, Sum]:
        if not self._summed:
            return {}
        rows = self._connection.execute(select(parts[0].table).where(*conditions)).all()
        encoder = Encoder(self._connection)
        return {
            key: each
            for part in parts
            for key, each in add_up(encoder, part, rows, make_scan_getter(part, self._numbers)).items()
        }

    def _apply(self, changes: Mapping[SumKey, Sum]) -> None:
        closing_sum = CLOSING_SUMS.c
        for key, change in changes.items():
            place = closing_sum.part == key.part, closing_sum.block == key.block, closing_sum.scan == key.scan
            present = read_sums(self._connection, *place).get(key, NO_ROWS)
            replace_sums(self._connection, {key: present.add(*change)})


def make_scan_getter(part: LogicalPart, numbers: Mapping[tuple[int, int], int]) -> Callable[[RawRow], int]:
    """The function from a raw row to the number of its scan, given those of revisions of clusters; 0 for none."""
    if part.scan:
        place = part.place_of(part.scan)
        return lambda row: int(row[place])
    cluster, revision = part.place_of("cluster"), part.place_of(part.revision)
    return lambda row: numbers.get((row[cluster], row[revision]), 0)


def sum_report(connection: Connection, scan: int) -> None:
    """Write the sum of what the row of a scan loses when the scan is pruned, with the sums of the rows that it shares."""
    insert_sums(connection, compute_report_sums(connection, [scan], stored=True))


def compute_report_sums(connection: Connection, scans: Sequence[int], *, stored: bool = False) -> dict[SumKey, Sum]:
    """The sums of the reports of scans, from their rows and from the sums of shared rows: the `stored` ones, or those of the rows."""
    columns = (SCANS.c[name] for name in REPORTS.columns)
    owners = (SCANS.c[f"{rows}_of"] for rows in SHARED_TABLES)
    wanted = select(SCANS.c.number, *columns, *owners).where(is_among(connection, SCANS.c.number, scans))
    rows = [
        (number, values[: len(REPORTS.columns)], values[len(REPORTS.columns) :])
        for number, *values in connection.execute(wanted)
    ]
    keys = {
        number: [
            SumKey(table.name, NO_BLOCK, owner or number)
            for table, owner in zip(SHARED_TABLES.values(), of, strict=True)
        ]
        for number, _, of in rows
    }
    shared = _read_shared_sums(connection, frozenset(chain.from_iterable(keys.values())), stored=stored)
    return {
        SumKey(REPORTS.name, NO_BLOCK, number): Sum(
            1,
            digest_of(
                [REPORTS.name, *report, *([shared[key].rows, f"{shared[key].total:064x}"] for key in keys[number])]
            ),
        )
        for number, report, _ in rows
    }


def _read_shared_sums(connection: Connection, keys: Collection[SumKey], *, stored: bool) -> dict[SumKey, Sum]:
    """The sums of shared rows. Rows of an older version have no stored sum."""
    closing_sum = CLOSING_SUMS.c
    parts, owners = {key.part for key in keys}, sorted({key.scan for key in keys})
    sums = {}
    if stored:
        there = read_sums(
            connection, closing_sum.part.in_(sorted(parts)), is_among(connection, closing_sum.scan, owners)
        )
        sums = {key: each for key, each in there.items() if key in keys}
    for part in parts:
        missing = sorted(key.scan for key in keys if key.part == part and key not in sums)
        if not missing:
            continue
        table = PARTS[part].table
        rows = connection.execute(select(table).where(is_among(connection, table.c.scan, missing))).all()
        computed = add_up(Encoder(connection), PARTS[part], rows, make_scan_getter(PARTS[part], {}))
        sums |= {SumKey(part, NO_BLOCK, scan): computed.get(SumKey(part, NO_BLOCK, scan), NO_ROWS) for scan in missing}
    return sums
