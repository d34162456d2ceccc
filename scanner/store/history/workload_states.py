"""The workloads of findings whose objects are gone: which objects each workload has now, and whether it exists.

A workload exists if the scan listed its kind, as objects to evaluate or as metadata, and found it. If the scan did not list its kind
to the end, then it exists as long as anything is left of it: an object, or a controller such as a ReplicaSet, whose top it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select

from scanner.model.population import GroupKind
from scanner.model.resource import api_group_of
from scanner.posture.workloads import Workloads
from scanner.store.database.engine import is_among, select_numbers
from scanner.store.history.resolution import WorkloadState
from scanner.store.rows.interning import Interner, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import FINDINGS, KINDS, OBJECTS, OPEN, POPULATION, SCANS, WORKLOADS


class _Top(NamedTuple):
    """A workload in all versions of its group."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        return self.group, self.kind


class _GoneFinding(NamedTuple):
    """A finding whose object is gone: its row, its problem, the kind of its object, and its workload."""

    number: int
    problem: int | None
    group_kind: GroupKind
    top: _Top


@dataclass(frozen=True, slots=True)
class ListedWorkloads:
    """The lists of a scan: the kinds listed to the end, as objects or as metadata, and the controllers that it read.

    `examined` returns whether the scan examined an object, by id, and `unserved` whether the cluster does not serve a kind.
    """

    kinds: frozenset[GroupKind]
    metadata_kinds: frozenset[GroupKind]
    controllers: Workloads
    is_examined: Callable[[int], bool]
    is_unserved: Callable[[GroupKind], bool]


