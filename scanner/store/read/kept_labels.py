"""Reads the kept labels and annotations of objects, of their workloads and of their namespaces, as of one revision.

The labels of a workload are known if the scan examined the workload itself. They are read for a portion of objects at a time, and
the latest are remembered: memory does not grow with the cluster.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import compress
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from sqlalchemy import ColumnElement, Connection, Select, case, func, literal, select

from scanner.model.population import NOTHING_KEPT, GroupKind, KeptMetadata, KeptOfObject, Pairs
from scanner.model.resource import api_group_of
from scanner.model.scans.census import OwnerOf
from scanner.store.database.engine import is_among
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import KEPT, KINDS, OBJECTS, POPULATION, WORKLOADS

_NAMESPACE: Final = ("", "Namespace")
_MOST: Final = 10_000
"""The entries of a table of remembered labels, after which it begins anew."""


_NO_PAIRS: Final = "[]"

KeptTexts: TypeAlias = tuple[str | None, str | None]
"""The columns `labels` and `annotations` of a row of `kept`."""


class PlaceOfObject(NamedTuple):
    """The rows from which the labels of an object follow: ids of `kinds`, `kept` and `workloads`, and its namespace.

    `workload` is 0 for an object that is its own workload, `kept` for an object without kept labels.
    """

    kind: int
    namespace: str
    workload: int
    kept: int


class KeptLabels:
    """The kept labels of the objects of one cluster at one revision. Equal labels are one object."""

    def __init__(
        self, connection: Connection, cluster: int, revision: int, names: AbstractSet[str] | None = None
    ) -> None:
        """Read nothing yet. `names` are those of the labels and annotations to read; by default, all."""
        self.connection: Final = connection
        self.cluster: Final = cluster
        self.revision: Final = revision
        self._of_workloads: dict[int, int] = {}
        self._of_namespaces: dict[str, int] = {}
        self._rows: dict[int, KeptMetadata] = {0: NOTHING_KEPT}
        self._names: Final = names
        self._equal: dict[tuple[Pairs, Pairs], KeptMetadata] = {((), ()): NOTHING_KEPT}
        self._joined: dict[tuple[int, int, int], KeptOfObject] = {}

    @cached_property
    def _kinds(self) -> Mapping[GroupKind, Sequence[int]]:
        """The ids of kinds by group and kind, in any version."""
        kinds: defaultdict[GroupKind, list[int]] = defaultdict(list)
        wanted = select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind)
        for number, api_version, kind in self.connection.execute(wanted):
            kinds[api_group_of(api_version), kind].append(number)
        return kinds

    @cached_property
    def _namespace_kinds(self) -> frozenset[int]:
        return frozenset(self._kinds.get(_NAMESPACE, ()))

    def read(self, places: Sequence[PlaceOfObject], texts: Mapping[int, KeptTexts] | None = None) -> list[KeptOfObject]:
        """The labels of some objects, in their order. `texts` are rows of `kept` that the caller has read, by id."""
        for memo in (self._of_workloads, self._of_namespaces, self._joined):
            if len(memo) > _MOST:
                memo.clear()
        if len(self._rows) > _MOST:
            self._rows = {0: NOTHING_KEPT}
        if len(self._equal) > _MOST:
            self._equal = {((), ()): NOTHING_KEPT}
        workloads = {place.workload for place in places} - self._of_workloads.keys() - {0}
        self._of_workloads.update(self._read_kept_by_workload(sorted(workloads)))
        namespaces = {place.namespace for place in places} - self._of_namespaces.keys() - {""}
        self._of_namespaces.update(self._read_kept_by_namespace(sorted(namespaces)))
        numbers = [self._find_kept_ids(place) for place in places]
        self._read_rows({number for each in numbers for number in each} - self._rows.keys(), texts or {})
        rows = self._rows
        return [self._join(rows[own], rows[top], rows[namespace]) for own, top, namespace in numbers]

    def _find_kept_ids(self, place: PlaceOfObject) -> tuple[int, int, int]:
        """The ids of `kept` of an object, its workload and its namespace. A Namespace is in itself."""
        number = place.kept
        top = self._of_workloads[place.workload] if place.workload else number
        if place.namespace:
            return number, top, self._of_namespaces[place.namespace]
        return number, top, number if place.kind in self._namespace_kinds else 0

    def _join(self, own: KeptMetadata, top: KeptMetadata, namespace: KeptMetadata) -> KeptOfObject:
        """The same object for the same three, which it keeps alive, so that no others get their ids."""
        key = id(own), id(top), id(namespace)
        joined = self._joined.get(key)
        if joined is None:
            joined = self._joined[key] = KeptOfObject(own, top, namespace)
        return joined

    def _read_kept_by_workload(self, missing: Sequence[int]) -> Mapping[int, int]:
        """The ids of `kept` of workloads, 0 for those that were not examined."""
        top, kept_ids = WORKLOADS.c, dict.fromkeys(missing, 0)
        for portion in chunks(missing):
            by_kind: defaultdict[GroupKind, list[int]] = defaultdict(list)
            wanted = select(top.id, top.api_version, top.kind).where(is_among(self.connection, top.id, portion))
            for number, api_version, kind in self.connection.execute(wanted):
                by_kind[api_group_of(api_version), kind].append(number)
            for group_kind, numbers in by_kind.items():
                if kinds := self._kinds.get(group_kind):
                    kept_ids.update(self._read_kept_of_workloads(kinds, numbers))
        return kept_ids

    def _read_kept_of_workloads(self, kinds: Sequence[int], numbers: Sequence[int]) -> Mapping[int, int]:
        """The ids of `kept` of examined workloads of a kind. Of objects of one name, the newest counts."""
        top, identity, interval = WORKLOADS.c, OBJECTS.c, POPULATION.c
        wanted = (
            select(top.id, interval.kept)
            .select_from(WORKLOADS)
            .join(OBJECTS, (identity.namespace == top.namespace) & (identity.name == top.name))
            .join(POPULATION, interval.object == identity.id)
            .where(is_among(self.connection, top.id, numbers), *self._is_of_kinds(kinds))
            .order_by(identity.id)
        )
        rows = self.connection.execute(wanted)
        return {row.id: row.kept for row in rows}

    def _read_kept_by_namespace(self, missing: Sequence[str]) -> Mapping[str, int]:
        """The ids of `kept` of Namespaces by name, 0 for those that were not examined."""
        identity, interval, kept_ids = OBJECTS.c, POPULATION.c, dict.fromkeys(missing, 0)
        for portion in chunks(missing):
            wanted = (
                select(identity.name, interval.kept)
                .select_from(OBJECTS)
                .join(POPULATION, interval.object == identity.id)
                .where(*self._is_of_kinds(sorted(self._namespace_kinds)), identity.namespace == "")
                .where(is_among(self.connection, identity.name, portion))
                .order_by(identity.id)
            )
            kept_ids.update((name, kept) for name, kept in self.connection.execute(wanted))
        return kept_ids

    def _is_of_kinds(self, kinds: Sequence[int]) -> tuple[ColumnElement[bool], ...]:
        """The conditions of the objects of some kinds at the revision."""
        identity, interval = OBJECTS.c, POPULATION.c
        at = interval.since <= self.revision, interval.until > self.revision
        return (identity.cluster == self.cluster, identity.kind.in_(kinds), *at)

    def _read_rows(self, missing: set[int], texts: Mapping[int, KeptTexts]) -> None:
        self._rows.update((number, self._build_kept(*texts[number])) for number in missing if number in texts)
        read = self._read_kept(sorted(missing - texts.keys()))
        self._rows.update(
            (number, self._equal.setdefault((kept.labels, kept.annotations), kept)) for number, kept in read.items()
        )

    def _read_kept(self, missing: Sequence[int]) -> Mapping[int, KeptMetadata]:
        kept, metadata = KEPT.c, dict[int, KeptMetadata]()
        for portion in chunks(missing):
            wanted = select(kept.id, kept.labels, kept.annotations).where(is_among(self.connection, kept.id, portion))
            metadata.update((number, self._build_kept(*both)) for number, *both in self.connection.execute(wanted))
        return metadata

    def _build_kept(self, labels: str | None, annotations: str | None) -> KeptMetadata:
        both = self._decode_pairs(labels), self._decode_pairs(annotations)
        kept = self._equal.get(both)
        if kept is None:
            kept = self._equal[both] = KeptMetadata(*both)
        return kept

    def _decode_pairs(self, text: str | None) -> Pairs:
        names = self._names
        if names is None or not text or text == _NO_PAIRS:
            return decode_pairs(text)
        return tuple([(name, value) for name, value in orjson.loads(text) if name in names])


def decode_pairs(text: str | None) -> Pairs:
    """The labels or annotations in a column of `kept`."""
    return tuple(map(tuple, orjson.loads(text))) if text and text != _NO_PAIRS else ()


# The owners and namespaces of the objects of a scan, as numbers: four bytes for each object, however many findings it has.

_MOST_PLACES: Final = 50_000
NOT_READ: Final = 0
"""The number of an object that was not read. It has no name."""


class ObjectNames:
    """The name of each object of a cluster, such as its owner, as a number: `names[number]` is the name, empty for NOT_READ."""

    def __init__(self) -> None:
        """No object was read."""
        self.names: Final = [""]
        self._numbers: Final[dict[str, int]] = {}
        self._first = 0
        self._of_object = array("I")

    def number_of(self, name: str) -> int:
        """The number of a name, by default a new one."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def place(self, ids: Sequence[int], numbers: Iterable[int]) -> None:
        """Keep the numbers of the names of objects, in a row from the lowest id to the highest."""
        if not ids:
            return
        known, lowest = self._of_object, min(ids)
        before = self._first if known else lowest
        self._first = min(before, lowest)
        size = max(before + len(known), max(ids) + 1) - self._first
        self._of_object = array("I", bytes(known.itemsize * size))
        self._of_object[before - self._first : before - self._first + len(known)] = known
        for object_id, number in zip(ids, numbers, strict=True):
            self._of_object[object_id - self._first] = number

    def has(self, object_id: int) -> bool:
        """Return whether an object was read."""
        place = object_id - self._first
        return 0 <= place < len(self._of_object) and self._of_object[place] != NOT_READ

    def number_column(self, object_id: ColumnElement[int]) -> ColumnElement[bytes]:
        """The bytes of the number of an object's name: a part of one parameter, which databases do not copy. See `decode_number`."""
        code = next(code for code in "BHI" if len(self.names) <= 1 << (8 * array(code).itemsize))
        numbers = array(code, self._of_object)
        if sys.byteorder == "big":
            numbers.byteswap()
        size, place = numbers.itemsize, object_id - self._first
        known = func.substr(literal(numbers.tobytes()), place * size + 1, size)
        return case((place.between(0, len(numbers) - 1), known), else_=literal(bytes(size)))

    @staticmethod
    def decode_number(data: bytes) -> int:
        """The number of a name, given its bytes in a `number_column`."""
        return int.from_bytes(data, "little")

    def decode(self, data: bytes) -> str:
        """The name, given the bytes of its number."""
        return self.names[self.decode_number(data)]

    def name_numbers(self, numbers: Mapping[int, int]) -> dict[str, int]:
        """Numbers of something by name, given those by the number of the name. Objects without a name and those that were not read are one part."""
        named = Counter[str]()
        for name, number in numbers.items():
            named[self.names[name]] += number
        return dict(named)

    def count_objects(self, ids: RowIdSet) -> Counter[int]:
        """The number of the objects of a set, by the number of their name."""
        return Counter(compress(self._of_object, ids.flags()[self._first :]))


