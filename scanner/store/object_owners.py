"""The owners of the objects of a scan, as numbers: four bytes for each object, however many findings it has."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, literal, select

from scanner.model.census import OwnerOf
from scanner.model.population import KeptOfObject
from scanner.store.engine import among
from scanner.store.interning import CHUNK, chunks
from scanner.store.kept_labels import KeptLabels, KeptTexts, PlaceOfObject
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import KEPT, OBJECTS, POPULATION

_MOST: Final = 50_000
NO_OWNER: Final = 0
"""The number of no owner, also of an object that was not read."""


class ObjectOwners:
    """The owner of each object of a cluster at a revision. `names[number]` is the name of an owner; that of NO_OWNER is empty."""

    def __init__(self, labels: KeptLabels, owner_of: OwnerOf, chosen: Select[Any] | None = None) -> None:
        """Read the population at the revision of `labels`, or the objects whose ids a query `chosen` has."""
        self._of_object = array("I")
        numbers = {"": NO_OWNER}
        known: dict[PlaceOfObject, int] = {}
        for portion in _read(labels, chosen):
            if len(known) > _MOST:
                known.clear()
            fresh = {place: texts for _, place, texts in portion if place not in known}
            kept_of = labels.of([*fresh], {place.kept: texts for place, texts in fresh.items()})
            # Equal labels are one object, so each owner is found once.
            owners = {id(kept): numbers.setdefault(owner_of(kept), len(numbers)) for kept in _unique(kept_of)}
            known.update((place, owners[id(kept)]) for place, kept in zip(fresh, kept_of, strict=True))
            for object_id, place, _ in portion:
                self._put(object_id, known[place])
        self.names = [*numbers]

    def _put(self, object_id: int, number: int) -> None:
        if object_id >= len(self._of_object):
            self._of_object.extend([NO_OWNER] * (object_id + 1 + (object_id >> 2) - len(self._of_object)))
        self._of_object[object_id] = number

    def name(self, object_id: int) -> str:
        """The owner of an object; that of an object that was not read is empty."""
        return self.names[self._of_object[object_id] if object_id < len(self._of_object) else NO_OWNER]

    def column(self, object_id: ColumnElement[int]) -> ColumnElement[bytes]:
        """The bytes of the number of an object's owner: a part of one parameter, which databases do not copy. See `number`."""
        code = next(code for code in "BHI" if len(self.names) <= 1 << (8 * array(code).itemsize))
        numbers = array(code, self._of_object)
        if sys.byteorder == "big":
            numbers.byteswap()
        size = numbers.itemsize
        # A part of no bytes is NULL in SQLite, and no bytes in PostgreSQL.
        return func.coalesce(func.substr(literal(numbers.tobytes()), object_id * size + 1, size), literal(b""))

    @staticmethod
    def number(data: bytes) -> int:
        """The number of an owner, given its bytes in a `column`; no bytes are those of an object that was not read."""
        return int.from_bytes(data, "little")

    def named(self, numbers: Mapping[int, int]) -> dict[str, int]:
        """Numbers of something by the name of an owner, given those by its number."""
        return {self.names[owner]: number for owner, number in numbers.items()}

    def counted(self, ids: RowIdSet) -> Counter[int]:
        """The number of the objects of a set, by the number of their owner."""
        return Counter(compress(self._of_object, ids.flags()))


def _unique(several: Iterable[KeptOfObject]) -> Iterable[KeptOfObject]:
    return {id(kept): kept for kept in several}.values()


def owners_at(labels: KeptLabels, owner_of: OwnerOf, ids: Sequence[int]) -> dict[int, str]:
    """The owners of a few objects, by id; none of an object that the population at the revision of `labels` does not have."""
    owners: dict[int, str] = {}
    for numbers in chunks(sorted(set(ids))):
        chosen = select(OBJECTS.c.id).where(among(labels.connection, OBJECTS.c.id, numbers))
        for portion in _read(labels, chosen):
            kept = labels.of([place for _, place, _ in portion], {place.kept: texts for _, place, texts in portion})
            owners.update((number, owner_of(each)) for (number, _, _), each in zip(portion, kept, strict=True))
    return owners


def _read(labels: KeptLabels, chosen: Select[Any] | None) -> Iterator[list[tuple[int, PlaceOfObject, KeptTexts]]]:
    """Portions of rows: the ids of objects, their places, and their own labels."""
    own = POPULATION.c
    wanted = (
        select(own.object, own.kind, OBJECTS.c.namespace, own.workload, own.kept, KEPT.c.labels, KEPT.c.annotations)
        .join(OBJECTS, OBJECTS.c.id == own.object)
        .outerjoin(KEPT, KEPT.c.id == own.kept)
        .where(own.cluster == labels.cluster, own.since <= labels.revision, own.until > labels.revision)
        .execution_options(yield_per=CHUNK)
    )
    connection: Connection = labels.connection
    with connection.execute(wanted if chosen is None else wanted.where(own.object.in_(chosen))) as result:
        for portion in result.partitions():
            yield [
                (number, PlaceOfObject(kind, namespace, workload, kept), (names, annotations))
                for number, kind, namespace, workload, kept, names, annotations in portion
            ]
