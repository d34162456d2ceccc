"""Converts a HorizontalPodAutoscaler between autoscaling/v2 and v1, whose annotations hold what v1 has no field for.

Mirrors `pkg/apis/autoscaling/v1/conversion.go` of Kubernetes 1.36. The internal type has the fields of v2. An annotation is the JSON
of the Go types of v1, and for the behaviour of the internal type; one that cannot be read as that type is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import orjson

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.mutate.goread import MalformedText, Mismatch, read_plain, read_special
from scanner.mutate.gotypes import Plain

PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS, _CURRENT = f"{PREFIX}metrics", f"{PREFIX}current-metrics"
_CONDITIONS, _BEHAVIOR = f"{PREFIX}conditions", f"{PREFIX}behavior"
ROUND_TRIP: Final = (
    METRICS,
    _CURRENT,
    _CONDITIONS,
    _BEHAVIOR,
    f"{PREFIX}scale-down-tolerance",
    f"{PREFIX}scale-up-tolerance",
)
"""The annotations that a conversion drops, and writes anew for v1."""
STATUS_NOTES: Final = (_CURRENT, _CONDITIONS)
"""The annotations for what v1 has no field for in its status."""
_CPU_TARGET, _CPU_READING = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"
_DEFAULT_UTILIZATION: Final = 80
_ZERO: Final = "0"
_Read = Callable[[Json], Json]


class _UnfitValue(ValueError):
    """A JSON value that does not fit its Go type."""


class _MetricField(NamedTuple):
    """A field of a metric in v1: its place in v2, its type, and whether Go writes it even if it is empty."""

    name: str
    place: tuple[str, ...]
    read: _Read
    always: bool = False


def convert_to_v1(body: JsonObject) -> JsonObject:
    """An autoscaler of v2 in v1."""
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    metrics, current = as_list(spec.get("metrics")), as_list(status.get("currentMetrics"))
    others = [
        _convert_metric_to_v1(metric, _TARGETS) for metric in metrics if _get_utilization(metric, "target") is None
    ]
    notes: dict[str, Json] = {
        METRICS: others or None,
        _CURRENT: [_convert_metric_to_v1(metric, _READINGS) for metric in current] or None,
        _BEHAVIOR: None if spec.get("behavior") is None else _write_internal_behavior(as_object(spec["behavior"])),
        _CONDITIONS: [_order_members(condition, _CONDITION) for condition in as_list(status.get("conditions"))] or None,
    }
    targets = (_get_utilization(metric, "target") for metric in metrics)
    readings = (_get_utilization(metric, "current") for metric in reversed(current))
    return {
        **body,
        "apiVersion": "autoscaling/v1",
        "metadata": _replace_notes(
            body, {name: _write_go_json(note) for name, note in notes.items() if note is not None}
        ),
        "spec": {
            **_keep_members(spec, "scaleTargetRef", "minReplicas", "maxReplicas"),
            **_make_member(_CPU_TARGET, next((share for share in targets if share is not None), None)),
        },
        "status": {
            **_keep_members(status, "observedGeneration", "lastScaleTime"),
            "currentReplicas": status.get("currentReplicas", 0),
            "desiredReplicas": status.get("desiredReplicas", 0),
            **_make_member(_CPU_READING, next((share for share in readings if share is not None), None)),
        },
    }


def convert_to_v2(body: JsonObject) -> JsonObject:
    """An autoscaler of v1 in v2, which is the form of the internal type."""
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    notes = as_object(dig(body, "metadata", "annotations"))
    targets = (
        [] if spec.get(_CPU_TARGET) is None else [_make_cpu_metric("target", spec[_CPU_TARGET], type="Utilization")]
    )
    others = _read_note(
        notes, METRICS, lambda note: _read_list(note, lambda metric: _convert_metric_to_v2(metric, _TARGETS))
    )
    metrics = [*as_list(others), *targets] or [_make_cpu_metric("target", _DEFAULT_UTILIZATION, type="Utilization")]
    readings = [] if status.get(_CPU_READING) is None else [_make_cpu_metric("current", status[_CPU_READING])]
    current = _read_note(
        notes, _CURRENT, lambda note: _read_list(note, lambda metric: _convert_metric_to_v2(metric, _READINGS))
    )
    conditions = _read_note(
        notes, _CONDITIONS, lambda note: _read_list(note, lambda one: _read_members(one, _CONDITION_TYPES))
    )
    return {
        **body,
        "apiVersion": "autoscaling/v2",
        "metadata": _replace_notes(body, {}),
        "spec": {
            **_keep_members(spec, "scaleTargetRef", "minReplicas", "maxReplicas"),
            "metrics": metrics,
            **_make_member("behavior", _read_note(notes, _BEHAVIOR, _read_behavior) or None),
        },
        "status": {
            **_keep_members(status, "observedGeneration", "lastScaleTime"),
            **({"currentReplicas": status["currentReplicas"]} if status.get("currentReplicas") else {}),
            "desiredReplicas": status.get("desiredReplicas", 0),
            "currentMetrics": (readings or None) if current is None else current,
            **_make_member("conditions", conditions or None),
        },
    }


def _get_utilization(metric: Json, side: str) -> Json:
    """The share of the processor that a metric is about, None for any other metric."""
    if dig(metric, "type") != "Resource" or dig(metric, "resource", "name") != "cpu":
        return None
    return dig(metric, "resource", side, "averageUtilization")


def _make_cpu_metric(side: str, share: Json, **more: Json) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", side: {**more, "averageUtilization": share}}}


def _convert_metric_to_v1(metric: Json, sources: Mapping[str, tuple[_MetricField, ...]]) -> Json:
    """A metric of v2 as v1 writes it, in the order of its Go type."""
    converted: dict[str, Json] = {"type": dig(metric, "type") or ""}
    for source, fields in sources.items():
        if dig(metric, source) is not None:
            values = [(field, dig(metric, source, *field.place)) for field in fields]
            converted[source] = {
                field.name: _ZERO if value is None else _order_field(field, value)
                for field, value in values
                if field.always or value is not None
            }
    return converted


def _order_field(field: _MetricField, value: Json) -> Json:
    return field.read(value) if field.read in (_read_reference, _read_selector) else value


def _convert_metric_to_v2(metric: Json, sources: Mapping[str, tuple[_MetricField, ...]]) -> Json:
    """A metric of v1 in v2. Raises _Unreadable for a value of another type."""
    if not isinstance(metric, Mapping):
        raise _UnfitValue
    converted: dict[str, Json] = {"type": _read_text(_get_member(metric, "type"))}
    for source, fields in sources.items():
        members = _get_member(metric, source)
        if members is None:
            continue
        if not isinstance(members, Mapping):
            raise _UnfitValue
        values = {field: _read_field(members, field) for field in fields}
        converted[source] = _convert_source_to_v2(source, values, is_target=sources is _TARGETS)
    return converted


def _read_field(members: JsonObject, field: _MetricField) -> Json:
    value = _get_member(members, field.name)
    return field.read(value) if value is not None or field.always else None


def _convert_source_to_v2(source: str, values: Mapping[_MetricField, Json], *, is_target: bool) -> Json:
    result: dict[str, Json] = {}
    for field, value in values.items():
        if value is not None:
            _set_at(result, field.place, value)
    if not is_target:
        result.setdefault("current", {})
        return result
    target = as_object(result.get("target"))
    if source == "object" and "averageValue" in target and target.get("value") == _ZERO:
        target = {name: value for name, value in target.items() if name != "value"}
    return {**result, "target": {"type": _find_target_type(source, target), **target}}


def _find_target_type(source: str, target: JsonObject) -> str:
    """The type of a target, which v1 does not have."""
    if source in ("resource", "containerResource"):
        return "AverageValue" if target.get("averageUtilization") is None else "Utilization"
    if source == "object":
        return "Value" if target.get("averageValue") is None else "AverageValue"
    return "AverageValue" if target.get("value") is None else "Value"


def _set_at(into: dict[str, Json], place: tuple[str, ...], value: Json) -> None:
    *above, name = place
    for step in above:
        below = into.setdefault(step, {})
        into = below if isinstance(below, dict) else {}
    into[name] = value


def _write_internal_behavior(behavior: JsonObject) -> Json:
    """The behaviour as the JSON of the internal type, whose fields have no names of their own."""
    return {name: _write_internal_rules(behavior.get(_lower_first(name))) for name in ("ScaleUp", "ScaleDown")}


def _write_internal_rules(rules: Json) -> Json:
    if rules is None:
        return None
    members = as_object(rules)
    policies = members.get("policies")
    return {
        "StabilizationWindowSeconds": members.get("stabilizationWindowSeconds"),
        "SelectPolicy": members.get("selectPolicy"),
        "Policies": None
        if policies is None
        else [{name: as_object(policy).get(_lower_first(name)) for name in _POLICY} for policy in as_list(policies)],
        "Tolerance": members.get("tolerance"),
    }


def _read_behavior(note: Json) -> Json:
    rules = _read_members(note, {"ScaleUp": _read_rules, "ScaleDown": _read_rules})
    return {_lower_first(name): value for name, value in as_object(rules).items()}


def _read_rules(value: Json) -> Json:
    members = as_object(
        _read_members(
            value,
            {
                "StabilizationWindowSeconds": _read_int32,
                "SelectPolicy": _read_text,
                "Policies": lambda policies: _read_list(policies, _read_policy),
                "Tolerance": _read_quantity,
            },
        )
    )
    return {_lower_first(name): member for name, member in members.items() if member != []}


def _read_policy(value: Json) -> Json:
    if not isinstance(value, Mapping):
        raise _UnfitValue
    return {_lower_first(name): read(_get_member(value, name)) for name, read in _POLICY.items()}


def _lower_first(name: str) -> str:
    return name[0].lower() + name[1:]


def _read_members(value: Json, types: Mapping[str, _Read]) -> Json:
    """The members of an object, each as its Go type; null is no member."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _UnfitValue
    members = {name: _get_member(value, name) for name in types}
    return {name: types[name](member) for name, member in members.items() if member is not None}


