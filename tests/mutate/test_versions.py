"""Objects in another of their versions, as a server converts them."""

from __future__ import annotations

from scanner.model.json import JsonObject
from scanner.model.resource import Kind
from scanner.mutate.versions import convert

V1 = Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
V2 = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
CORE = Kind("", "v1", "Event", "events", namespaced=True)
EVENTS = Kind("events.k8s.io", "v1", "Event", "events", namespaced=True)
POD = Kind("", "v1", "Pod", "pods", namespaced=True)
CPU: JsonObject = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
MEMORY: JsonObject = {
    "type": "Resource",
    "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
}
AUTOSCALER: JsonObject = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3, "metrics": [MEMORY, CPU]},
    "status": {"desiredReplicas": 0, "currentMetrics": None},
}


def test_the_cpu_target_is_a_field_in_v1_and_other_metrics_an_annotation() -> None:
    """Values without a field in v1 are kept as text."""
    converted = convert(AUTOSCALER, V1)
    assert converted is not None
    spec = {
        "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 80,
    }
    kept = '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]'
    assert spec == converted["spec"]
    assert {"currentReplicas": 0, "desiredReplicas": 0} == converted["status"]
    assert {
        "name": "web",
        "namespace": "shop",
        "annotations": {"autoscaling.alpha.kubernetes.io/metrics": kept},
    } == converted["metadata"]


def test_there_and_back_is_the_same_autoscaler() -> None:
    """v1 keeps all values."""
    older = convert(AUTOSCALER, V1)
    assert older is not None
    assert AUTOSCALER == convert(older, V2)


def test_an_event_has_other_field_names_in_its_own_group() -> None:
    """`note` is `message` and `regarding` is `involvedObject` in the core group; some empty fields are written."""
    event: JsonObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"name": "x"},
        "message": "m",
        "count": 2,
    }
    expected = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "regarding": {"name": "x"},
        "note": "m",
        "deprecatedCount": 2,
        "eventTime": None,
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    assert expected == convert(event, EVENTS)


def test_a_newer_event_is_a_core_event_too() -> None:
    """An event of events.k8s.io is converted into a core event."""
    event: JsonObject = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "m", "regarding": {"name": "x"}}
    expected = {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"name": "x"},
        "message": "m",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    assert expected == convert(event, CORE)


def test_an_object_of_the_kind_asked_for_stays_as_it_is() -> None:
    """The result is the same object."""
    assert AUTOSCALER is convert(AUTOSCALER, V2)


def test_what_only_a_server_can_convert_is_not_guessed() -> None:
    """Other kinds are not converted."""
    assert convert(AUTOSCALER, POD) is None
