"""The tallies of scans as lists that scans share: a list for each namespace, and a set of lists for each scan.

An object that changes, comes or goes changes the tallies of its namespace alone, so a scan writes the lists of the namespaces that
changed, and a set. The digest of a list is the sum of its logical rows, that of a set the sum of its lists, which is also the
closing sum of the tallies of a scan (see `closing_sums`). A scan shares a list with every earlier scan that had an equal one.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, select

from scanner.store.database.engine import is_among
from scanner.store.rows.closing_sums import NO_ROWS, Sum, add_up_rows
from scanner.store.rows.interning import Interner, chunks
from scanner.store.rows.logical_rows import TALLIES, Encoder
from scanner.store.rows.row_ids import RowIdSet, unpack_row_ids
from scanner.store.rows.tables import SCANS, TALLY_LISTS, TALLY_SETS


class TallyRow(NamedTuple):
    """The number of outcomes of a check, by the ids of the check and of the kind."""

    check: int
    kind: int
    namespace: str
    outcome: str
    number: int
    requester: bool


class WrittenTallies(NamedTuple):
    """The id of a set of lists of tallies, and its sum."""

    number: int
    sum: Sum


def write_tallies(connection: Connection, rows: Iterable[TallyRow]) -> WrittenTallies | None:
    """Store tallies, unless equal ones are stored; None for no tallies."""
    by_namespace: defaultdict[str, list[TallyRow]] = defaultdict(list)
    for row in sorted(rows):
        by_namespace[row.namespace].append(row)
    if not by_namespace:
        return None
    encoder = Encoder(connection)
    sums = {namespace: add_up_rows(encoder, TALLIES, several) for namespace, several in by_namespace.items()}
    total = add_up_sums(sums.values())
    sets = Interner(connection, TALLY_SETS)
    number = sets.find_digest(total.digest)
    if number is None:
        lists = {sums[namespace].digest: (encode_tallies(several),) for namespace, several in by_namespace.items()}
        ids = RowIdSet(Interner(connection, TALLY_LISTS).intern_digests(lists).values())
        number = sets.intern_digests({total.digest: (ids.pack(),)})[total.digest]
    return WrittenTallies(number, total)


def add_up_sums(sums: Iterable[Sum]) -> Sum:
    """The sum of several lists."""
    total = NO_ROWS
    for each in sums:
        total = total.add(*each)
    return total


def encode_tallies(rows: Sequence[TallyRow]) -> bytes:
    """The rows of a namespace as one value: its name, and the columns. Ids of checks are near each other, so differences are stored."""
    checks, kinds, namespaces, outcomes, numbers, requester = zip(*rows, strict=True)
    steps = [checks[0], *(after - before for before, after in pairwise(checks))]
    return zlib.compress(orjson.dumps([namespaces[0], steps, kinds, outcomes, numbers, list(map(int, requester))]))


def decode_tallies(content: bytes) -> Iterator[TallyRow]:
    """The rows of `encode_tallies`."""
    namespace, steps, kinds, outcomes, numbers, requester = orjson.loads(zlib.decompress(content))
    for check, kind, outcome, number, depends in zip(
        accumulate(steps), kinds, outcomes, numbers, map(bool, requester), strict=True
    ):
        yield TallyRow(check, kind, namespace, outcome, number, depends)


def read_tally_rows(connection: Connection, scan: int) -> list[TallyRow]:
    """The tallies of a scan, by its number. A scan without tallies has none."""
    return [row for _, content in _read_lists_of_scan(connection, scan) for row in decode_tallies(content)]


def _read_lists_of_scan(connection: Connection, scan: int) -> Iterator[tuple[int, bytes]]:
    wanted = select(TALLY_SETS.c.lists).join(SCANS, SCANS.c.tallies == TALLY_SETS.c.id).where(SCANS.c.number == scan)
    return read_tally_lists(connection, unpack_row_ids(connection.execute(wanted).scalar()))


def read_tally_lists(connection: Connection, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The ids and the contents of lists."""
    row = TALLY_LISTS.c
    for portion in chunks(list(numbers)):
        wanted = select(row.id, row.content).where(is_among(connection, row.id, portion)).order_by(row.id)
        for number, content in connection.execute(wanted):
            yield number, bytes(content)


class TallySums:
    """Adds up the rows of lists over one connection; a list of many scans is read once."""

    def __init__(self, connection: Connection, encoder: Encoder) -> None:
        """Begin with nothing in memory."""
        self._connection = connection
        self._encoder = encoder
        self._sums: dict[int, Sum] = {}

    def add_up_list(self, number: int) -> Sum:
        """The sum of the rows of a list, by its id."""
        self._read([number])
        return self._sums.get(number, NO_ROWS)

    def add_up_set(self, number: int) -> Sum:
        """The sum of the rows of a set of lists, by its id."""
        lists = list(read_tally_set(self._connection, number))
        self._read(lists)
        return add_up_sums(self._sums.get(each, NO_ROWS) for each in lists)

    def _read(self, numbers: Iterable[int]) -> None:
        missing = [number for number in numbers if number not in self._sums]
        for number, content in read_tally_lists(self._connection, missing):
            self._sums[number] = add_up_rows(self._encoder, TALLIES, list(decode_tallies(content)))


def read_tally_set(connection: Connection, number: int) -> RowIdSet:
    """The ids of the lists of a set, by its id."""
    return unpack_row_ids(connection.execute(select(TALLY_SETS.c.lists).where(TALLY_SETS.c.id == number)).scalar())


def read_tallied_checks(connection: Connection, scan: int) -> dict[int, bool]:
    """The checks that have tallies in a scan, by id, and whether each depends on the requester."""
    checks: dict[int, bool] = {}
    for _, content in _read_lists_of_scan(connection, scan):
        _, steps, _, _, _, requester = orjson.loads(zlib.decompress(content))
        for check, depends in set(zip(accumulate(steps), requester, strict=True)):
            checks[check] = checks.get(check, False) or bool(depends)
    return checks
