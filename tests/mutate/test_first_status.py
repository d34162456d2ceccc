"""The status of a new object, as validating policies of a kube-apiserver 1.36 printed it."""

from __future__ import annotations

from typing import Final

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import Json, JsonObject, as_object, dig
from scanner.mutate import registry
from scanner.mutate.decoding import decode_configuration

NO_AMOUNTS: Final[JsonObject] = {}
BOTH: Final[JsonObject] = {"cpu": "1", "memory": "1Gi"}


def create(api_version: str, kind: str, **fields: Json) -> JsonObject:
    """The new object as validating policies read it."""
    group, _, version = api_version.rpartition("/")
    schema = builtin_schemas()[group, version, kind]
    document: JsonObject = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}
    decoded = registry.decode(schema, decode_configuration(schema, document, {}, created=True))
    return registry.prepare_write(schema, None, decoded)


def pod(*resources: JsonObject, **spec: Json) -> JsonObject:
    """The status of a new pod whose containers have these resources."""
    containers: list[Json] = [{"name": f"c{at}", "image": "a", "resources": each} for at, each in enumerate(resources)]
    return as_object(create("v1", "Pod", spec={"containers": containers, **spec})["status"])


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("apps/v1", "Deployment", {}),
        ("apps/v1", "StatefulSet", {"availableReplicas": 0, "replicas": 0}),
        ("v1", "Service", {"loadBalancer": {}}),
        ("v1", "Namespace", {"phase": "Active"}),
        ("v1", "PersistentVolumeClaim", {}),
        ("v1", "PersistentVolume", {"phase": "Pending"}),
        ("autoscaling/v2", "HorizontalPodAutoscaler", {"currentMetrics": None, "desiredReplicas": 0}),
        (
            "policy/v1",
            "PodDisruptionBudget",
            {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
        ),
    ],
)
def test_a_status_of_the_client_is_replaced_by_the_first_one(api_version: str, kind: str, expected: JsonObject) -> None:
    """The zero of the Go type, with a phase where the strategy sets one."""
    assert expected == create(api_version, kind)["status"]
    assert expected == create(api_version, kind, status={"phase": "Bound", "replicas": 7})["status"]


def test_a_node_keeps_the_status_of_its_client() -> None:
    """A kubelet registers its node with the capacity."""
    assert "4" == dig(create("v1", "Node", status={"capacity": {"cpu": "4"}}), "status", "capacity", "cpu")


def test_a_kind_without_a_status_gets_none() -> None:
    """A rule may test for the field."""
    assert "status" not in create("v1", "ConfigMap")


def test_fields_that_go_always_writes_are_there() -> None:
    """Rules of a role are null, and a quota without a spec has an empty one."""
    assert (True, None) == ("rules" in (role := create("rbac.authorization.k8s.io/v1", "ClusterRole")), role["rules"])
    assert {} == create("v1", "ResourceQuota")["spec"]


def test_a_namespace_has_the_finalizer_of_the_server() -> None:
    """The finalizers of the client come first."""
    assert ["kubernetes"] == dig(create("v1", "Namespace"), "spec", "finalizers")
    assert ["a/b", "kubernetes"] == dig(create("v1", "Namespace", spec={"finalizers": ["a/b"]}), "spec", "finalizers")


@pytest.mark.parametrize(
    ("containers", "spec", "expected"),
    [
        ([NO_AMOUNTS], {}, "BestEffort"),
        ([{"limits": {"cpu": "0", "memory": "0"}}], {}, "BestEffort"),
        ([{"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}], {}, "BestEffort"),
        ([{"requests": {"cpu": "1"}}], {}, "Burstable"),
        ([{"limits": BOTH}], {}, "Guaranteed"),  # defaults copy limits to requests
        ([{"limits": BOTH, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], {}, "Guaranteed"),
        ([{"limits": BOTH, "requests": {"cpu": "500m"}}], {}, "Burstable"),
        ([{"limits": BOTH}, NO_AMOUNTS], {}, "Burstable"),
        ([NO_AMOUNTS], {"resources": {"limits": BOTH}}, "Guaranteed"),
        ([NO_AMOUNTS], {"resources": {"limits": {"cpu": "1"}}}, "Burstable"),
        ([{"limits": BOTH}], {"resources": {"requests": {"cpu": "2"}}}, "Burstable"),
    ],
)
def test_a_pod_has_its_phase_and_its_class_of_service(
    containers: list[JsonObject], spec: dict[str, Json], expected: str
) -> None:
    """Amounts of processors and memory above zero count; resources of the whole pod replace those of its containers."""
    assert {"phase": "Pending", "qosClass": expected} == pod(*containers, **spec)


def test_a_pod_with_scheduling_gates_has_a_condition() -> None:
    """It is written with the dates that Go writes."""
    [condition] = map(as_object, pod(NO_AMOUNTS, schedulingGates=[{"name": "a/b"}])["conditions"])  # type: ignore[arg-type]

    assert ("PodScheduled", "False", "SchedulingGated") == (
        condition["type"],
        condition["status"],
        condition["reason"],
    )
    assert {"lastProbeTime", "lastTransitionTime"} <= condition.keys()
