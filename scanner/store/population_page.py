"""A page of the population of a scan: some objects in the order of the list, with the numbers of their checks.

The objects of a page are read through the index of names, so the time does not depend on how many objects come before or after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, select, tuple_

from scanner.errors import UsageError
from scanner.model.population import CountedObject, ObjectPage, PlaceOfPage, RecordedObject, Workload
from scanner.store.evaluated_sets import KindOfScan, SetsOfKind, counts_of, kinds_of, read_sets
from scanner.store.kept_labels import pairs
from scanner.store.recorded_objects import workloads_at
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import KEPT, KINDS, OBJECTS, POPULATION

_PORTION: Final = 1_000
_HIGHEST: Final = 2**31 - 1


class _Name(NamedTuple):
    """The place of an object among those of its kind."""

    namespace: str
    name: str
    uid: str


class _Row(NamedTuple):
    """A row of the query, in the order of the list."""

    name: _Name
    id: int
    labels: str | None
    annotations: str | None


class PopulationOfScan(NamedTuple):
    """The numbers by which the population of a scan is found."""

    cluster: int
    scan: int
    revision: int


def population_page(
    connection: Connection, of: PopulationOfScan, *, kind: str, after: PlaceOfPage | None, limit: int
) -> ObjectPage:
    """The objects of one kind, or of all, that follow a place. Raises UsageError for a place that the population does not have."""
    kinds = kinds_of(connection, of.scan)
    chosen = [place for place, line in enumerate(kinds) if not kind or line.kind == kind]
    counts = counts_of(connection, [kinds[place].everything for place in chosen])
    total = sum(counts[kinds[place].everything] for place in chosen)
    names = _Names(connection, of, min(limit + 1, _PORTION))
    found: list[tuple[PlaceOfPage, CountedObject]] = []
    for place in chosen:
        if after is not None and place < after.kind:
            continue
        begin = names.of(after.object) if after is not None and place == after.kind else None
        sets = read_sets(connection, kinds[place])
        objects = islice(names.objects(kinds[place], sets.examined, begin), limit + 1 - len(found))
        numbers = _Numbers(sets)
        found += ((PlaceOfPage(place, each.id), numbers.counted(each)) for each in objects)
        if len(found) > limit:
            break
    shown = found[:limit]
    return ObjectPage(tuple(each for _, each in shown), total, shown[-1][0] if len(found) > limit else None)


class _Names:
    """Reads objects in the order of their names, a portion at a time."""

    def __init__(self, connection: Connection, of: PopulationOfScan, portion: int) -> None:
        self._connection, self._of, self._portion = connection, of, portion

    def of(self, number: int) -> _Name:
        """The name of an object of the cluster. Raises UsageError."""
        own = OBJECTS.c
        wanted = select(own.namespace, own.name, own.uid).where(own.id == number, own.cluster == self._of.cluster)
        row = self._connection.execute(wanted).one_or_none() if 0 <= number <= _HIGHEST else None
        if row is None:
            raise UsageError("The population has no object at this place. Begin with its first page.")
        return _Name(*row)

    def objects(self, kind: SetsOfKind, examined: RowIdSet, begin: _Name | None) -> Iterator[RecordedObject]:
        """The examined objects of a kind behind a name; a portion is read when it is needed."""
        kinds = self._connection.execute(select(KINDS.c.id).where(KINDS.c.kind == kind.kind)).scalars().all()
        while rows := self._rows(kinds, begin):
            yield from _recorded(self._connection, self._of, kind, [row for row in rows if row.id in examined])
            begin = rows[-1].name

    def _rows(self, versions: Sequence[int], begin: _Name | None) -> list[_Row]:
        """The first rows behind a name, of every version of a kind; those of one version are in the order of the index."""
        return list(islice(merge(*(self._of_version(version, begin) for version in versions)), self._portion))

    def _of_version(self, version: int, begin: _Name | None) -> list[_Row]:
        rows = self._connection.execute(_select(self._of, version, begin).limit(self._portion))
        return [_Row(_Name(namespace, name, uid), *rest) for namespace, name, uid, *rest in rows]


def _select(of: PopulationOfScan, version: int, begin: _Name | None) -> Select[Any]:
    own, interval = OBJECTS.c, POPULATION.c
    names = own.namespace, own.name, own.uid
    wanted = (
        select(*names, own.id, KEPT.c.labels, KEPT.c.annotations)
        .join_from(OBJECTS, POPULATION, own.id == interval.object)
        .outerjoin(KEPT, KEPT.c.id == interval.kept)
        .where(own.cluster == of.cluster, own.kind == version)
        .where(interval.since <= of.revision, interval.until > of.revision)
        .order_by(*names)
    )
    return wanted if begin is None else wanted.where(tuple_(*names) > tuple_(*begin))


def _recorded(
    connection: Connection, of: PopulationOfScan, kind: SetsOfKind, rows: Sequence[_Row]
) -> Iterator[RecordedObject]:
    workloads = workloads_at(connection, [row.id for row in rows], of.revision)
    for row in rows:
        names = kind.api_version, kind.kind, row.name.namespace, row.name.name
        top = workloads.get(row.id) or Workload(*names)
        yield RecordedObject(row.id, *names, row.name.uid, top, pairs(row.labels), pairs(row.annotations))


class _Numbers:
    """Counts the checks of objects of one kind. Most objects are in the same sets, so the sums of sets are kept."""

    def __init__(self, kind: KindOfScan) -> None:
        self._sets = kind.sets
        self._sums: dict[tuple[int, ...], tuple[int, int]] = {}

    def counted(self, item: RecordedObject) -> CountedObject:
        """An object with its numbers."""
        places = tuple(place for place, (_, objects) in enumerate(self._sets) if item.id in objects)
        if places not in self._sums:
            self._sums[places] = self._sum(places)
        return CountedObject(item, *self._sums[places])

    def _sum(self, places: Sequence[int]) -> tuple[int, int]:
        checks = {pair for place in places for pair in self._sets[place][0]}
        evaluated = sum(not reason for _, reason in checks)
        return evaluated, len(checks) - evaluated
