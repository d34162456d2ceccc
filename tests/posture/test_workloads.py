"""Facts about the workload of an object."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.population import Controller, PopulationMember, Workload
from scanner.model.resource import Kind
from scanner.posture.workloads import LONGEST_CHAIN, Workloads, list_intermediate_kinds

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
JOBS = Kind("batch", "v1", "Job", "jobs", namespaced=True)
CRON_JOBS = Kind("batch", "v1", "CronJob", "cronjobs", namespaced=True)
DATABASES = Kind("db.example.com", "v1", "Database", "databases", namespaced=True)
FLEETS = Kind("db.example.com", "v1", "Fleet", "fleets", namespaced=False)
KINDS = (PODS, NODES, REPLICA_SETS, DEPLOYMENTS, JOBS, CRON_JOBS, DATABASES, FLEETS)
SCOPES = {(kind.group, kind.kind): kind.namespaced for kind in KINDS}
HASH = "6b7f9c"


def thing(kind: Kind, name: str, above: PopulationMember | None = None, *, uid: str | None = None, namespace: str = "shop") -> PopulationMember:  # fmt: skip
    """An object below a controller; its UID is its name by default."""
    return PopulationMember(
        kind=kind,
        namespace=namespace if kind.namespaced else "",
        name=name,
        uid=name if uid is None else uid,
        controller=reference(above) if above else None,
        template_hash=HASH if HASH in name or (above and HASH in above.name) else "",
    )


def reference(above: PopulationMember) -> Controller:
    """The reference to an object."""
    return Controller(above.kind.api_version, above.kind.kind, above.name, above.uid)


def resolved(examined: PopulationMember, *others: PopulationMember) -> Workload:
    """The workload of an object, given the other objects."""
    workloads = Workloads(SCOPES)
    for other in others:
        workloads.add(other)
    return workloads.find(examined)


DEPLOYMENT = thing(DEPLOYMENTS, "web")
REPLICA_SET = thing(REPLICA_SETS, f"web-{HASH}", DEPLOYMENT)
POD = thing(PODS, f"web-{HASH}-x2x4z", REPLICA_SET)
WEB = Workload("apps/v1", "Deployment", "shop", "web")
DERIVED_WEB = Workload("apps/v1", "Deployment", "shop", "web", derived=True)


def test_an_object_without_controller_is_its_own_workload() -> None:
    """Other objects have no effect."""
    assert Workload("v1", "Pod", "shop", "bare") == resolved(thing(PODS, "bare"), DEPLOYMENT)


def test_a_pod_belongs_to_the_deployment_above_its_replica_set() -> None:
    """The Pod has the workload of its ReplicaSet if both were read."""
    assert WEB == resolved(POD, REPLICA_SET, DEPLOYMENT)


def test_a_pod_belongs_to_the_cron_job_above_its_job() -> None:
    """The rule is the same for other kinds."""
    cron_job = thing(CRON_JOBS, "nightly")
    job = thing(JOBS, "nightly-29340", cron_job)
    pod = thing(PODS, "nightly-29340-abcde", job)
    assert Workload("batch/v1", "CronJob", "shop", "nightly") == resolved(pod, job, cron_job)


def test_a_deployment_of_an_operator_belongs_to_the_resource_of_the_operator() -> None:
    """The chain continues above the kinds of Kubernetes."""
    database = thing(DATABASES, "orders")
    deployment = thing(DEPLOYMENTS, "web", database)
    expected = Workload("db.example.com/v1", "Database", "shop", "orders")
    assert expected == resolved(POD, REPLICA_SET, deployment, database)


def test_a_cluster_scoped_controller_is_legal() -> None:
    """Upstream allows cluster-scoped owners of namespaced objects."""
    fleet = thing(FLEETS, "all")
    assert Workload("db.example.com/v1", "Fleet", "", "all") == resolved(thing(DATABASES, "orders", fleet), fleet)


@pytest.mark.parametrize("others", [(), (DEPLOYMENT,)])
def test_the_deployment_is_derived_when_the_replica_set_was_not_read(others: tuple[PopulationMember, ...]) -> None:
    """The name of a ReplicaSet is that of its Deployment and the hash of the template."""
    assert DERIVED_WEB == resolved(POD, *others)


def test_a_hash_that_does_not_end_the_name_derives_nothing() -> None:
    """The reference alone names the workload."""
    pod = thing(PODS, f"odd-{HASH}", thing(REPLICA_SETS, "odd"))
    assert Workload("apps/v1", "ReplicaSet", "shop", "odd", derived=True) == resolved(pod)


@pytest.mark.parametrize("name", [f"-{HASH}", HASH])
def test_a_name_that_is_only_a_hash_derives_nothing(name: str) -> None:
    """A Deployment has a name that is not empty."""
    pod = thing(PODS, "odd", thing(REPLICA_SETS, name))
    assert Workload("apps/v1", "ReplicaSet", "shop", name, derived=True) == resolved(pod)


def test_a_controller_that_was_not_read_is_the_workload_by_its_reference() -> None:
    """A permission is missing: the Deployment may have a controller that is not known."""
    assert DERIVED_WEB == resolved(POD, REPLICA_SET)


def test_a_cluster_scoped_controller_that_was_not_read_has_no_namespace() -> None:
    """The controller of a mirror pod is its Node."""
    assert Workload("v1", "Node", "", "node-1", derived=True) == resolved(thing(PODS, "etcd", thing(NODES, "node-1")))


def test_a_controller_of_a_kind_that_is_not_served_is_in_the_namespace_of_its_object() -> None:
    """The definition of the kind was deleted, so its scope is not known."""
    gone = Kind("gone.example.com", "v1", "Gone", "gones", namespaced=True)
    assert Workload("gone.example.com/v1", "Gone", "shop", "x", derived=True) == resolved(
        thing(PODS, "a", thing(gone, "x"))
    )


def test_a_controller_in_another_namespace_is_none() -> None:
    """The garbage collector treats such a reference like one to an absent owner."""
    elsewhere = thing(DEPLOYMENTS, "web", namespace="other")
    replica_set = thing(REPLICA_SETS, "web-rs", elsewhere)
    assert Workload("apps/v1", "ReplicaSet", "shop", "web-rs") == resolved(replica_set, elsewhere)


def test_a_namespaced_controller_of_a_cluster_scoped_object_is_none() -> None:
    """The reference is ignored, whether the controller was read or not."""
    database = thing(DATABASES, "orders")
    node = thing(NODES, "node-1", database)
    expected = Workload("v1", "Node", "", "node-1")
    assert (expected, expected) == (resolved(node), resolved(node, database))


def test_a_controller_that_was_created_again_is_not_followed() -> None:
    """The new object has another UID and perhaps another controller: the reference alone names the workload."""
    database = thing(DATABASES, "orders")
    again = thing(DEPLOYMENTS, "web", database, uid="another")
    assert DERIVED_WEB == resolved(REPLICA_SET, again, database)


def test_a_reference_with_a_false_name_is_no_controller() -> None:
    """A UID belongs to an object of a single name."""
    pod = thing(PODS, "a", thing(DEPLOYMENTS, "false", uid="web"))
    assert Workload("v1", "Pod", "shop", "a") == resolved(pod, DEPLOYMENT)


def test_a_uid_stands_for_objects_of_one_kind_only() -> None:
    """A reference to a kind finds no object of another kind."""
    pod = thing(PODS, "a", thing(DATABASES, "web"))
    assert Workload("db.example.com/v1", "Database", "shop", "web", derived=True) == resolved(pod, DEPLOYMENT)


def test_a_reference_in_another_version_finds_its_controller() -> None:
    """The workload has the version in which it was listed."""
    old = PopulationMember(PODS, "shop", "a", "a", Controller("apps/v1beta2", "Deployment", "web", "web"))
    assert WEB == resolved(old, DEPLOYMENT)


def test_controllers_without_uid_are_found_by_name() -> None:
    """Objects in files may have no UID."""
    deployment = thing(DEPLOYMENTS, "web", uid="")
    fleet = thing(FLEETS, "all", uid="")
    assert WEB == resolved(REPLICA_SET, deployment)
    assert Workload("db.example.com/v1", "Fleet", "", "all") == resolved(thing(PODS, "a", thing(FLEETS, "all")), fleet)


@pytest.mark.parametrize("start", ["b", "c", "d"])
def test_a_cycle_has_one_workload(start: str) -> None:
    """The objects of a cycle and those below it have the same workload."""
    names = {"b": "c", "c": "d", "d": "b"}
    cycle = [thing(DATABASES, name, thing(DATABASES, above)) for name, above in names.items()]
    below = thing(PODS, "pod", thing(DATABASES, start))
    inside = next(link for link in cycle if link.name == start)
    expected = Workload("db.example.com/v1", "Database", "shop", "b", derived=True)
    assert (expected, expected) == (resolved(below, *cycle), resolved(inside, *cycle))


def test_an_object_that_controls_itself_is_its_own_workload() -> None:
    """This is the shortest cycle."""
    itself = thing(DATABASES, "orders", thing(DATABASES, "orders"))
    expected = Workload("db.example.com/v1", "Database", "shop", "orders", derived=True)
    assert expected == resolved(itself, itself)


@pytest.mark.parametrize(
    ("length", "top", "derived"), [(LONGEST_CHAIN - 1, "0", False), (LONGEST_CHAIN + 3, "3", True)]
)
def test_a_chain_has_a_greatest_length(length: int, top: str, derived: bool) -> None:  # noqa: FBT001 -- a row of the table
    """Beyond it, the last controller that was followed is the workload."""
    chain = [thing(DATABASES, "0")]
    for number in range(1, length + 1):
        chain.append(thing(DATABASES, str(number), chain[-1]))
    expected = Workload("db.example.com/v1", "Database", "shop", top, derived)
    assert expected == resolved(chain[-1], *chain)


def test_objects_of_one_controller_that_is_none_are_their_own_workloads() -> None:
    """The cached result for a reference is not the workload of its first object."""
    elsewhere = thing(DEPLOYMENTS, "web", namespace="other")
    workloads = Workloads(SCOPES)
    workloads.add(elsewhere)
    names = [workloads.find(thing(REPLICA_SETS, name, elsewhere)).name for name in ("a", "b")]
    assert ["a", "b"] == names


def test_the_kinds_that_must_be_listed_are_those_that_were_not() -> None:
    """Objects without controller need no list, and a kind is listed only once."""
    references = [None, reference(REPLICA_SET), reference(DEPLOYMENT), reference(REPLICA_SET)]
    assert (("apps", "Deployment"), ("apps", "ReplicaSet")) == list_intermediate_kinds(references, [PODS])
    assert (("apps", "Deployment"),) == list_intermediate_kinds(references, [PODS, REPLICA_SETS])


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_the_order_of_objects_changes_no_workload(seed: int, count: int) -> None:
    """Chains, missing controllers and cycles have the same workloads in any order of the lists."""
    dice = random.Random(seed)
    names = [str(number) for number in range(count)]
    objects = [thing(DATABASES, name, dice.choice([None, thing(DATABASES, dice.choice([*names, "gone"]))])) for name in names]  # fmt: skip
    shuffled = dice.sample(objects, len(objects))
    assert [resolved(each, *objects) for each in objects] == [resolved(each, *shuffled) for each in objects]


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_an_object_and_its_controller_have_one_workload(seed: int, count: int) -> None:
    """This holds if the controller was read and the chain is not too long."""
    dice = random.Random(seed)
    names = [str(number) for number in range(count)]
    objects = [thing(DATABASES, name, dice.choice([None, thing(DATABASES, dice.choice(names))])) for name in names]
    by_name = {each.name: each for each in objects}
    for each in objects:
        if each.controller is not None:
            above = by_name[each.controller.name]
            assert resolved(above, *objects) == resolved(each, *objects)


def test_memory_does_not_grow_with_the_workloads() -> None:
    """A cluster may have a hundred thousand controllers that were not read."""
    workloads = Workloads(SCOPES)
    held: list[int] = []
    tracemalloc.start()
    for start in (0, 10_000):
        for number in range(start, start + 10_000):
            pod = thing(PODS, f"pod-{number}")._replace(
                controller=Controller("apps/v1", "ReplicaSet", f"rs-{number}", "")
            )
            assert f"rs-{number}" == workloads.find(pod).name
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()

    assert held[1] < 1.2 * held[0]
