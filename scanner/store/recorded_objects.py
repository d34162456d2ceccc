"""Reads the population of a scan: its objects with their workloads and kept labels, and what was evaluated of each check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from scanner.model.outcome import Check, CheckKind
from scanner.model.population import EvaluatedObjects, RecordedObject, Workload
from scanner.store.engine import among
from scanner.store.evaluated_sets import sets_of
from scanner.store.interning import chunks
from scanner.store.kept_labels import pairs
from scanner.store.row_ids import RowIdSet, union
from scanner.store.tables import CHECKS, KEPT, KINDS, OBJECTS, POPULATION, WORKLOADS

_CHUNK: Final = 1000


class IntervalOfObject(NamedTuple):
    """What the population has of an object at a revision. `workload` is None for an object that is its own workload.

    `workload_id` and `kept` are ids of rows, or 0; `kept` is None for an object that is gone, whose labels are those of another time.
    """

    workload: Workload | None
    workload_id: int
    kept: int | None


def intervals_at(connection: Connection, objects: Collection[int], revision: int) -> dict[int, IntervalOfObject]:
    """The interval of each of some objects at a revision; the last one before it of an object that is gone.

    An object of which no interval is known, such as one of an older version's scan, is left out.
    """
    own = POPULATION.c
    wanted = select(own.object, *INTERVAL).outerjoin(WORKLOADS, WORKLOADS.c.id == own.workload)
    at = wanted.where(own.since <= revision, own.until > revision)
    last = wanted.where(own.until <= revision).order_by(own.since)
    intervals: dict[int, IntervalOfObject] = {}
    for portion in chunks(sorted({*objects})):
        rows = connection.execute(at.where(among(connection, own.object, portion)))
        intervals.update((object_id, interval_of(*columns)) for object_id, *columns in rows)
    for portion in chunks(sorted({*objects} - intervals.keys())):
        rows = connection.execute(last.where(among(connection, own.object, portion)))
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


def workloads_at(connection: Connection, objects: Sequence[int], revision: int) -> dict[int, Workload | None]:
    """The workload of each of some objects at a revision: None for an object that is its own workload."""
    return {number: interval.workload for number, interval in intervals_at(connection, objects, revision).items()}


def population_of(connection: Connection, cluster: int, scan: int, revision: int) -> Iterator[RecordedObject]:
    """The objects that a scan examined, by its number and revision; those of a kind are ordered by namespace, name and UID."""
    for api_version, kind, sets in sets_of(connection, scan):
        yield from _objects(connection, cluster, (api_version, kind), sets.examined, revision)


def namespaces_at(connection: Connection, cluster: int, revision: int) -> Iterator[str]:
    """The namespaces that are known at a revision: those of objects, and those of which a scan has seen the Namespace."""
    own, interval = OBJECTS.c, POPULATION.c
    at = interval.cluster == cluster, interval.since <= revision, interval.until > revision
    there = own.id == interval.object
    of_objects = select(own.namespace).join(POPULATION, there).where(*at, own.namespace != "")
    kinds = select(KINDS.c.id).where(KINDS.c.api_version == "v1", KINDS.c.kind == "Namespace")
    of_kind = select(own.name).join(POPULATION, there).where(*at, interval.kind.in_(kinds))
    yield from connection.execute(of_objects.union(of_kind)).scalars()


def _objects(
    connection: Connection, cluster: int, kind: tuple[str, str], examined: RowIdSet, revision: int
) -> Iterator[RecordedObject]:
    """One ordered stream of all intervals at the revision, of which the examined objects are taken."""
    own, interval = OBJECTS.c, POPULATION.c
    at = interval.cluster == cluster, interval.since <= revision, interval.until > revision
    wanted = (
        select(own.id, own.namespace, own.name, own.uid, KEPT.c.labels, KEPT.c.annotations)
        .join_from(POPULATION, OBJECTS, own.id == interval.object)
        .outerjoin(KEPT, KEPT.c.id == interval.kept)
        .where(*at, interval.kind.in_(select(KINDS.c.id).where(KINDS.c.kind == kind[1])))
        .order_by(own.namespace, own.name, own.uid)
        .execution_options(yield_per=_CHUNK)
    )
    with connection.execute(wanted) as result:
        for portion in result.partitions():
            rows = [row for row in portion if row.id in examined]
            workloads = workloads_at(connection, [row.id for row in rows], revision)
            for row in rows:
                top = workloads.get(row.id) or Workload(*kind, row.namespace, row.name)
                labels, annotations = pairs(row.labels), pairs(row.annotations)
                yield RecordedObject(row.id, *kind, row.namespace, row.name, row.uid, top, labels, annotations)


def evaluated_objects(connection: Connection, scan: int) -> Iterator[EvaluatedObjects]:
    """The objects of which a scan evaluated each check, and the others by reason; for each kind, ordered by check."""
    for api_version, kind, sets in sets_of(connection, scan):
        by_check: defaultdict[int, defaultdict[str, list[RowIdSet]]] = defaultdict(lambda: defaultdict(list))
        for checks, ids in sets.sets:
            for check, reason in checks:
                by_check[check][reason].append(ids)
        rows = CHECKS.c
        wanted = select(CHECKS, rows.index.label("place")).order_by(rows.language, rows.policy, rows.binding, rows.id)
        for portion in chunks(sorted(by_check)):
            for row in connection.execute(wanted.where(among(connection, rows.id, portion))).all():
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