def _get_member(value: JsonObject, name: str) -> Json:
    """A member as `encoding/json` finds it: upper and lower case are alike, and the last one prevails."""
    return next((value[key] for key in reversed([*value]) if key.casefold() == name.casefold()), None)


def _read_list(value: Json, read: _Read) -> Json:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _UnfitValue
    return [read({} if element is None else element) for element in value]


def _read_text(value: Json) -> Json:
    return _read_plain("string", value)


def _read_int32(value: Json) -> Json:
    return _read_plain("int32", value)


def _read_plain(kind: Plain, value: Json) -> Json:
    try:
        return read_plain(kind, kind, value)
    except Mismatch as error:
        raise _UnfitValue from error


def _read_quantity(value: Json) -> Json:
    try:
        return read_special("Quantity", value)
    except (MalformedText, Mismatch) as error:
        raise _UnfitValue from error


def _read_time(value: Json) -> Json:
    try:
        return read_special("Time", value)
    except (MalformedText, Mismatch) as error:
        raise _UnfitValue from error


def _read_reference(value: Json) -> Json:
    members = as_object(_read_members(value, {"kind": _read_text, "name": _read_text, "apiVersion": _read_text}))
    return {"kind": members.get("kind", ""), "name": members.get("name", ""), **_keep_members(members, "apiVersion")}


