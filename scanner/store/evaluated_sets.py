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
from typing import Final, NamedTuple, TypeAlias

import orjson
from sqlalchemy import Connection, select

from scanner.audit.object_sets import KindSets, ObjectSets, SetKey
from scanner.model.outcome import SkipReason
from scanner.store.engine import among
from scanner.store.interning import Interned, chunks
from scanner.store.packing import Key
from scanner.store.populations import RowSets, StoredSet
from scanner.store.row_ids import RowIdSet, union, unpacked
from scanner.store.tables import COVERAGE, OBJECT_SETS, SET_LISTS

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

    def __init__(self, connection: Connection, checks: Interned) -> None:
        """The connection is in a transaction that writes history."""
        self._connection = connection
        self._checks = checks
        self._sets = Interned(connection, OBJECT_SETS)
        self._lists = Interned(connection, SET_LISTS)
        self._not_evaluated: defaultdict[int, list[RowIdSet]] = defaultdict(list)
        self._written: list[int] = []
        self._evaluated: dict[int, RowIdSet] = {}

    def write(self, ids: Sequence[int], pages: Iterable[ObjectSets[SetKey]]) -> int:
        """Write the sets of a kind, given the ids of its objects in the order of the list. Returns the id of its list."""
        kind: KindSets[SetKey] = KindSets()
        for page in pages:
            kind.add(page)
        rows = RowSets(ids)
        everything = rows.of((1 << len(ids)) - 1)
        stored: defaultdict[StoredSet, list[CheckIds]] = defaultdict(list)
        for bits, keys in kind.finished().shared().items():
            stored[rows.of(bits)] += (self._check_ids(key) for key in keys)
        self._note(stored)
        set_ids = self._set_ids([everything, *stored])
        own = sorted([set_ids[each], sorted(checks)] for each, checks in stored.items())
        number = self._list_id(orjson.dumps([set_ids[everything], own]))
        self._written.append(number)
        return number

    def matched(self, checks: Collection[int]) -> RowIdSet:
        """The objects that this scan matched for any of these checks, without those that a match condition excluded."""
        chosen = [number for number, several in self._written_sets() if _has_any(several, checks)]
        return union(_read(self._connection, chosen).values())

    def evaluated(self, check: int) -> RowIdSet:
        """The objects of which this scan evaluated a check."""
        if check not in self._evaluated:
            chosen = [
                number
                for number, several in self._written_sets()
                if any([check, ""] in checks_of_set for checks_of_set in several)
            ]
            self._evaluated[check] = union(_read(self._connection, chosen).values())
        return self._evaluated[check]

    def _written_sets(self) -> Iterator[tuple[int, list[list[list[int | str]]]]]:
        """The ids of the sets of this scan, each with its lists of pairs of a check and a reason."""
        wanted = select(SET_LISTS.c.content).where(among(self._connection, SET_LISTS.c.id, self._written))
        for content in self._connection.execute(wanted).scalars():
            _, own = orjson.loads(zlib.decompress(content))
            yield from own

    def not_evaluated(self, check: int, object_id: int) -> bool:
        """Return whether this scan matched an object, but could not evaluate a check that an earlier scan evaluated."""
        return any(object_id in objects for objects in self._not_evaluated.get(check, ()))

    def _check_ids(self, key: SetKey) -> CheckIds:
        """The ids of the checks of a set: the keys have the fields of `CheckColumns`."""
        names = key.invocation
        invocation = names.policy, names.binding, names.param_namespace, names.param_name
        columns: list[Key] = [
            (*invocation, check.kind.value, check.index, check.expression, names.language) for check, _ in key.checks
        ]
        return tuple(zip(self._checks.ids(columns), (reason for _, reason in key.checks), strict=True))

    def _note(self, stored: dict[StoredSet, list[CheckIds]]) -> None:
        for each, several in stored.items():
            for check, reason in (pair for checks in several for pair in checks):
                if reason in NOT_EVALUATED:
                    self._not_evaluated[check].append(unpacked(each.data))

    def _set_ids(self, sets: Sequence[StoredSet]) -> dict[StoredSet, int]:
        numbers = self._sets.with_digests({each.digest: (each.count, each.data) for each in sets})
        return {each: numbers[each.digest] for each in sets}

    def _list_id(self, content: bytes) -> int:
        digest = hashlib.sha256(content).digest()
        return self._lists.with_digests({digest: (zlib.compress(content, 6),)})[digest]


def _has_any(several: Iterable[Iterable[Sequence[int | str]]], checks: Collection[int]) -> bool:
    pairs = (pair for checks_of_set in several for pair in checks_of_set)
    return any(check in checks and reason != SkipReason.CONDITION_FALSE.value for check, reason in pairs)


def sets_of(connection: Connection, scan: int) -> Iterator[tuple[str, str, KindOfScan]]:
    """The API version, the kind and the sets of each kind of a scan, by its number. Older scans have none."""
    for kind in kinds_of(connection, scan):
        yield kind.api_version, kind.kind, read_sets(connection, kind)


def kinds_of(connection: Connection, scan: int) -> list[SetsOfKind]:
    """The kinds of a scan, by its number, with the ids of their sets. Older scans have none."""
    own = COVERAGE.c
    wanted = (
        select(own.api_version, own.kind, SET_LISTS.c.content)
        .join(SET_LISTS, SET_LISTS.c.id == own.sets)
        .where(own.scan == scan)
        .order_by(own.position)
    )
    rows = connection.execute(wanted).all()
    return [
        SetsOfKind(api_version, kind, *orjson.loads(zlib.decompress(content))) for api_version, kind, content in rows
    ]


def read_sets(connection: Connection, kind: SetsOfKind) -> KindOfScan:
    """The sets of a kind."""
    sets = _read(connection, [kind.everything, *(number for number, _ in kind.own)])
    pairs = (
        (tuple((check, reason) for check, reason in checks), sets[number])
        for number, several in kind.own
        for checks in several
    )
    return KindOfScan(sets[kind.everything], tuple(pairs))


def counts_of(connection: Connection, numbers: Sequence[int]) -> dict[int, int]:
    """The numbers of objects of some sets, by the ids of the sets."""
    counts: dict[int, int] = {}
    for portion in chunks(sorted(set(numbers))):
        wanted = select(OBJECT_SETS.c.id, OBJECT_SETS.c.count).where(among(connection, OBJECT_SETS.c.id, portion))
        counts.update((number, count) for number, count in connection.execute(wanted))
    return counts


def _read(connection: Connection, numbers: Sequence[int]) -> dict[int, RowIdSet]:
    sets: dict[int, RowIdSet] = {}
    for portion in chunks(sorted(set(numbers))):
        wanted = select(OBJECT_SETS.c.id, OBJECT_SETS.c.data).where(among(connection, OBJECT_SETS.c.id, portion))
        sets.update({number: unpacked(bytes(data)) for number, data in connection.execute(wanted)})
    return sets
