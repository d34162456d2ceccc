"""The sets of objects that the checks of a scan evaluated, or did not evaluate and why: one list of sets for each kind.

A list has the set of all examined objects of the kind, and sets of the objects of invocations (see `audit.object_sets`): with
each set, the ids of the checks that its objects have an outcome of, and the reasons. The objects that pass a check are those
of its evaluated sets without those of its findings. Equal sets and equal lists of all scans are stored once.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import orjson
from sqlalchemy import Connection, select

from scanner.audit.object_sets import KindSets, ObjectSets, SetKey
from scanner.model.outcome import SkipReason
from scanner.store.database.engine import is_among
from scanner.store.rows.interning import Interner, Key, chunks
from scanner.store.rows.row_ids import RowIdSet, union, unpack_row_ids
from scanner.store.rows.tables import COVERAGE, OBJECT_SETS, SET_LISTS

NOT_EVALUATED: Final = frozenset(
    reason.value for reason in (SkipReason.NOT_AUDITABLE, SkipReason.REDACTED, SkipReason.NOT_REACHED)
)
"""The reasons of checks that could have another outcome: their earlier findings are not resolved."""

CheckIds: TypeAlias = tuple[tuple[int, str], ...]
"""The ids of checks, and the reason why each was not evaluated, or an empty string."""


class SetsOfKind(NamedTuple):
    """The ids of the sets of a kind: of all examined objects, and of the others with pairs of checks and reasons."""

    api_version: str
    kind: str
    everything: int
    own: list[tuple[int, list[list[tuple[int, str]]]]]


class KindOfScan(NamedTuple):
    """The sets of a kind: of all examined objects, and of those whose checks have outcomes, with the ids of the checks."""

    examined: RowIdSet
    sets: tuple[tuple[CheckIds, RowIdSet], ...]


class EvaluatedSets:
    """Writes the sets of the kinds of one scan."""

    def __init__(self, connection: Connection, checks: Interner) -> None:
        """The connection is in a transaction that writes history."""
        self._connection = connection
        self._checks = checks
        self._sets = Interner(connection, OBJECT_SETS)
        self._lists = Interner(connection, SET_LISTS)
        self._not_evaluated: defaultdict[int, list[RowIdSet]] = defaultdict(list)
        self._written: list[int] = []
        self._evaluated: dict[int, RowIdSet] = {}

    def write(self, ids: Sequence[int], pages: Iterable[ObjectSets[SetKey]]) -> int:
        """Write the sets of a kind, given the ids of its objects in the order of the list. Returns the id of its list."""
        kind: KindSets[SetKey] = KindSets()
        for page in pages:
            kind.add(page)
        rows = RowSets(ids)
        everything = rows.translate((1 << len(ids)) - 1)  # a bit for each object of the list
        stored: defaultdict[StoredSet, list[CheckIds]] = defaultdict(list)
        for bits, keys in kind.finish().group_keys().items():
            stored[rows.translate(bits)] += (self._find_check_ids(key) for key in keys)
        self._note_not_evaluated(stored)
        set_ids = self._intern_sets([everything, *stored])
        sets = sorted([set_ids[each], sorted(checks)] for each, checks in stored.items())
        number = self._intern_list(orjson.dumps([set_ids[everything], sets]))
        self._written.append(number)
        return number

    def find_matched(self, checks: Collection[int]) -> RowIdSet:
        """The objects that this scan matched for any of these checks, without those that a match condition excluded."""
        chosen = [number for number, several in self._read_written_sets() if _has_any(several, checks)]
        return union(_read_row_sets(self._connection, chosen).values())

    def find_evaluated(self, check: int) -> RowIdSet:
        """The objects of which this scan evaluated a check."""
        if check not in self._evaluated:
            chosen = [
                number
                for number, several in self._read_written_sets()
                if any([check, ""] in checks_of_set for checks_of_set in several)
            ]
            self._evaluated[check] = union(_read_row_sets(self._connection, chosen).values())
        return self._evaluated[check]

    def _read_written_sets(self) -> Iterator[tuple[int, list[list[list[int | str]]]]]:
        """The ids of the sets of this scan, each with its lists of pairs of a check and a reason."""
        wanted = select(SET_LISTS.c.content).where(is_among(self._connection, SET_LISTS.c.id, self._written))
        for content in self._connection.execute(wanted).scalars():
            _, sets = orjson.loads(zlib.decompress(content))
            yield from sets

    def could_not_evaluate(self, check: int, object_id: int) -> bool:
        """Return whether this scan matched an object, but could not evaluate a check that an earlier scan evaluated."""
        return any(object_id in objects for objects in self._not_evaluated.get(check, ()))

    def _find_check_ids(self, key: SetKey) -> CheckIds:
        """The ids of the checks of a set: the keys have the fields of `CheckColumns`."""
        names = key.invocation
        invocation = names.policy, names.binding, names.param_namespace, names.param_name
        columns: list[Key] = [
            (*invocation, check.kind.value, check.index, check.expression, names.language) for check, _ in key.checks
        ]
        return tuple(zip(self._checks.intern(columns), (reason for _, reason in key.checks), strict=True))

    def _note_not_evaluated(self, stored: dict[StoredSet, list[CheckIds]]) -> None:
        for each, several in stored.items():
            for check, reason in (pair for checks in several for pair in checks):
                if reason in NOT_EVALUATED:
                    self._not_evaluated[check].append(unpack_row_ids(each.data))

    def _intern_sets(self, sets: Sequence[StoredSet]) -> dict[StoredSet, int]:
        numbers = self._sets.intern_digests({each.digest: (each.count, each.data) for each in sets})
        return {each: numbers[each.digest] for each in sets}

    def _intern_list(self, content: bytes) -> int:
        digest = hashlib.sha256(content).digest()
        return self._lists.intern_digests({digest: (zlib.compress(content, 6),)})[digest]


def _has_any(several: Iterable[Iterable[Sequence[int | str]]], checks: Collection[int]) -> bool:
    pairs = (pair for checks_of_set in several for pair in checks_of_set)
    return any(check in checks and reason != SkipReason.CONDITION_FALSE.value for check, reason in pairs)


def read_sets_of_scan(connection: Connection, scan: int) -> Iterator[tuple[str, str, KindOfScan]]:
    """The API version, the kind and the sets of each kind of a scan, by its number. Older scans have none."""
    for kind in read_set_ids(connection, scan):
        yield kind.api_version, kind.kind, read_sets(connection, kind)


def read_set_ids(connection: Connection, scan: int) -> list[SetsOfKind]:
    """The kinds of a scan, by its number, with the ids of their sets. Older scans have none."""
    coverage = COVERAGE.c
    wanted = (
        select(coverage.api_version, coverage.kind, SET_LISTS.c.content)
        .join(SET_LISTS, SET_LISTS.c.id == coverage.sets)
        .where(coverage.scan == scan)
        .order_by(coverage.position)
    )
    rows = connection.execute(wanted).all()
    return [
        SetsOfKind(api_version, kind, *orjson.loads(zlib.decompress(content))) for api_version, kind, content in rows
    ]


def read_sets(connection: Connection, kind: SetsOfKind) -> KindOfScan:
    """The sets of a kind."""
    sets = _read_row_sets(connection, [kind.everything, *(number for number, _ in kind.own)])
    pairs = (
        (tuple((check, reason) for check, reason in checks), sets[number])
        for number, several in kind.own
        for checks in several
    )
    return KindOfScan(sets[kind.everything], tuple(pairs))


def count_objects(connection: Connection, numbers: Sequence[int]) -> dict[int, int]:
    """The numbers of objects of some sets, by the ids of the sets."""
    counts: dict[int, int] = {}
    for portion in chunks(sorted(set(numbers))):
        wanted = select(OBJECT_SETS.c.id, OBJECT_SETS.c.count).where(is_among(connection, OBJECT_SETS.c.id, portion))
        counts.update((number, count) for number, count in connection.execute(wanted))
    return counts


def _read_row_sets(connection: Connection, numbers: Sequence[int]) -> dict[int, RowIdSet]:
    sets: dict[int, RowIdSet] = {}
    for portion in chunks(sorted(set(numbers))):
        wanted = select(OBJECT_SETS.c.id, OBJECT_SETS.c.data).where(is_among(connection, OBJECT_SETS.c.id, portion))
        sets.update({number: unpack_row_ids(bytes(data)) for number, data in connection.execute(wanted)})
    return sets


# Sets of the objects of a kind, in the order of its list, as sets of rows of the population.
#
# Rows of one scan are inserted in the order of the list, so their ids form runs: a first scan has one run for each
# kind, and every later change of the cluster breaks a few. A set is translated run by run, and equal sets are
# translated once. The stored form is that of `row_ids`; the digest is that of the set itself, because libraries
# compress differently.

_FEW: Final = 16
"""Runs up to which a set is shifted run by run: each shift reads the whole set."""
_FAR: Final = 8192
"""Ids between two runs from which the zeros between them are not written as text."""


class ListRun(NamedTuple):
    """Objects beside each other in the list whose rows are beside each other in the table."""

    place: int
    row_id: int
    length: int


@dataclass(frozen=True, slots=True)
class StoredSet:
    """A set of row ids: compressed, as `row_ids.unpack_row_ids` reads it; its SHA-256; and how many ids it has."""

    data: bytes
    digest: bytes
    count: int


class RowSets:
    """Translates sets of the objects of one kind into sets of row ids. Equal sets are translated once."""

    def __init__(self, ids: Sequence[int]) -> None:
        """Take the row id of every object, in the order of the list. Repeated objects have the same id."""
        self._length = len(ids)
        self._runs = tuple(sorted(find_runs(ids), key=lambda run: run.row_id))
        self._stored: dict[int, StoredSet] = {}

    def translate(self, bits: int) -> StoredSet:
        """The row ids of a set of objects (bit 0 is the first object of the list).

        Raises ValueError for an object that the list does not have.
        """
        if bits not in self._stored:
            if bits >> self._length:
                raise ValueError("a set has objects that the list of its kind does not have")
            self._stored[bits] = pack_set(self._to_row_bits(bits))
        return self._stored[bits]

    def _to_row_bits(self, bits: int) -> bytearray:
        """One bit per row id."""
        if not bits:
            return bytearray()
        last = self._runs[-1]
        rows = bytearray(((last.row_id + last.length) >> 3) + 1)
        text = f"{bits:0{self._length}b}"[::-1] if len(self._runs) > _FEW else ""
        for start, value in _join_runs(self._runs, text) if text else _shift_runs(self._runs, bits):
            _put_bits(rows, start, value)
        return rows


def find_runs(ids: Sequence[int]) -> Iterator[ListRun]:
    """The runs of a list of row ids, in the order of the list."""
    start = 0
    for place in range(1, len(ids) + 1):
        if place == len(ids) or ids[place] != ids[place - 1] + 1:
            yield ListRun(start, ids[start], place - start)
            start = place


def pack_set(rows: bytes | bytearray) -> StoredSet:
    """A set of row ids, from one bit per id, least significant first."""
    plain = bytes(rows).rstrip(b"\0")
    count = int.from_bytes(plain, "little").bit_count()
    return StoredSet(zlib.compress(plain, 6), hashlib.sha256(plain).digest(), count)


def _shift_runs(all_runs: Sequence[ListRun], bits: int) -> Iterator[tuple[int, int]]:
    for run in all_runs:
        value = bits >> run.place & (1 << run.length) - 1
        if value:
            yield run.row_id, value


def _join_runs(all_runs: Sequence[ListRun], text: str) -> Iterator[tuple[int, int]]:
    """Runs that are near each other as one value each. Ids are ascending; repeated ids are a value of their own."""
    start = end = all_runs[0].row_id
    parts: list[str] = []
    for run in all_runs:
        if not 0 <= run.row_id - end < _FAR:
            yield start, _parse_bits(parts)
            start = end = run.row_id
            parts = []
        parts += ["0" * (run.row_id - end), text[run.place : run.place + run.length]]
        end = run.row_id + run.length
    yield start, _parse_bits(parts)


def _parse_bits(parts: Sequence[str]) -> int:
    return int("".join(parts)[::-1] or "0", 2)


def _put_bits(rows: bytearray, start: int, value: int) -> None:
    """Put a value of several bits at a bit offset; bits that are set stay set."""
    shifted = value << (start & 7)
    size = (shifted.bit_length() + 7) >> 3
    area = slice(start >> 3, (start >> 3) + size)
    there = int.from_bytes(rows[area], "little")
    rows[area] = (there | shifted).to_bytes(size, "little")