def _read_selector(value: Json) -> Json:
    if not isinstance(value, Mapping):
        raise _UnfitValue
    return _order_members(value, ("matchLabels", "matchExpressions"))


def _order_members(value: Json, names: tuple[str, ...]) -> Json:
    return _keep_members(as_object(value), *names)


def _read_note(notes: JsonObject, name: str, read: _Read) -> Json:
    """The value of an annotation; None without one, and for a text that is not of its type."""
    if name not in notes:
        return None
    try:
        return read(orjson.loads(as_text(notes[name])))
    except (_UnfitValue, orjson.JSONDecodeError):
        return None


def _replace_notes(body: JsonObject, notes: Mapping[str, Json]) -> JsonObject:
    """The metadata with other round-trip annotations; without any left, annotations are absent."""
    metadata = as_object(body.get("metadata"))
    others = {key: value for key, value in as_object(metadata.get("annotations")).items() if key not in ROUND_TRIP}
    annotations = {**others, **notes}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest


def _write_go_json(value: Json) -> str:
    """The JSON of a value as Go writes it, with escapes for what HTML reserves."""
    text = orjson.dumps(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _keep_members(source: JsonObject, *names: str) -> dict[str, Json]:
    return {name: source[name] for name in names if name in source}


def _make_member(name: str, value: Json) -> dict[str, Json]:
    return {} if value is None else {name: value}


_NAME = _MetricField("metricName", ("metric", "name"), _read_text, always=True)
_OWN_NAME = _MetricField("name", ("name",), _read_text, always=True)
_CONTAINER = _MetricField("container", ("container",), _read_text, always=True)
_METRIC_SELECTOR = _MetricField("selector", ("metric", "selector"), _read_selector)
_OBJECT = _MetricField("target", ("describedObject",), _read_reference, always=True)
_TARGET_SHARE = _MetricField("targetAverageUtilization", ("target", "averageUtilization"), _read_int32)
_TARGET_AVERAGE = _MetricField("targetAverageValue", ("target", "averageValue"), _read_quantity)
_SHARE = _MetricField("currentAverageUtilization", ("current", "averageUtilization"), _read_int32)
_AVERAGE = _MetricField("currentAverageValue", ("current", "averageValue"), _read_quantity, always=True)
_VALUE = _MetricField("currentValue", ("current", "value"), _read_quantity, always=True)
_TARGETS: Final[Mapping[str, tuple[_MetricField, ...]]] = {
    "object": (
        _OBJECT,
        _NAME,
        _MetricField("targetValue", ("target", "value"), _read_quantity, always=True),
        _METRIC_SELECTOR,
        _MetricField("averageValue", ("target", "averageValue"), _read_quantity),
    ),
    "pods": (_NAME, _TARGET_AVERAGE._replace(always=True), _METRIC_SELECTOR),
    "resource": (_OWN_NAME, _TARGET_SHARE, _TARGET_AVERAGE),
    "containerResource": (_OWN_NAME, _TARGET_SHARE, _TARGET_AVERAGE, _CONTAINER),
    "external": (
        _NAME,
        _METRIC_SELECTOR._replace(name="metricSelector"),
        _MetricField("targetValue", ("target", "value"), _read_quantity),
        _TARGET_AVERAGE,
    ),
}
"""The sources of a metric in a spec, in the order of the Go type of v1."""
_READINGS: Final[Mapping[str, tuple[_MetricField, ...]]] = {
    "object": (
        _OBJECT,
        _NAME,
        _VALUE,
        _METRIC_SELECTOR,
        _MetricField("averageValue", ("current", "averageValue"), _read_quantity),
    ),
    "pods": (_NAME, _AVERAGE, _METRIC_SELECTOR),
    "resource": (_OWN_NAME, _SHARE, _AVERAGE),
    "containerResource": (_OWN_NAME, _SHARE, _AVERAGE, _CONTAINER),
    "external": (
        _NAME,
        _METRIC_SELECTOR._replace(name="metricSelector"),
        _VALUE,
        _AVERAGE._replace(always=False),
    ),
}
"""The sources of a metric in a status."""
_POLICY: Final[Mapping[str, _Read]] = {"Type": _read_text, "Value": _read_int32, "PeriodSeconds": _read_int32}
_CONDITION_TYPES: Final[Mapping[str, _Read]] = {
    "type": _read_text,
    "status": _read_text,
    "lastTransitionTime": _read_time,
    "reason": _read_text,
    "message": _read_text,
}
_CONDITION: Final = tuple(_CONDITION_TYPES)