class PlacedObjects:
    """The owners and the namespaces of the objects of a cluster at a revision."""

    def __init__(self, labels: KeptLabels, owner_of: OwnerOf, chosen: Select[Any] | None = None) -> None:
        """Read the population at the revision of `labels`, or the objects whose ids a query `chosen` has."""
        self._labels: Final = labels
        self.owners: Final = ObjectNames()
        self.namespaces: Final = ObjectNames()
        ids, numbers = array("q"), (array("I"), array("I"))
        known: dict[PlaceOfObject, tuple[int, int]] = {}
        for portion in _read_portions(labels, chosen):
            if len(known) > _MOST_PLACES:
                known.clear()
            known.update(
                self._number_places({place: texts for _, place, texts in portion if place not in known}, owner_of)
            )
            ids.extend([object_id for object_id, _, _ in portion])
            for of_name, column in zip(
                numbers, zip(*[known[place] for _, place, _ in portion], strict=True), strict=True
            ):
                of_name.extend(column)
        self.owners.place(ids, numbers[0])
        self.namespaces.place(ids, numbers[1])

    def _number_places(
        self, places: Mapping[PlaceOfObject, KeptTexts], owner_of: OwnerOf
    ) -> Iterator[tuple[PlaceOfObject, tuple[int, int]]]:
        """The numbers of the owner and the namespace of places."""
        kept_of = self._labels.read([*places], {place.kept: texts for place, texts in places.items()})
        # Equal labels are one object, so each owner is found once.
        owners = {id(kept): owner_of(kept) for kept in _drop_repeated(kept_of)}
        for place, kept in zip(places, kept_of, strict=True):
            owner = owners[id(kept)]
            number = self.owners.number_of(owner) if owner else NOT_READ
            yield place, (number, self.namespaces.number_of(place.namespace))

    def add_namespaces(self, chosen: Select[Any]) -> None:
        """Read the namespaces of those objects that the population does not have, of the objects whose ids a query has."""
        wanted = select(OBJECTS.c.id, OBJECTS.c.namespace).where(OBJECTS.c.id.in_(chosen))
        rows = self._labels.connection.execute(wanted)
        missing = [(number, name) for number, name in rows if not self.namespaces.has(number)]
        names = [self.namespaces.number_of(name) for _, name in missing]
        self.namespaces.place([number for number, _ in missing], names)