class WorkloadStates:
    """Reads the states of the workloads of one cluster, after the lists of a scan were recorded."""

    def __init__(self, connection: Connection, cluster: int, scan: ListedWorkloads) -> None:
        """The connection is in a transaction that writes history."""
        self._connection = connection
        self._cluster = cluster
        self._scan = scan
        self._workload_ids = Interner(connection, WORKLOADS)
        rows = connection.execute(select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind)).all()
        self._kinds: Final = {row.id: (api_group_of(row.api_version), row.kind) for row in rows}
        self._versions: defaultdict[GroupKind, set[str]] = defaultdict(set)
        for row in rows:
            self._versions[self._kinds[row.id]].add(row.api_version)

    def read_states(self, numbers: Sequence[int], resolved: RowIdSet) -> dict[int, WorkloadState]:
        """The states for some rows of findings whose objects are gone; `resolved` are all open rows that the scan may resolve."""
        states: dict[int, WorkloadState] = {}
        broken = self._find_broken_problems(numbers, resolved)
        for portion in chunks(numbers):
            gone = list(self._read_gone(portion))
            tops = {finding.top for finding in gone}
            themselves = list(self._read_own_objects(tops))
            objects = self._find_objects(tops, themselves)
            existing = self._find_existing(tops, {top for top, _, _ in themselves}, objects)
            of_finding: dict[tuple[_Top, GroupKind, bool], WorkloadState] = {}
            for finding in gone:
                key = finding.top, finding.group_kind, finding.problem in broken
                if key not in of_finding:
                    exists, still_broken = finding.top in existing, finding.problem in broken
                    of_finding[key] = self._build_state(
                        finding.group_kind, objects[finding.top], exists=exists, still_broken=still_broken
                    )
                states[finding.number] = of_finding[key]
        return states

    def _build_state(
        self, kind: GroupKind, objects: Mapping[int, GroupKind], *, exists: bool, still_broken: bool
    ) -> WorkloadState:
        if self._scan.is_unserved(kind):
            return WorkloadState()
        return WorkloadState(tuple(objects), kind in objects.values(), exists, still_broken)

    def _read_gone(self, numbers: Sequence[int]) -> Iterator[_GoneFinding]:
        finding, interval = FINDINGS.c, POPULATION.c
        later = POPULATION.alias("later").c
        newest = (
            select(func.max(later.since)).where(later.object == finding.object).correlate(FINDINGS).scalar_subquery()
        )
        wanted = (
            select(finding.id, finding.problem, OBJECTS.c.kind, OBJECTS.c.namespace, OBJECTS.c.name)
            .add_columns(WORKLOADS.c.api_version, WORKLOADS.c.kind, WORKLOADS.c.namespace, WORKLOADS.c.name)
            .join(OBJECTS, OBJECTS.c.id == finding.object)
            .outerjoin(POPULATION, (interval.object == finding.object) & (interval.since == newest))
            .outerjoin(WORKLOADS, WORKLOADS.c.id == interval.workload)
            .where(is_among(self._connection, finding.id, numbers))
        )
        for number, problem, kind, namespace, name, api_version, *above in self._connection.execute(wanted):
            group_kind = self._kinds[kind]
            top = _Top(*group_kind, namespace, name) if api_version is None else _top_of(api_version, *above)
            yield _GoneFinding(number, problem, group_kind, top)

    def _find_broken_problems(self, numbers: Sequence[int], resolved: RowIdSet) -> frozenset[int]:
        """The problems of some rows that are open in other rows."""
        finding, gone = FINDINGS.c, FINDINGS.alias("gone").c
        problems = select(gone.problem).where(gone.id.in_(select_numbers(self._connection, numbers)))
        still_open = select(finding.id, finding.problem).where(finding.cluster == self._cluster, finding.until == OPEN)
        rows = self._connection.execute(
            still_open.where(finding.problem.in_(problems)).execution_options(yield_per=1000)
        )
        return frozenset(problem for number, problem in rows if number not in resolved)

    def _find_objects(
        self, tops: Collection[_Top], themselves: Iterable[tuple[_Top, int, GroupKind]]
    ) -> dict[_Top, dict[int, GroupKind]]:
        """The examined objects of workloads with their kinds, the workload's own object included."""
        objects: dict[_Top, dict[int, GroupKind]] = {top: {} for top in tops}
        for top, number, kind in chain(self._read_below(tops), themselves):
            if self._scan.is_examined(number):
                objects[top][number] = kind
        return objects

    def _read_below(self, tops: Iterable[_Top]) -> Iterator[tuple[_Top, int, GroupKind]]:
        """The objects of workloads that are not the workload itself, by the newest scans that could list them."""
        keys = {
            (api_version, top.kind, top.namespace, top.name, derived): top
            for top in tops
            for api_version in self._versions_of(top)
            for derived in (False, True)
        }
        of_row = {number: keys[key] for key, number in self._workload_ids.find_known(list(keys)).items()}  # type: ignore[index]
        interval = POPULATION.c
        for portion in chunks(list(of_row)):
            in_force = (
                interval.cluster == self._cluster,
                interval.until == OPEN,
                is_among(self._connection, interval.workload, portion),
            )
            for workload, number, kind in self._connection.execute(
                select(interval.workload, interval.object, interval.kind).where(*in_force)
            ):
                yield of_row[workload], number, self._kinds[kind]

    def _versions_of(self, top: _Top) -> Collection[str]:
        return self._versions.get(top.group_kind) or self._read_unlisted_versions(top.group_kind)

    def _read_unlisted_versions(self, kind: GroupKind) -> Collection[str]:
        """The API versions of a kind that no scan evaluated: those under which objects have named it as their controller."""
        top = WORKLOADS.c
        rows = self._connection.execute(select(top.api_version).where(top.kind == kind[1]).distinct()).scalars()
        versions = {api_version for api_version in rows if api_group_of(api_version) == kind[0]}
        self._versions[kind] = versions
        return versions

    def _read_own_objects(self, tops: Iterable[_Top]) -> Iterator[tuple[_Top, int, GroupKind]]:
        """The objects that are workloads themselves."""
        places: defaultdict[tuple[GroupKind, str], list[_Top]] = defaultdict(list)
        for top in tops:
            places[top.group_kind, top.namespace].append(top)
        identity = OBJECTS.c
        for (group_kind, namespace), several in places.items():
            kinds = [number for number, kind in self._kinds.items() if kind == group_kind]
            by_name = {top.name: top for top in several}
            for portion in chunks(list(by_name)):
                wanted = (
                    select(identity.id, identity.name)
                    .join(POPULATION, POPULATION.c.object == identity.id)
                    .where(identity.cluster == self._cluster, identity.kind.in_(kinds), identity.namespace == namespace)
                    .where(is_among(self._connection, identity.name, portion), POPULATION.c.until == OPEN)
                )
                for number, name in self._connection.execute(wanted):
                    yield by_name[name], number, group_kind

    def _find_existing(
        self, tops: set[_Top], there: set[_Top], objects: Mapping[_Top, Mapping[int, GroupKind]]
    ) -> Collection[_Top]:
        """The workloads that exist, of which some are `there` as objects.

        An object of a kind that this scan listed as metadata is `there` since an earlier scan, which evaluated the kind.
        """
        scan = self._scan
        there = {top for top in there if top.group_kind not in scan.metadata_kinds}
        not_listed = {top for top in tops - there if top.group_kind not in scan.kinds}
        there |= {_Top(*each) for each in scan.controllers.select_present(not_listed)}
        unknown = {top for top in not_listed - there if top.group_kind not in scan.metadata_kinds}
        there |= {top for top in unknown if objects[top]}
        return there | {_Top(*each) for each in scan.controllers.select_controlled(unknown - there)}


def _top_of(api_version: str, kind: str, namespace: str, name: str) -> _Top:
    return _Top(api_group_of(api_version), kind, namespace, name)


def read_workload_kinds(connection: Connection, scan_id: str) -> frozenset[GroupKind]:
    """The kinds of the workloads of the open findings in the history to which a running scan belongs, by its id."""
    finding, interval, top = FINDINGS.c, POPULATION.c, WORKLOADS.c
    cluster = select(SCANS.c.cluster).where(SCANS.c.id == scan_id).scalar_subquery()
    wanted = (
        select(top.api_version, top.kind)
        .join_from(FINDINGS, POPULATION, interval.object == finding.object)
        .join(WORKLOADS, top.id == interval.workload)
        .where(finding.cluster == cluster, finding.until == OPEN)
        .distinct()
    )
    return frozenset((api_group_of(api_version), kind) for api_version, kind in connection.execute(wanted))
