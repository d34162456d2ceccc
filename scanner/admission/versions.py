"""Converts an object to another of its kinds, for the few kinds whose conversion needs no server.

Source of truth: `pkg/apis/autoscaling/v1` and `pkg/apis/events/v1` conversions of Kubernetes 1.36, and their JSON field
tags: a field that Go writes although it is empty is written here too. A CustomResourceDefinition without a conversion
webhook changes the apiVersion alone; the caller decides whether a definition has a webhook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import orjson

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Kind

_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_ROUND_TRIP: Final = (_METRICS, _CURRENT, _CONDITIONS, _BEHAVIOR)


def convert(body: JsonObject, kind: Kind) -> JsonObject | None:
    """The object in version `kind`, the same object if it has this version, or None if only a server can convert it.

    Mirrors the conversions of `pkg/apis/autoscaling/v1` and of `pkg/apis/events/v1`.
    """
    written = (as_text(body.get("apiVersion")), as_text(body.get("kind")))
    if written == (kind.api_version, kind.kind):
        return body
    conversion = _CONVERSIONS.get(kind.kind, {}).get((written[0], kind.api_version))
    return conversion(body) if conversion and written[1] == kind.kind else None


def _is_cpu_target(metric: Json) -> bool:
    return (
        dig(metric, "type") == "Resource"
        and dig(metric, "resource", "name") == "cpu"
        and dig(metric, "resource", "target", "averageUtilization") is not None
    )


def _is_cpu_reading(metric: Json) -> bool:
    return (
        dig(metric, "type") == "Resource"
        and dig(metric, "resource", "name") == "cpu"
        and dig(metric, "resource", "current", "averageUtilization") is not None
    )


def _autoscaler_v1(body: JsonObject) -> JsonObject:
    """Keep fields that v1 does not have in annotations."""
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    metrics = as_list(spec.get("metrics"))
    others = [_metric_v1(metric, "target") for metric in metrics if not _is_cpu_target(metric)]
    extra: dict[str, Json] = {}
    if others:
        extra[_METRICS] = _text(others)
    if status.get("currentMetrics") is not None:
        readings = [_metric_v1(metric, "current") for metric in as_list(status["currentMetrics"])]
        extra[_CURRENT] = _text(readings)
    if status.get("conditions") is not None:
        extra[_CONDITIONS] = _text(status["conditions"])
    if spec.get("behavior") is not None:
        extra[_BEHAVIOR] = _text(spec["behavior"])
    target = next((metric for metric in metrics if _is_cpu_target(metric)), None)
    reading = next((m for m in as_list(status.get("currentMetrics")) if _is_cpu_reading(m)), None)
    return {
        **body,
        "apiVersion": "autoscaling/v1",
        "metadata": _annotated(body, extra),
        "spec": {
            **_kept(spec, "scaleTargetRef", "minReplicas", "maxReplicas"),
            **_present("targetCPUUtilizationPercentage", dig(target, "resource", "target", "averageUtilization")),
        },
        "status": {
            **_kept(status, "observedGeneration", "lastScaleTime"),
            "currentReplicas": status.get("currentReplicas", 0),
            "desiredReplicas": status.get("desiredReplicas", 0),
            **_present("currentCPUUtilizationPercentage", dig(reading, "resource", "current", "averageUtilization")),
        },
    }


def _autoscaler_v2(body: JsonObject) -> JsonObject:
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    kept = as_object(dig(body, "metadata", "annotations"))
    percentage = spec.get("targetCPUUtilizationPercentage")
    metrics = [_metric_v2(metric, "target") for metric in as_list(_value(kept.get(_METRICS)))]
    if percentage is not None:
        target: Json = {"type": "Utilization", "averageUtilization": percentage}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}, *metrics]
    readings = _value(kept.get(_CURRENT))
    return {
        **body,
        "apiVersion": "autoscaling/v2",
        "metadata": _annotated(body, {}),
        "spec": {
            **_kept(spec, "scaleTargetRef", "minReplicas", "maxReplicas"),
            **({"metrics": metrics} if metrics else {}),
            **_present("behavior", _value(kept.get(_BEHAVIOR))),
        },
        "status": {
            **_kept(status, "observedGeneration", "lastScaleTime"),
            **({"currentReplicas": status["currentReplicas"]} if status.get("currentReplicas") else {}),
            "desiredReplicas": status.get("desiredReplicas", 0),
            "currentMetrics": None if readings is None else [_metric_v2(m, "current") for m in as_list(readings)],
            **_present("conditions", _value(kept.get(_CONDITIONS))),
        },
    }


# In v1's annotations the target and the current value of a metric are flat fields, named after the kind of value.
_FLAT: Final = {
    "averageUtilization": {"target": "targetAverageUtilization", "current": "currentAverageUtilization"},
    "averageValue": {"target": "targetAverageValue", "current": "currentAverageValue"},
    "value": {"target": "targetValue", "current": "currentValue"},
}
_SOURCES: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _metric_v1(metric: Json, side: str) -> Json:
    name = _SOURCES.get(as_text(dig(metric, "type")), "")
    source = as_object(dig(metric, name))
    values = as_object(source.get(side))
    flat = {_FLAT[key][side]: value for key, value in values.items() if key in _FLAT}
    rest = {key: value for key, value in source.items() if key != side}
    return {**as_object(metric), name: {**rest, **flat}}


def _metric_v2(metric: Json, side: str) -> Json:
    name = _SOURCES.get(as_text(dig(metric, "type")), "")
    source = as_object(dig(metric, name))
    nested = {key: source[names[side]] for key, names in _FLAT.items() if names[side] in source}
    flat = {names[side] for names in _FLAT.values()}
    kinds = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}
    typed: dict[str, Json] = {"type": kinds[next(iter(nested))]} if side == "target" and nested else {}
    rest = {key: value for key, value in source.items() if key not in flat}
    return {**as_object(metric), name: {**rest, side: {**typed, **nested}}}


def _annotated(body: JsonObject, extra: Mapping[str, Json]) -> JsonObject:
    """The metadata with other round-trip annotations; without any left, annotations are absent."""
    metadata = as_object(body.get("metadata"))
    annotations_before = as_object(metadata.get("annotations"))
    annotations = {**{key: value for key, value in annotations_before.items() if key not in _ROUND_TRIP}, **extra}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest


def _text(value: Json) -> str:
    return orjson.dumps(value).decode()


def _value(text: Json) -> Json:
    if not isinstance(text, str):
        return None
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value


def _kept(source: JsonObject, *names: str) -> dict[str, Json]:
    return {name: source[name] for name in names if name in source}


def _present(name: str, value: Json) -> dict[str, Json]:
    return {} if value is None else {name: value}


_CORE_TO_EVENTS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_EVENTS_TO_CORE: Final = {new: old for old, new in _CORE_TO_EVENTS.items()}
_CORE_ALWAYS: Final[JsonObject] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_EVENTS_ALWAYS: Final[JsonObject] = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}
# One version writes these fields although they are empty, the other omits them.
_EVENTS_OMIT: Final = ("reportingController", "reportingInstance")


def _core_event(body: JsonObject) -> JsonObject:
    renamed = {_EVENTS_TO_CORE.get(key, key): value for key, value in body.items()}
    return {**_CORE_ALWAYS, **renamed, "apiVersion": "v1"}


def _events_event(body: JsonObject) -> JsonObject:
    renamed = {_CORE_TO_EVENTS.get(key, key): value for key, value in body.items()}
    kept = {key: value for key, value in renamed.items() if value or key not in _EVENTS_OMIT}
    return {**_EVENTS_ALWAYS, **kept, "apiVersion": "events.k8s.io/v1"}


_Conversion = Callable[[JsonObject], JsonObject]
_CONVERSIONS: Final[Mapping[str, Mapping[tuple[str, str], _Conversion]]] = {
    "HorizontalPodAutoscaler": {
        ("autoscaling/v2", "autoscaling/v1"): _autoscaler_v1,
        ("autoscaling/v1", "autoscaling/v2"): _autoscaler_v2,
    },
    "Event": {("v1", "events.k8s.io/v1"): _events_event, ("events.k8s.io/v1", "v1"): _core_event},
}