def _drop_repeated(several: Iterable[KeptOfObject]) -> Iterable[KeptOfObject]:
    return {id(kept): kept for kept in several}.values()


def read_object_owners(labels: KeptLabels, owner_of: OwnerOf, ids: Sequence[int]) -> dict[int, str]:
    """The owners of a few objects, by id; none of an object that the population at the revision of `labels` does not have."""
    owners: dict[int, str] = {}
    for numbers in chunks(sorted(set(ids))):
        chosen = select(OBJECTS.c.id).where(is_among(labels.connection, OBJECTS.c.id, numbers))
        for portion in _read_portions(labels, chosen):
            kept = labels.read([place for _, place, _ in portion], {place.kept: texts for _, place, texts in portion})
            owners.update((number, owner_of(each)) for (number, _, _), each in zip(portion, kept, strict=True))
    return owners


def _read_portions(
    labels: KeptLabels, chosen: Select[Any] | None
) -> Iterator[list[tuple[int, PlaceOfObject, KeptTexts]]]:
    """Portions of rows: the ids of objects, their places, and their own labels."""
    interval = POPULATION.c
    wanted = (
        select(
            interval.object,
            interval.kind,
            OBJECTS.c.namespace,
            interval.workload,
            interval.kept,
            KEPT.c.labels,
            KEPT.c.annotations,
        )
        .join(OBJECTS, OBJECTS.c.id == interval.object)
        .outerjoin(KEPT, KEPT.c.id == interval.kept)
        # The population has no index by cluster and revision, the objects have one by cluster.
        .where(interval.cluster == labels.cluster, OBJECTS.c.cluster == labels.cluster)
        .where(interval.since <= labels.revision, interval.until > labels.revision)
        .execution_options(yield_per=CHUNK)
    )
    connection: Connection = labels.connection
    with connection.execute(wanted if chosen is None else wanted.where(interval.object.in_(chosen))) as result:
        for portion in result.partitions():
            yield [
                (number, PlaceOfObject(kind, namespace, workload, kept), (names, annotations))
                for number, kind, namespace, workload, kept, names, annotations in portion
            ]
