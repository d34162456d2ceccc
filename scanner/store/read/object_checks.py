"""Reads what a scan evaluated of a few objects: every check that matched each of them, passes included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Select, func, or_, select

from scanner.model.outcome import Check, CheckKind
from scanner.model.population import ExaminedObject, MatchedCheck, RecordedObject, Workload
from scanner.store.database.engine import is_among
from scanner.store.history.evaluated_sets import read_set_ids, read_sets, read_sets_of_scan
from scanner.store.read.findings import read_scan_ends
from scanner.store.read.kept_labels import KeptLabels, PlaceOfObject, decode_pairs
from scanner.store.read.recorded_objects import PopulationOfScan, read_intervals
from scanner.store.rows.interning import chunks
from scanner.store.rows.row_ids import RowIdSet, difference, union
from scanner.store.rows.tables import CHECKS, FINDINGS, KEPT, KINDS, OBJECTS, POPULATION, WORKLOADS

CheckIds = frozenset[tuple[int, str]]
"""The ids of checks, with the reason why they were not evaluated, or an empty text."""


def read_objects_named(
    connection: Connection, of: PopulationOfScan, *, kind: str, namespace: str, name: str, most: int
) -> tuple[ExaminedObject, ...]:
    """The object with a name, and those of the workload with that name, at most so many, in the order of their names."""
    identity, interval, top = OBJECTS.c, POPULATION.c, WORKLOADS.c
    itself = (identity.namespace == namespace) & (identity.name == name) & (KINDS.c.kind == kind)
    workloads = select(top.id).where(top.kind == kind, top.namespace == namespace, top.name == name)
    wanted = _select_objects(of).where(or_(itself, interval.workload.in_(workloads)))
    return _build(connection, of, connection.execute(wanted.limit(most)).all())


def read_objects_that_passed(
    connection: Connection, of: PopulationOfScan, *, language: str, policy: str, after: int, most: int
) -> tuple[int, tuple[ExaminedObject, ...]]:
    """The number of objects that passed every check of a policy that evaluated them, and those behind an id, in the order of ids."""
    passed = sorted(_find_passed(connection, of, language, policy))
    page = [number for number in passed if number > after][:most]
    wanted = _select_objects(of).where(is_among(connection, OBJECTS.c.id, page))
    objects = _build(connection, of, connection.execute(wanted).all())
    return len(passed), tuple(sorted(objects, key=lambda each: each.object.id))


def _find_passed(connection: Connection, of: PopulationOfScan, language: str, policy: str) -> RowIdSet:
    rows = CHECKS.c
    checks = frozenset(
        connection.execute(select(rows.id).where(rows.language == language, rows.policy == policy)).scalars()
    )
    evaluated = [
        ids
        for _, _, sets in read_sets_of_scan(connection, of.scan)
        for pairs, ids in sets.sets
        if any(check in checks and not reason for check, reason in pairs)
    ]
    finding = FINDINGS.c
    at = finding.cluster == of.cluster, finding.since <= of.revision, finding.until > of.revision
    failing = RowIdSet()
    for portion in chunks(sorted(checks)):
        for number in connection.execute(
            select(finding.object).where(*at, is_among(connection, finding.check, portion)).distinct()
        ).scalars():
            failing.add(number)
    return difference(union(evaluated), failing)


def _select_objects(of: PopulationOfScan) -> Select[Any]:
    identity, interval = OBJECTS.c, POPULATION.c
    return (
        select(
            *(identity.id, identity.namespace, identity.name, identity.uid),
            *(KINDS.c.api_version, KINDS.c.kind, identity.kind.label("kind_id")),
            *(KEPT.c.labels, KEPT.c.annotations),
        )
        .join_from(OBJECTS, POPULATION, interval.object == identity.id)
        .join(KINDS, KINDS.c.id == identity.kind)
        .outerjoin(KEPT, KEPT.c.id == interval.kept)
        .where(identity.cluster == of.cluster, interval.since <= of.revision, interval.until > of.revision)
        .order_by(identity.namespace, identity.name, identity.uid)
    )


def _build(connection: Connection, of: PopulationOfScan, rows: Sequence[Any]) -> tuple[ExaminedObject, ...]:
    """The objects of some rows with their checks."""
    ids = [row.id for row in rows]
    intervals = read_intervals(connection, ids, of.revision)
    since = _read_since(connection, ids, of)
    matched = _read_checks(connection, of.scan, {row.id: row.kind for row in rows})
    checks = _read_check_rows(connection, {number for pairs in matched.values() for number, _ in pairs})
    places = [
        PlaceOfObject(row.kind_id, row.namespace, intervals[row.id].workload_id, intervals[row.id].kept or 0)
        for row in rows
    ]
    kept = KeptLabels(connection, of.cluster, of.revision).read(places)

    def build(row: Any, labels: Any) -> ExaminedObject:
        top = intervals[row.id].workload or Workload(row.api_version, row.kind, row.namespace, row.name)
        names = row.api_version, row.kind, row.namespace, row.name, row.uid
        recorded = RecordedObject(row.id, *names, top, decode_pairs(row.labels), decode_pairs(row.annotations))
        own = sorted(matched[row.id])
        return ExaminedObject(
            recorded, labels, since.get(row.id), tuple(checks[number]._replace(reason=reason) for number, reason in own)
        )

    return tuple(map(build, rows, kept))


def _read_since(connection: Connection, ids: Sequence[int], of: PopulationOfScan) -> Mapping[int, Any]:
    """The end of the first scan that recorded each object; without those whose scan was pruned."""
    interval, times = POPULATION.c, read_scan_ends(connection, of.cluster)
    first: dict[int, int] = {}
    for portion in chunks(sorted(ids)):
        wanted = select(interval.object, func.min(interval.since)).where(is_among(connection, interval.object, portion))
        first.update(connection.execute(wanted.group_by(interval.object)).all())
    return {number: times[revision] for number, revision in first.items() if revision in times}


def _read_checks(connection: Connection, scan: int, kinds: Mapping[int, str]) -> Mapping[int, CheckIds]:
    """The checks that matched each object, given their kinds by id."""
    found: defaultdict[int, set[tuple[int, str]]] = defaultdict(set)
    wanted = {*kinds.values()}
    for line in read_set_ids(connection, scan):
        if line.kind in wanted:
            for pairs, ids in read_sets(connection, line).sets:
                for number in filter(ids.__contains__, kinds):
                    found[number].update(pairs)
    return {number: frozenset(found[number]) for number in kinds}


def _read_check_rows(connection: Connection, numbers: Collection[int]) -> Mapping[int, MatchedCheck]:
    rows = CHECKS.c
    wanted = select(CHECKS, rows.index.label("place"))
    return dict(_match(connection, wanted, numbers))


def _match(connection: Connection, wanted: Select[Any], numbers: Iterable[int]) -> Iterator[tuple[int, MatchedCheck]]:
    for portion in chunks(sorted(numbers)):
        for row in connection.execute(wanted.where(is_among(connection, CHECKS.c.id, portion))):
            check = Check(CheckKind(row.kind), row.place, row.expression)
            yield (
                row.id,
                MatchedCheck(row.language, row.policy, row.binding, row.param_namespace, row.param_name, check, ""),
            )


MOST: Final = 1_000
"""The objects of a workload that an explanation reads."""
