"""Reads the population of a scan: its objects with their workloads and kept labels, and what was evaluated of each check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, func, select, tuple_

from scanner.errors import UsageError
from scanner.model.outcome import Check, CheckKind
from scanner.model.population import (
    CountedObject,
    EvaluatedObjects,
    LabelledObject,
    ObjectPage,
    PlaceOfPage,
    RecordedObject,
    Workload,
)
from scanner.store.database.engine import is_among
from scanner.store.history.evaluated_sets import (
    KindOfScan,
    SetsOfKind,
    count_objects,
    read_set_ids,
    read_sets,
    read_sets_of_scan,
)
from scanner.store.read.kept_labels import KeptLabels, PlaceOfObject, decode_pairs
from scanner.store.rows.interning import chunks
from scanner.store.rows.row_ids import RowIdSet, union
from scanner.store.rows.tables import CHECKS, KEPT, KINDS, OBJECTS, OPEN, POPULATION, WORKLOADS

_CHUNK: Final = 1000


class IntervalOfObject(NamedTuple):
    """The facts of the population about an object at a revision. `workload` is None for an object that is its own workload.

    `workload_id` and `kept` are ids of rows, or 0; `kept` is None for an object that is gone, whose labels are those of another time.
    """

    workload: Workload | None
    workload_id: int
    kept: int | None


def read_intervals(connection: Connection, objects: Collection[int], revision: int) -> dict[int, IntervalOfObject]:
    """The interval of each of some objects at a revision; the last one before it of an object that is gone.

    An object of which no interval is known, such as one of an older version's scan, is left out.
    """
    interval = POPULATION.c
    wanted = select(interval.object, *INTERVAL).outerjoin(WORKLOADS, WORKLOADS.c.id == interval.workload)
    at = wanted.where(interval.since <= revision, interval.until > revision)
    last = wanted.where(interval.until <= revision).order_by(interval.since)
    intervals: dict[int, IntervalOfObject] = {}
    for portion in chunks(sorted({*objects})):
        rows = connection.execute(at.where(is_among(connection, interval.object, portion)))
        intervals.update((object_id, interval_of(*columns)) for object_id, *columns in rows)
    for portion in chunks(sorted({*objects} - intervals.keys())):
        rows = connection.execute(last.where(is_among(connection, interval.object, portion)))
        intervals.update((object_id, interval_of(*columns)._replace(kept=None)) for object_id, *columns in rows)
    return intervals


INTERVAL: Final = (
    *(POPULATION.c.workload, POPULATION.c.kept),
    *(WORKLOADS.c[name] for name in ("api_version", "kind", "namespace", "name", "derived")),
)
"""The columns of `interval_of`."""


def interval_of(workload: int, kept: int, *columns: Any) -> IntervalOfObject:
    """The interval in some columns of a row, `columns` being those of its workload."""
    return IntervalOfObject(None if columns[0] is None else Workload(*columns), workload, kept)


def read_workloads(connection: Connection, objects: Sequence[int], revision: int) -> dict[int, Workload | None]:
    """The workload of each of some objects at a revision: None for an object that is its own workload."""
    return {number: interval.workload for number, interval in read_intervals(connection, objects, revision).items()}


def read_population(connection: Connection, cluster: int, scan: int, revision: int) -> Iterator[RecordedObject]:
    """The objects that a scan examined, by its number and revision; those of a kind are ordered by namespace, name and UID."""
    for api_version, kind, sets in read_sets_of_scan(connection, scan):
        for rows in _read_portions(connection, cluster, kind, sets.examined, revision):
            yield from (row.build((api_version, kind)) for row in rows)


def read_namespaces(connection: Connection, cluster: int, revision: int) -> Iterator[str]:
    """The namespaces that are known at a revision: those of objects, and those of which a scan has seen the Namespace."""
    identity, interval = OBJECTS.c, POPULATION.c
    at = interval.cluster == cluster, interval.since <= revision, interval.until > revision
    there = identity.id == interval.object
    of_objects = select(identity.namespace).join(POPULATION, there).where(*at, identity.namespace != "")
    kinds = select(KINDS.c.id).where(KINDS.c.api_version == "v1", KINDS.c.kind == "Namespace")
    of_kind = select(identity.name).join(POPULATION, there).where(*at, interval.kind.in_(kinds))
    yield from connection.execute(of_objects.union(of_kind)).scalars()


def read_labelled_population(
    connection: Connection, cluster: int, scan: int, revision: int
) -> Iterator[LabelledObject]:
    """The same objects in the same order, with the labels that name their owners."""
    labels = KeptLabels(connection, cluster, revision)
    for api_version, kind, sets in read_sets_of_scan(connection, scan):
        for rows in _read_portions(connection, cluster, kind, sets.examined, revision):
            places = [PlaceOfObject(row.kind, row.namespace, row.workload, row.kept or 0) for row in rows]
            for row, kept in zip(rows, labels.read(places), strict=True):
                yield LabelledObject(row.build((api_version, kind)), kept)


class _PopulationRow(NamedTuple):
    """An object at a revision: ids of rows and texts, and the columns of its workload, None for an object that is its own."""

    id: int
    namespace: str
    name: str
    uid: str
    kind: int
    labels: str | None
    annotations: str | None
    workload: int
    kept: int | None
    top: tuple[Any, ...]

    def build(self, kind: tuple[str, str]) -> RecordedObject:
        """The object, of an API version and a kind."""
        top = Workload(*kind, self.namespace, self.name) if self.top[0] is None else Workload(*self.top)
        labels, annotations = decode_pairs(self.labels), decode_pairs(self.annotations)
        return RecordedObject(self.id, *kind, self.namespace, self.name, self.uid, top, labels, annotations)


def _read_portions(
    connection: Connection, cluster: int, kind: str, examined: RowIdSet, revision: int
) -> Iterator[list[_PopulationRow]]:
    """One ordered stream of all intervals at the revision, of which the examined objects are taken."""
    identity, interval = OBJECTS.c, POPULATION.c
    at = interval.cluster == cluster, interval.since <= revision, interval.until > revision
    wanted = (
        select(
            *(identity.id, identity.namespace, identity.name, identity.uid, identity.kind),
            *(KEPT.c.labels, KEPT.c.annotations),
            *INTERVAL,
        )
        .join_from(POPULATION, OBJECTS, identity.id == interval.object)
        .outerjoin(KEPT, KEPT.c.id == interval.kept)
        .outerjoin(WORKLOADS, WORKLOADS.c.id == interval.workload)
        .where(*at, interval.kind.in_(select(KINDS.c.id).where(KINDS.c.kind == kind)))
        .order_by(identity.namespace, identity.name, identity.uid)
        .execution_options(yield_per=_CHUNK)
    )
    with connection.execute(wanted) as result:
        for portion in result.partitions():
            yield [_PopulationRow._make((*row[:9], row[9:])) for row in portion if row[0] in examined]


def read_evaluated_objects(connection: Connection, scan: int) -> Iterator[EvaluatedObjects]:
    """The objects of which a scan evaluated each check, and the others by reason; for each kind, ordered by check."""
    for api_version, kind, sets in read_sets_of_scan(connection, scan):
        by_check: defaultdict[int, defaultdict[str, list[RowIdSet]]] = defaultdict(lambda: defaultdict(list))
        for checks, ids in sets.sets:
            for check, reason in checks:
                by_check[check][reason].append(ids)
        rows = CHECKS.c
        wanted = select(CHECKS, rows.index.label("place")).order_by(rows.language, rows.policy, rows.binding, rows.id)
        for portion in chunks(sorted(by_check)):
            for row in connection.execute(wanted.where(is_among(connection, rows.id, portion))).all():
                reasons = {reason: union(several) for reason, several in sorted(by_check[row.id].items())}
                yield EvaluatedObjects(
                    language=row.language,
                    policy=row.policy,
                    binding=row.binding,
                    param_namespace=row.param_namespace,
                    param_name=row.param_name,
                    check=Check(CheckKind(row.kind), row.place, row.expression),
                    api_version=api_version,
                    kind=kind,
                    evaluated=reasons.pop("", RowIdSet()),
                    not_evaluated=reasons,
                )


# A page of the population of a scan: some objects in the order of the list, with the numbers of their checks.
#
# The objects of a page are read through the index of names, so the time does not depend on how many objects come
# before or after.

_PORTION: Final = 1_000
_HIGHEST: Final = 2**31 - 1


class _ObjectPlace(NamedTuple):
    """The place of an object among those of its kind."""

    namespace: str
    name: str
    uid: str


class _ObjectRow(NamedTuple):
    """A row of the query, in the order of the list."""

    name: _ObjectPlace
    id: int
    labels: str | None
    annotations: str | None


class PopulationOfScan(NamedTuple):
    """The numbers by which the population of a scan is found."""

    cluster: int
    scan: int
    revision: int


def read_population_page(
    connection: Connection, of: PopulationOfScan, *, kind: str, after: PlaceOfPage | None, limit: int
) -> ObjectPage:
    """The objects of one kind, or of all, that follow a place. Raises UsageError for a place that the population does not have."""
    kinds = read_set_ids(connection, of.scan)
    chosen = [place for place, line in enumerate(kinds) if not kind or line.kind == kind]
    counts = count_objects(connection, [kinds[place].everything for place in chosen])
    total = sum(counts[kinds[place].everything] for place in chosen)
    # One object more than the page has shows whether there is a next page.
    names = _ObjectReader(connection, of, min(limit + 1, _PORTION))
    counted: list[tuple[PlaceOfPage, CountedObject]] = []
    for place in chosen:
        if after is not None and place < after.kind:
            continue
        begin = names.find_name(after.object) if after is not None and place == after.kind else None
        sets = read_sets(connection, kinds[place])
        objects = islice(names.read_objects(kinds[place], sets.examined, begin), limit + 1 - len(counted))
        numbers = _CheckCounter(sets)
        counted += ((PlaceOfPage(place, each.id), numbers.count_checks(each)) for each in objects)
        if len(counted) > limit:
            break
    shown = counted[:limit]
    return ObjectPage(tuple(each for _, each in shown), total, shown[-1][0] if len(counted) > limit else None)


class _ObjectReader:
    """Reads objects in the order of their names, a portion at a time."""

    def __init__(self, connection: Connection, of: PopulationOfScan, portion: int) -> None:
        self._connection, self._of, self._portion = connection, of, portion

    def find_name(self, number: int) -> _ObjectPlace:
        """The name of an object of the cluster. Raises UsageError."""
        identity = OBJECTS.c
        wanted = select(identity.namespace, identity.name, identity.uid).where(
            identity.id == number, identity.cluster == self._of.cluster
        )
        row = self._connection.execute(wanted).one_or_none() if 0 <= number <= _HIGHEST else None
        if row is None:
            raise UsageError("The population has no object at this place. Begin with its first page.")
        return _ObjectPlace(*row)

    def read_objects(
        self, kind: SetsOfKind, examined: RowIdSet, begin: _ObjectPlace | None
    ) -> Iterator[RecordedObject]:
        """The examined objects of a kind behind a name; a portion is read when it is needed."""
        kinds = self._connection.execute(select(KINDS.c.id).where(KINDS.c.kind == kind.kind)).scalars().all()
        while rows := self._read_rows(kinds, begin):
            yield from _build_objects(self._connection, self._of, kind, [row for row in rows if row.id in examined])
            begin = rows[-1].name

    def _read_rows(self, versions: Sequence[int], begin: _ObjectPlace | None) -> list[_ObjectRow]:
        """The first rows behind a name, of every version of a kind; those of one version are in the order of the index."""
        return list(islice(merge(*(self._read_version(version, begin) for version in versions)), self._portion))

    def _read_version(self, version: int, begin: _ObjectPlace | None) -> list[_ObjectRow]:
        rows = self._connection.execute(_select_objects(self._of, version, begin).limit(self._portion))
        return [_ObjectRow(_ObjectPlace(namespace, name, uid), *rest) for namespace, name, uid, *rest in rows]


def _select_objects(of: PopulationOfScan, version: int, begin: _ObjectPlace | None) -> Select[Any]:
    identity, interval = OBJECTS.c, POPULATION.c
    names = identity.namespace, identity.name, identity.uid
    wanted = (
        select(*names, identity.id, KEPT.c.labels, KEPT.c.annotations)
        .join_from(OBJECTS, POPULATION, identity.id == interval.object)
        .outerjoin(KEPT, KEPT.c.id == interval.kept)
        .where(identity.cluster == of.cluster, identity.kind == version)
        .where(interval.since <= of.revision, interval.until > of.revision)
        .order_by(*names)
    )
    return wanted if begin is None else wanted.where(tuple_(*names) > tuple_(*begin))


def _build_objects(
    connection: Connection, of: PopulationOfScan, kind: SetsOfKind, rows: Sequence[_ObjectRow]
) -> Iterator[RecordedObject]:
    workloads = read_workloads(connection, [row.id for row in rows], of.revision)
    for row in rows:
        names = kind.api_version, kind.kind, row.name.namespace, row.name.name
        top = workloads.get(row.id) or Workload(*names)
        yield RecordedObject(row.id, *names, row.name.uid, top, decode_pairs(row.labels), decode_pairs(row.annotations))


class _CheckCounter:
    """Counts the checks of objects of one kind. Most objects are in the same sets, so the sums of sets are kept."""

    def __init__(self, kind: KindOfScan) -> None:
        self._sets = kind.sets
        self._sums: dict[tuple[int, ...], tuple[int, int]] = {}

    def count_checks(self, item: RecordedObject) -> CountedObject:
        """An object with its numbers."""
        places = tuple(place for place, (_, objects) in enumerate(self._sets) if item.id in objects)
        if places not in self._sums:
            self._sums[places] = self._add_up(places)
        return CountedObject(item, *self._sums[places])

    def _add_up(self, places: Sequence[int]) -> tuple[int, int]:
        checks = {pair for place in places for pair in self._sets[place][0]}
        evaluated = sum(not reason for _, reason in checks)
        return evaluated, len(checks) - evaluated


def find_clusters_with(
    connection: Connection, clusters: Collection[int], kind: str, namespace: str, name: str
) -> frozenset[int]:
    """Those of some clusters, by id, in which the newest scan that could see the object saw it; case does not count in `kind`."""
    kinds = connection.execute(select(KINDS.c.id).where(func.lower(KINDS.c.kind) == kind.lower())).scalars().all()
    if not kinds or not clusters:
        return frozenset()
    identity = OBJECTS.c
    wanted = (
        select(identity.cluster)
        .join(POPULATION, (POPULATION.c.object == identity.id) & (POPULATION.c.until == OPEN))
        .where(is_among(connection, identity.cluster, sorted(clusters)), is_among(connection, identity.kind, kinds))
        .where(identity.namespace == namespace, identity.name == name)
    )
    return frozenset(connection.execute(wanted).scalars())
