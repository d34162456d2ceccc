"""Records the objects that a scan examined: rows of `objects`, and their intervals in `population`.

The objects of a list are sorted by a temporary table of the database, so that memory does not grow with the cluster: it holds
four bytes for each object of one list, and the objects of the kinds that control others.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, assert_never

import orjson
from sqlalchemy import Column, Connection, Integer, MetaData, Table, and_, func, or_, select, update
from sqlalchemy.sql.ddl import CreateTable, DropTable

from scanner.model.population import Pairs, PopulationMember, Workload
from scanner.posture.problem_ids import workload_key
from scanner.posture.workloads import Workloads
from scanner.store.database.engine import insert_rows
from scanner.store.history.later_scans import NewerLists
from scanner.store.rows.closing_sums import ScanSums
from scanner.store.rows.interning import Interner, chunks, reserve_ids
from scanner.store.rows.logical_rows import POPULATION_BEGUN, POPULATION_ENDED
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.search_index import index_objects
from scanner.store.rows.tables import KEPT, KINDS, OBJECTS, OPEN, POPULATION, TEXT, WORKLOADS

CHUNK: Final = 1000
NONE: Final = 0
"""The id of no workload and of no labels."""

_SORTED: Final = Table(
    "assay_objects",
    MetaData(),
    Column("place", Integer, nullable=False),
    Column("namespace", TEXT, nullable=False),
    Column("name", TEXT, nullable=False),
    Column("uid", TEXT, nullable=False),
    Column("workload", Integer, nullable=False),
    Column("kept", Integer, nullable=False),
    prefixes=["TEMPORARY"],
)
_OBJECT: Final = ("id", "cluster", "kind", "namespace", "name", "uid")
_INTERVAL: Final = ("object", "since", "until", "cluster", "kind", "workload", "kept")


@dataclass(frozen=True, slots=True)
class ListedObjects:
    """The objects of one list: pages of packed objects, the ids of its kind, and which absent objects are gone.

    `newer` are lists of the kind that overlapping scans read later, and recorded earlier: what they have stays.
    """

    pages: Callable[[], Iterator[Sequence[PopulationMember]]]
    kind: int
    same_kinds: Sequence[int]
    is_gone: Callable[[IntervalInForce], bool]
    newer: NewerLists | None = None

    def find_end(self, identity: Identity, revision: int) -> int:
        """The end of the first interval of an object: an object that newer lists lack is there for the scan of this revision alone."""
        lacking = self.newer and self.newer.lack(identity.namespace, identity.name)
        return revision + 1 if lacking else OPEN


class RecordedList(NamedTuple):
    """The objects of a list in its order: their ids, and the keys of their workloads (`posture.problem_ids.workload_key`)."""

    ids: array[int]
    workloads: array[int]


class _KnownWorkloads(NamedTuple):
    """The known workloads of objects by their derived ones, and by the places of objects in a list; and the key of each."""

    workloads: dict[int, int]
    of_place: dict[int, int]
    keys: dict[int, int]


class _NewerFacts(NamedTuple):
    """The facts of a newer list about an object: the ids of its workload and labels, and the key of the workload."""

    content: Content
    key: int


class PopulationWriter:
    """Writes the population of one cluster at one revision."""

    def __init__(
        self, connection: Connection, cluster: int, revision: int, workloads: Workloads, sums: ScanSums
    ) -> None:
        """The connection is in a transaction that writes history; `sums` are those of the scan."""
        self._sums = sums
        self._connection = connection
        self._cluster = cluster
        self._revision = revision
        self._workloads = workloads
        self._workload_ids = Interner(connection, WORKLOADS)
        self._kept_ids = Interner(connection, KEPT)
        self._recorded = RowIdSet()
        connection.execute(CreateTable(_SORTED))

    def close(self) -> None:
        """Drop the temporary table."""
        self._connection.execute(DropTable(_SORTED))

    def record(self, listed: ListedObjects) -> RecordedList:
        """Record the objects of a list."""
        tops, derived = self._sort_objects(listed.pages())
        known = self._read_known_workloads(listed.same_kinds, derived)
        newer = dict(self._read_newer(listed, listed.newer)) if listed.newer else {}
        ended = dict(self._read_ended(listed, listed.newer)) if listed.newer else {}
        ids = array("I", bytes(4 * len(tops)))  # zeros, in the order of the list: the database sorts the objects
        changes = _Changes()
        current = NONE
        for step in plan_steps(
            self._read_in_force(listed.same_kinds), self._read_sorted(known, newer, tops), self._make_gone_test(listed)
        ):
            match step:
                case CloseInterval(object_id):
                    changes.closed.append(object_id)
                    continue
                case OpenInterval(seen) if seen.identity in ended:
                    current = ended[seen.identity]
                    changes.opened.append(self._build_interval(current, listed.kind, seen, self._revision + 1))
                case OpenInterval(seen):
                    if len(changes.new) >= CHUNK:
                        self._write(changes, listed, ids)
                    changes.new.append((seen, [seen.item]))
                    current = NONE
                    continue
                case RepeatObject(seen):
                    if current == NONE:
                        changes.new[-1][1].append(seen.item)
                        continue
                case ChangeInterval(object_id, seen):
                    current = object_id
                    if current not in self._recorded:
                        changes.closed.append(current)
                        changes.opened.append(self._build_interval(current, listed.kind, seen, OPEN))
                case KeepInterval(object_id, seen):
                    current = object_id
                case _ as never:
                    assert_never(never)
            ids[seen.item] = current
            self._recorded.add(current)
        self._write(changes, listed, ids)
        return RecordedList(ids, tops)

    def has_recorded(self, object_id: int) -> bool:
        """Return whether this scan examined an object."""
        return object_id in self._recorded

    def _sort_objects(self, pages: Iterable[Sequence[PopulationMember]]) -> tuple[array[int], frozenset[int]]:
        """Put the objects of a list into the temporary table; returns the keys of their workloads, and the ids of derived ones."""
        self._connection.execute(_SORTED.delete())
        names = [column.name for column in _SORTED.columns]
        tops = array("Q")
        derived: set[int] = set()
        for page in pages:
            above = [self._find_workload_key(each) for each in page]
            workloads = self._workload_ids.intern_optional(above)
            kept_ids = self._kept_ids.intern_optional([_encode_kept(each.labels, each.annotations) for each in page])
            rows = [
                (place, each.namespace, each.name, each.uid, workload, labels)
                for place, (each, workload, labels) in enumerate(zip(page, workloads, kept_ids, strict=True), len(tops))
            ]
            insert_rows(self._connection, _SORTED, names, rows)
            tops.extend(map(_top_key, page, above))
            derived.update(number for key, number in zip(above, workloads, strict=True) if key is not None and key[-1])
        return tops, frozenset(derived)

    def _read_known_workloads(self, kinds: Sequence[int], derived: frozenset[int]) -> _KnownWorkloads:
        """The workloads that earlier scans saw of objects for which this scan has only a derived one.

        Objects with the same derived workload belong together: one that was not known before has the workload of the others, if
        that is the same for all of them.
        """
        known = _KnownWorkloads({}, {}, {})
        if not derived:
            return known
        columns, interval, top = OBJECTS.c, POPULATION.c, WORKLOADS.c
        identity = (columns[name] == _SORTED.c[name] for name in Identity._fields)
        wanted = (
            select(_SORTED.c.place, _SORTED.c.workload, top.id, top.api_version, top.kind, top.namespace, top.name)
            .join_from(_SORTED, OBJECTS, and_(columns.cluster == self._cluster, columns.kind.in_(kinds), *identity))
            .join(POPULATION, and_(interval.object == columns.id, interval.until == OPEN))
            .join(WORKLOADS, and_(top.id == interval.workload, top.derived.is_(False)))
            .where(_SORTED.c.workload != NONE)
            .execution_options(yield_per=CHUNK)
        )
        several: set[int] = set()
        with self._connection.execute(wanted) as rows:
            for _, workload, number, api_version, *about in rows:
                if workload not in derived:
                    continue
                if known.workloads.setdefault(workload, number) != number:
                    several.add(workload)
                known.keys[number] = workload_key(api_version.rpartition("/")[0], *about)
        if several:
            with self._connection.execute(wanted) as rows:
                known.of_place.update((row.place, row.id) for row in rows if row.workload in several)
        for workload in several:
            del known.workloads[workload]
        return known

    def _read_ended(self, listed: ListedObjects, lists: NewerLists) -> Iterator[tuple[Identity, int]]:
        """The objects of a list, with their ids, that scans with newer lists found gone: this scan alone has them again."""
        columns, interval = OBJECTS.c, POPULATION.c
        identity = (columns[name] == _SORTED.c[name] for name in Identity._fields)
        wanted = (
            select(*(columns[name] for name in Identity._fields), columns.id)
            .join_from(
                _SORTED, OBJECTS, and_(columns.cluster == self._cluster, columns.kind.in_(listed.same_kinds), *identity)
            )
            .join(POPULATION, and_(interval.object == columns.id, interval.until.in_(lists.scans)))
            .execution_options(yield_per=CHUNK)
        )
        with self._connection.execute(wanted) as rows:
            for *names, number in rows:
                yield Identity(*names), number

    def _read_newer(self, listed: ListedObjects, lists: NewerLists) -> Iterator[tuple[int, _NewerFacts]]:
        """The facts of newer lists about the objects of a list, by the places of those of which they have something else."""
        columns, interval, top = OBJECTS.c, POPULATION.c, WORKLOADS.c
        identity = (columns[name] == _SORTED.c[name] for name in Identity._fields)
        itself = {
            "api_version": KINDS.c.api_version,
            "kind": KINDS.c.kind,
            "namespace": columns.namespace,
            "name": columns.name,
        }
        workload = (func.coalesce(top[name], column) for name, column in itself.items())
        wanted = (
            select(_SORTED.c.place, columns.id, interval.since, interval.workload, interval.kept, *workload)
            .join_from(
                _SORTED, OBJECTS, and_(columns.cluster == self._cluster, columns.kind.in_(listed.same_kinds), *identity)
            )
            .join(POPULATION, and_(interval.object == columns.id, interval.until == OPEN))
            .join(KINDS, KINDS.c.id == columns.kind)
            .outerjoin(WORKLOADS, top.id == interval.workload)
            .where(or_(interval.workload != _SORTED.c.workload, interval.kept != _SORTED.c.kept))
            .execution_options(yield_per=CHUNK)
        )
        with self._connection.execute(wanted) as rows:
            for place, number, since, *content, api_version, kind, namespace, name in rows:
                if lists.have(number, since):
                    key = workload_key(api_version.rpartition("/")[0], kind, namespace, name)
                    yield place, _NewerFacts((*content,), key)

    def _find_workload_key(self, examined: PopulationMember) -> tuple[str | bool, ...] | None:
        """The key of the workload of an object; None for an object that is its own workload."""
        if examined.controller is None:
            return None
        top = self._workloads.find(examined)
        itself = Workload(examined.kind.api_version, examined.kind.kind, examined.namespace, examined.name)
        return None if top == itself else (top.api_version, top.kind, top.namespace, top.name, top.derived)

    def _read_sorted(
        self, known: _KnownWorkloads, newer: Mapping[int, _NewerFacts], tops: array[int]
    ) -> Iterator[SeenObject[int]]:
        """The objects of the list in their order, with known workloads in place of derived ones, and with what newer lists have.

        The keys of the list are changed, too.
        """
        own = _SORTED.c
        ordered = select(own.namespace, own.name, own.uid, own.workload, own.kept, own.place)
        ordered = ordered.order_by(own.namespace, own.name, own.uid).execution_options(yield_per=CHUNK)
        with self._connection.execute(ordered) as rows:
            for namespace, name, uid, workload, kept, place in rows:
                identity = Identity(namespace, name, uid)
                if place in newer:
                    tops[place] = newer[place].key
                    yield SeenObject(identity, newer[place].content, place)
                    continue
                number = known.of_place.get(place) or known.workloads.get(workload, workload)
                if number != workload:
                    tops[place] = known.keys[number]
                yield SeenObject(identity, (number, kept), place)

    def _read_in_force(self, kinds: Sequence[int]) -> Iterator[IntervalInForce]:
        identity, interval = OBJECTS.c, POPULATION.c
        ordered = (
            select(
                identity.namespace,
                identity.name,
                identity.uid,
                interval.workload,
                interval.kept,
                identity.id,
                interval.since,
            )
            .join_from(POPULATION, OBJECTS)
            .where(interval.cluster == self._cluster, interval.kind.in_(kinds), interval.until == OPEN)
            .order_by(identity.namespace, identity.name, identity.uid)
            .execution_options(yield_per=CHUNK)
        )
        with self._connection.execute(ordered) as rows:
            for namespace, name, uid, workload, kept, object_id, since in rows:
                yield IntervalInForce(Identity(namespace, name, uid), (workload, kept), object_id, since)

    def _make_gone_test(self, listed: ListedObjects) -> Callable[[IntervalInForce], bool]:
        """An object that another list of this scan has, in another version of its kind, is not gone."""
        return lambda row: row.object_id not in self._recorded and listed.is_gone(row)

    def _build_interval(self, object_id: int, kind: int, seen: SeenObject[int], until: int) -> tuple[int, ...]:
        return (object_id, self._revision, until, self._cluster, kind, *seen.content)

    def _write(self, changes: _Changes, listed: ListedObjects, ids: array[int]) -> None:
        """Write the changes so far, and give new objects their ids. Intervals end before others of the same object begin."""
        for portion in chunks(changes.closed):
            chosen = POPULATION.c.object.in_(portion), POPULATION.c.until == OPEN
            closed = self._connection.execute(select(POPULATION).where(*chosen)).all()
            self._sums.add(
                POPULATION_ENDED, [(number, since, self._revision, *rest) for number, since, _, *rest in closed]
            )
            self._connection.execute(update(POPULATION).where(*chosen).values(until=self._revision))
        objects: list[tuple[int | str, ...]] = []
        numbers = reserve_ids(self._connection, OBJECTS, len(changes.new))
        for number, (seen, places) in zip(numbers, changes.new, strict=True):
            objects.append((number, self._cluster, listed.kind, *seen.identity))
            until = listed.find_end(seen.identity, self._revision)
            changes.opened.append(self._build_interval(number, listed.kind, seen, until))
            self._recorded.add(number)
            for place in places:
                ids[place] = number
        insert_rows(self._connection, OBJECTS, _OBJECT, objects)
        index_objects(self._connection, objects)
        self._sums.know_objects(objects)
        insert_rows(self._connection, POPULATION, _INTERVAL, changes.opened)
        self._sums.add(POPULATION_BEGUN, changes.opened)
        changes.clear()


class _Changes:
    """The changes to write: ids of objects whose interval ends, new objects with their places in the list, and intervals."""

    def __init__(self) -> None:
        self.closed: list[int] = []
        self.new: list[tuple[SeenObject[int], list[int]]] = []
        self.opened: list[tuple[int, ...]] = []

    def clear(self) -> None:
        """Forget written changes."""
        self.closed.clear()
        self.new.clear()
        self.opened.clear()


def _top_key(examined: PopulationMember, above: tuple[str | bool, ...] | None) -> int:
    """The key of the workload of an object: of itself if it has none above it."""
    if above is None:
        return workload_key(examined.kind.group, examined.kind.kind, examined.namespace, examined.name)
    api_version, kind, namespace, name, _ = above
    return workload_key(str(api_version).rpartition("/")[0], str(kind), str(namespace), str(name))


def _encode_kept(labels: Pairs, annotations: Pairs) -> tuple[str, str] | None:
    if not labels and not annotations:
        return None
    return orjson.dumps(labels).decode(), orjson.dumps(annotations).decode()


# The intervals of the population that a scan closes and opens: a merge join of two sorted streams, without any SQL.
#
# An interval of revisions has what is kept of an object, as the rows of findings do (ADR 4): it is in force until a
# scan that could list the object finds it gone or different.

_Item = TypeVar("_Item")
_identity = attrgetter("identity")
_content = attrgetter("content")

Content: TypeAlias = tuple[int, int]
"""All that is kept of an object beside its identity: the ids of its workload and of its labels, 0 for none."""


class Identity(NamedTuple):
    """The identity of an object among those of its kind.

    Streams are in the order of these tuples, as Python compares texts: by code point, which is the order of SQLite's BINARY
    and of PostgreSQL's "C".
    """

    namespace: str
    name: str
    uid: str


class IntervalInForce(NamedTuple):
    """An interval that is in force, of the object with an id; `since` is its first revision."""

    identity: Identity
    content: Content
    object_id: int
    since: int


class SeenObject(NamedTuple, Generic[_Item]):
    """An object that a scan examined; `item` is the data that the caller needs."""

    identity: Identity
    content: Content
    item: _Item


@dataclass(frozen=True, slots=True)
class CloseInterval:
    """The object is gone."""

    object_id: int


@dataclass(frozen=True, slots=True)
class OpenInterval(Generic[_Item]):
    """An object without an interval in force."""

    seen: SeenObject[_Item]


@dataclass(frozen=True, slots=True)
class ChangeInterval(Generic[_Item]):
    """An object with other content than its interval in force."""

    object_id: int
    seen: SeenObject[_Item]


@dataclass(frozen=True, slots=True)
class KeepInterval(Generic[_Item]):
    """An object whose interval in force has its content."""

    object_id: int
    seen: SeenObject[_Item]


@dataclass(frozen=True, slots=True)
class RepeatObject(Generic[_Item]):
    """The object appeared before, as it can in files: it is the object of the step before."""

    seen: SeenObject[_Item]


Step: TypeAlias = (
    CloseInterval | OpenInterval[_Item] | ChangeInterval[_Item] | KeepInterval[_Item] | RepeatObject[_Item]
)


def plan_steps(
    rows: Iterable[IntervalInForce],
    objects: Iterable[SeenObject[_Item]],
    reaches: Callable[[IntervalInForce], bool] = lambda _: True,
) -> Iterator[Step[_Item]]:
    """The steps from the intervals in force to the objects of a scan, in the order of identities.

    Both streams are ascending, and `rows` has no identity twice. Of several objects with one identity, the one with the
    least content decides. `reaches` returns whether the scan would have listed an object if it existed: an interval beyond
    its reach stays in force and has no step. Raises ValueError for a stream that is not in order.
    """
    for row, same in _align(_require_order(rows), _require_order(objects)):
        if same:
            yield from _plan_object(row, same)
        elif row is not None and reaches(row):
            yield CloseInterval(row.object_id)


def _plan_object(row: IntervalInForce | None, same: Sequence[SeenObject[_Item]]) -> Iterator[Step[_Item]]:
    """The steps for an object that the scan examined."""
    first, *others = same
    if row is None:
        yield OpenInterval(first)
    elif row.content == first.content:
        yield KeepInterval(row.object_id, first)
    else:
        yield ChangeInterval(row.object_id, first)
    yield from map(RepeatObject, others)


def _align(
    rows: Iterator[IntervalInForce], objects: Iterator[SeenObject[_Item]]
) -> Iterator[tuple[IntervalInForce | None, list[SeenObject[_Item]]]]:
    """Every identity of either stream: its row, if there is one, and its objects by content."""
    row = next(rows, None)
    for identity, same in groupby(objects, key=_identity):
        while row is not None and row.identity < identity:
            yield row, []
            row = next(rows, None)
        matches = row is not None and row.identity == identity
        yield row if matches else None, sorted(same, key=_content)
        row = next(rows, None) if matches else row
    while row is not None:
        yield row, []
        row = next(rows, None)


_Sorted = TypeVar("_Sorted", IntervalInForce, SeenObject[Any])


def _require_order(stream: Iterable[_Sorted]) -> Iterator[_Sorted]:
    """The stream, which must be sorted: a merge of others would close and open intervals without a reason."""
    last: Identity | None = None
    for item in stream:
        if last is not None and item.identity < last:
            raise ValueError(f"the population is not in order: {item.identity} comes after {last}")
        last = item.identity
        yield item
