"""Facts about the population of scans, and about the objects that checks evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.audit import object_sets, population
from scanner.audit.object_sets import InvocationKey, ObjectSets, SetKey
from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import VALIDATING
from scanner.model.population import Controller, PopulationMember, RecordedObject, Workload
from scanner.model.resource import Kind
from scanner.model.scans.scan import ClusterIdentity, CoverageState, PageResult, Scope
from scanner.store import SqlStore
from tests.store.databases import count as rows_of
from tests.store.made import CHECK, PROD, Round, finding, listed, page_of, statuses
from tests.thorough import examples

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
OTHER = Check(CheckKind.VALIDATION, 1, "true")
REPLICAS = InvocationKey(VALIDATING, "replicas", "replicas-binding")
PATTERNS = (
    ((CHECK, ""), (OTHER, "")),
    ((CHECK, ""), (OTHER, "notReached")),
    ((CHECK, "conditionFalse"), (OTHER, "conditionFalse")),
)


@dataclass(frozen=True)
class Pod:
    """An object, and the reasons of its checks; None if no policy matches it."""

    namespace: str
    name: str
    uid: str
    team: str
    controlled: bool
    pattern: int | None

    @property
    def examined(self) -> PopulationMember:
        """The record of the object."""
        controller = Controller("apps/v1", "ReplicaSet", "web-1", "") if self.controlled else None
        labels = (("team", self.team),) if self.team else ()
        return PopulationMember(PODS, self.namespace, self.name, self.uid, controller, labels)

    @property
    def recorded(self) -> tuple[object, ...]:
        """The record that the store must return."""
        top = Workload("apps/v1", "ReplicaSet", self.namespace, "web-1", derived=True)
        own = Workload("v1", "Pod", self.namespace, self.name)
        return self.namespace, self.name, self.uid, top if self.controlled else own, self.examined.labels


@dataclass(frozen=True)
class Listing:
    """A scan of pods, in pages of two."""

    pods: tuple[Pod, ...]
    scope: Scope
    state: CoverageState
    cluster: ClusterIdentity = PROD

    def record(self, store: SqlStore, number: int) -> None:
        """Store the scan."""
        each = Round(scope=self.scope, coverage=(listed("Pod", self.state),), cluster=self.cluster)
        store.begin(each.start(number))
        seen = [pod for pod in self.pods if not self.scope.namespaces or pod.namespace in self.scope.namespaces]
        for start in range(0, len(seen), 2):
            store.write_page(f"scan-{number}", page(seen[start : start + 2]))
        controllers = {("apps", "ReplicaSet"): True}
        store.finish(f"scan-{number}", replace(each.end(number), controllers=controllers))


def page(pods: Sequence[Pod]) -> PageResult:
    """A page of pods."""
    sets: dict[SetKey, int] = {}
    for place, pod in enumerate(pods):
        if pod.pattern is not None:
            key = SetKey(REPLICAS, PATTERNS[pod.pattern])
            sets[key] = sets.get(key, 0) | 1 << place
    records = [pod.examined for pod in pods]
    return PageResult(
        "v1",
        "Pod",
        1,
        len(pods),
        len(pods),
        examined=population.pack(records),
        sets=object_sets.pack(ObjectSets(len(pods), sets)),
    )


pods = st.builds(
    Pod,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["x", "y", "é"]),
    st.sampled_from(["1", "2"]),
    st.sampled_from(["", "red", "blue"]),
    st.booleans(),
    st.sampled_from([None, 0, 1, 2]),
)
listings = st.builds(
    Listing,
    st.lists(pods, max_size=7, unique_by=lambda pod: (pod.namespace, pod.name, pod.uid)).map(tuple),
    st.sampled_from([Scope(), Scope(), Scope(namespaces=("a",)), Scope(selector="team=red")]),
    st.sampled_from([CoverageState.LISTED, CoverageState.LISTED, CoverageState.PARTIAL]),
)
NUMBERS = count()
SETTINGS = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.long
@given(history=st.lists(listings, min_size=1, max_size=5))
@SETTINGS
def test_every_scan_keeps_the_objects_and_sets_of_its_day(store: SqlStore, history: list[Listing]) -> None:
    """Objects change, disappear and return; scans are narrowed or break off: the record is that of a naive replay."""
    first = next(NUMBERS)
    days: dict[int, tuple[Any, ...]] = {}
    for number, listing in zip(chain([first], NUMBERS), history, strict=False):
        replace(listing, cluster=ClusterIdentity(f"cluster-{first}")).record(store, number)
        seen = [
            pod for pod in listing.pods if not listing.scope.namespaces or pod.namespace in listing.scope.namespaces
        ]
        days[number] = (sorted((pod.recorded for pod in seen), key=str), naive_sets(seen))
        assert days[number] == day_of(store, number)
    assert days == {number: day_of(store, number) for number in days}


def day_of(store: SqlStore, number: int) -> tuple[Any, ...]:
    """The population of a scan, and the objects of each check by reason."""
    record = store.read_scan(f"scan-{number}")
    objects = list(record.population())
    sets = {
        (each.check, reason): names_in(objects, ids)
        for each in record.evaluated_objects()
        for reason, ids in {"": each.evaluated, **each.not_evaluated}.items()
        if ids.count
    }
    return sorted(((o.namespace, o.name, o.uid, o.workload, o.labels) for o in objects), key=str), sets


def names_in(objects: Sequence[RecordedObject], ids: Any) -> frozenset[tuple[str, str, str]]:
    """The identities of the objects of a set, whose count must be theirs."""
    names = frozenset((each.namespace, each.name, each.uid) for each in objects if each.id in ids)
    assert ids.count == len(names)
    return names


def naive_sets(seen: Sequence[Pod]) -> dict[tuple[Check, str], frozenset[tuple[str, str, str]]]:
    """The objects of each check by reason."""
    sets: dict[tuple[Check, str], set[tuple[str, str, str]]] = {}
    for pod in seen:
        for pair in PATTERNS[pod.pattern] if pod.pattern is not None else ():
            sets.setdefault(pair, set()).add((pod.namespace, pod.name, pod.uid))
    return {pair: frozenset(names) for pair, names in sets.items()}


POD = Pod("a", "x", "1", "red", controlled=False, pattern=0)
ALL = Listing((POD, replace(POD, name="y", controlled=True)), Scope(), CoverageState.LISTED)


def test_an_unchanged_cluster_adds_no_row(store: SqlStore, url: str) -> None:
    """Objects, intervals, workloads, labels and sets keep their rows."""
    tables = ("objects", "population", "workloads", "kept", "object_sets", "set_lists", "staged_pages")
    ALL.record(store, 1)
    before = {table: rows_of(url, table) for table in tables}
    ALL.record(store, 2)
    assert before == {table: rows_of(url, table) for table in tables}
    assert {"objects": 2, "population": 2, "workloads": 1, "kept": 1} == {
        table: before[table] for table in ("objects", "population", "workloads", "kept")
    }


def test_controllers_that_were_read_give_the_workload(store: SqlStore) -> None:
    """A Pod's ReplicaSet names its Deployment, which was read, so the workload is not derived."""
    each = Round(coverage=(listed("Pod"),))
    reference = Controller("apps/v1", "ReplicaSet", "web-1", "r")
    above = Controller("apps/v1", "Deployment", "web", "d")
    pod = PopulationMember(PODS, "a", "web-1-x", "p", reference)
    deployments = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
    store.begin(each.start(1))
    store.write_page("scan-1", replace(page([POD]), examined=population.pack([pod])))
    store.write_controllers("scan-1", SETS, population.pack([PopulationMember(SETS, "a", "web-1", "r", above)]))
    store.write_controllers("scan-1", deployments, population.pack([PopulationMember(deployments, "a", "web", "d")]))
    kinds = {("apps", "ReplicaSet"): True, ("apps", "Deployment"): True}
    store.finish("scan-1", replace(each.end(1), controllers=kinds))
    [recorded] = store.read_scan("scan-1").population()
    assert Workload("apps/v1", "Deployment", "a", "web") == recorded.workload


def test_a_check_that_becomes_not_auditable_resolves_nothing(store: SqlStore) -> None:
    """Its finding stays open and unchecked, while the finding of an object that is gone is resolved."""
    kept, gone = finding("kept"), finding("gone")
    Round((kept, gone)).record(store, 1)
    each = Round()
    store.begin(each.start(2))
    result = page_of((kept,), "apps/v1", "Deployment")
    key = SetKey(InvocationKey(kept.language, kept.policy, kept.binding), ((CHECK, "notAuditable"),))
    store.write_page("scan-2", replace(result, findings=(), places=(), sets=object_sets.pack(ObjectSets(1, {key: 1}))))
    scan = store.finish("scan-2", each.end(2))
    assert (1, 1) == (scan.resolved, store.read_scan("scan-2").unchecked)
    assert {"gone": "resolved"} == statuses(store.read_scan("scan-2").resolved_findings())
