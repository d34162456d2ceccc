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


class _Unreadable(ValueError):
    """A JSON value that does not fit its Go type."""


class _Field(NamedTuple):
    """A field of a metric in v1: its place in v2, its type, and whether Go writes it even if it is empty."""

    name: str
    place: tuple[str, ...]
    read: _Read
    always: bool = False


def convert_to_v1(body: JsonObject) -> JsonObject:
    """An autoscaler of v2 in v1."""
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    metrics, current = as_list(spec.get("metrics")), as_list(status.get("currentMetrics"))
    others = [_metric_v1(metric, _TARGETS) for metric in metrics if _utilization(metric, "target") is None]
    notes: dict[str, Json] = {
        METRICS: others or None,
        _CURRENT: [_metric_v1(metric, _READINGS) for metric in current] or None,
        _BEHAVIOR: None if spec.get("behavior") is None else _internal_behavior(as_object(spec["behavior"])),
        _CONDITIONS: [_in_order(condition, _CONDITION) for condition in as_list(status.get("conditions"))] or None,
    }
    targets = (_utilization(metric, "target") for metric in metrics)
    readings = (_utilization(metric, "current") for metric in reversed(current))
    return {
        **body,
        "apiVersion": "autoscaling/v1",
        "metadata": _annotated(body, {name: _go_json(note) for name, note in notes.items() if note is not None}),
        "spec": {
            **_kept(spec, "scaleTargetRef", "minReplicas", "maxReplicas"),
            **_present(_CPU_TARGET, next((share for share in targets if share is not None), None)),
        },
        "status": {
            **_kept(status, "observedGeneration", "lastScaleTime"),
            "currentReplicas": status.get("currentReplicas", 0),
            "desiredReplicas": status.get("desiredReplicas", 0),
            **_present(_CPU_READING, next((share for share in readings if share is not None), None)),
        },
    }


def convert_to_v2(body: JsonObject) -> JsonObject:
    """An autoscaler of v1 in v2, which is the form of the internal type."""
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    notes = as_object(dig(body, "metadata", "annotations"))
    targets = [] if spec.get(_CPU_TARGET) is None else [_cpu("target", spec[_CPU_TARGET], type="Utilization")]
    others = _noted(notes, METRICS, lambda note: _listed(note, lambda metric: _metric_v2(metric, _TARGETS)))
    metrics = [*as_list(others), *targets] or [_cpu("target", _DEFAULT_UTILIZATION, type="Utilization")]
    readings = [] if status.get(_CPU_READING) is None else [_cpu("current", status[_CPU_READING])]
    current = _noted(notes, _CURRENT, lambda note: _listed(note, lambda metric: _metric_v2(metric, _READINGS)))
    conditions = _noted(
        notes, _CONDITIONS, lambda note: _listed(note, lambda one: _read_members(one, _CONDITION_TYPES))
    )
    return {
        **body,
        "apiVersion": "autoscaling/v2",
        "metadata": _annotated(body, {}),
        "spec": {
            **_kept(spec, "scaleTargetRef", "minReplicas", "maxReplicas"),
            "metrics": metrics,
            **_present("behavior", _noted(notes, _BEHAVIOR, _behavior) or None),
        },
        "status": {
            **_kept(status, "observedGeneration", "lastScaleTime"),
            **({"currentReplicas": status["currentReplicas"]} if status.get("currentReplicas") else {}),
            "desiredReplicas": status.get("desiredReplicas", 0),
            "currentMetrics": (readings or None) if current is None else current,
            **_present("conditions", conditions or None),
        },
    }


def _utilization(metric: Json, side: str) -> Json:
    """The share of the processor that a metric is about, None for any other metric."""
    if dig(metric, "type") != "Resource" or dig(metric, "resource", "name") != "cpu":
        return None
    return dig(metric, "resource", side, "averageUtilization")


def _cpu(side: str, share: Json, **more: Json) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", side: {**more, "averageUtilization": share}}}


def _metric_v1(metric: Json, sources: Mapping[str, tuple[_Field, ...]]) -> Json:
    """A metric of v2 as v1 writes it, in the order of its Go type."""
    written: dict[str, Json] = {"type": dig(metric, "type") or ""}
    for source, fields in sources.items():
        if dig(metric, source) is not None:
            values = [(field, dig(metric, source, *field.place)) for field in fields]
            written[source] = {
                field.name: _ZERO if value is None else _ordered(field, value)
                for field, value in values
                if field.always or value is not None
            }
    return written


def _ordered(field: _Field, value: Json) -> Json:
    return field.read(value) if field.read in (_reference, _selector) else value


def _metric_v2(metric: Json, sources: Mapping[str, tuple[_Field, ...]]) -> Json:
    """A metric of v1 in v2. Raises _Unreadable for a value of another type."""
    if not isinstance(metric, Mapping):
        raise _Unreadable
    read: dict[str, Json] = {"type": _text(_member(metric, "type"))}
    for source, fields in sources.items():
        given = _member(metric, source)
        if given is None:
            continue
        if not isinstance(given, Mapping):
            raise _Unreadable
        values = {field: _value_of(given, field) for field in fields}
        read[source] = _source_v2(source, values, is_target=sources is _TARGETS)
    return read


def _value_of(given: JsonObject, field: _Field) -> Json:
    value = _member(given, field.name)
    return field.read(value) if value is not None or field.always else None


def _source_v2(source: str, values: Mapping[_Field, Json], *, is_target: bool) -> Json:
    result: dict[str, Json] = {}
    for field, value in values.items():
        if value is not None:
            _put(result, field.place, value)
    if not is_target:
        result.setdefault("current", {})
        return result
    target = as_object(result.get("target"))
    if source == "object" and "averageValue" in target and target.get("value") == _ZERO:
        target = {name: value for name, value in target.items() if name != "value"}
    return {**result, "target": {"type": _type_of(source, target), **target}}


def _type_of(source: str, target: JsonObject) -> str:
    """The type of a target, which v1 does not have."""
    if source in ("resource", "containerResource"):
        return "AverageValue" if target.get("averageUtilization") is None else "Utilization"
    if source == "object":
        return "Value" if target.get("averageValue") is None else "AverageValue"
    return "AverageValue" if target.get("value") is None else "Value"


def _put(into: dict[str, Json], place: tuple[str, ...], value: Json) -> None:
    *above, name = place
    for step in above:
        below = into.setdefault(step, {})
        into = below if isinstance(below, dict) else {}
    into[name] = value


def _internal_behavior(behavior: JsonObject) -> Json:
    """The behaviour as the JSON of the internal type, whose fields have no names of their own."""
    return {name: _internal_rules(behavior.get(_lowered(name))) for name in ("ScaleUp", "ScaleDown")}


def _internal_rules(rules: Json) -> Json:
    if rules is None:
        return None
    given = as_object(rules)
    policies = given.get("policies")
    return {
        "StabilizationWindowSeconds": given.get("stabilizationWindowSeconds"),
        "SelectPolicy": given.get("selectPolicy"),
        "Policies": None
        if policies is None
        else [{name: as_object(policy).get(_lowered(name)) for name in _POLICY} for policy in as_list(policies)],
        "Tolerance": given.get("tolerance"),
    }


def _behavior(note: Json) -> Json:
    rules = _read_members(note, {"ScaleUp": _rules, "ScaleDown": _rules})
    return {_lowered(name): value for name, value in as_object(rules).items()}


def _rules(value: Json) -> Json:
    read = as_object(
        _read_members(
            value,
            {
                "StabilizationWindowSeconds": _int32,
                "SelectPolicy": _text,
                "Policies": lambda policies: _listed(policies, _policy),
                "Tolerance": _quantity,
            },
        )
    )
    return {_lowered(name): member for name, member in read.items() if member != []}


def _policy(value: Json) -> Json:
    if not isinstance(value, Mapping):
        raise _Unreadable
    return {_lowered(name): read(_member(value, name)) for name, read in _POLICY.items()}


def _lowered(name: str) -> str:
    return name[0].lower() + name[1:]


def _read_members(value: Json, types: Mapping[str, _Read]) -> Json:
    """The members of an object, each as its Go type; null is no member."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _Unreadable
    members = {name: _member(value, name) for name in types}
    return {name: types[name](member) for name, member in members.items() if member is not None}


def _member(value: JsonObject, name: str) -> Json:
    """A member as `encoding/json` finds it: upper and lower case are alike, and the last one prevails."""
    return next((value[key] for key in reversed([*value]) if key.casefold() == name.casefold()), None)


def _listed(value: Json, read: _Read) -> Json:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _Unreadable
    return [read({} if element is None else element) for element in value]


def _text(value: Json) -> Json:
    return _plain("string", value)


def _int32(value: Json) -> Json:
    return _plain("int32", value)


def _plain(kind: Plain, value: Json) -> Json:
    try:
        return read_plain(kind, kind, value)
    except Mismatch as error:
        raise _Unreadable from error


def _quantity(value: Json) -> Json:
    try:
        return read_special("Quantity", value)
    except (MalformedText, Mismatch) as error:
        raise _Unreadable from error


def _time(value: Json) -> Json:
    try:
        return read_special("Time", value)
    except (MalformedText, Mismatch) as error:
        raise _Unreadable from error


def _reference(value: Json) -> Json:
    read = as_object(_read_members(value, {"kind": _text, "name": _text, "apiVersion": _text}))
    return {"kind": read.get("kind", ""), "name": read.get("name", ""), **_kept(read, "apiVersion")}


def _selector(value: Json) -> Json:
    if not isinstance(value, Mapping):
        raise _Unreadable
    return _in_order(value, ("matchLabels", "matchExpressions"))


def _in_order(value: Json, names: tuple[str, ...]) -> Json:
    return _kept(as_object(value), *names)


def _noted(notes: JsonObject, name: str, read: _Read) -> Json:
    """The value of an annotation; None without one, and for a text that is not of its type."""
    if name not in notes:
        return None
    try:
        return read(orjson.loads(as_text(notes[name])))
    except (_Unreadable, orjson.JSONDecodeError):
        return None


def _annotated(body: JsonObject, notes: Mapping[str, Json]) -> JsonObject:
    """The metadata with other round-trip annotations; without any left, annotations are absent."""
    metadata = as_object(body.get("metadata"))
    others = {key: value for key, value in as_object(metadata.get("annotations")).items() if key not in ROUND_TRIP}
    annotations = {**others, **notes}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest


def _go_json(value: Json) -> str:
    """The JSON of a value as Go writes it, with escapes for what HTML reserves."""
    text = orjson.dumps(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _kept(source: JsonObject, *names: str) -> dict[str, Json]:
    return {name: source[name] for name in names if name in source}


def _present(name: str, value: Json) -> dict[str, Json]:
    return {} if value is None else {name: value}


_NAME = _Field("metricName", ("metric", "name"), _text, always=True)
_OWN_NAME = _Field("name", ("name",), _text, always=True)
_CONTAINER = _Field("container", ("container",), _text, always=True)
_METRIC_SELECTOR = _Field("selector", ("metric", "selector"), _selector)
_OBJECT = _Field("target", ("describedObject",), _reference, always=True)
_TARGET_SHARE = _Field("targetAverageUtilization", ("target", "averageUtilization"), _int32)
_TARGET_AVERAGE = _Field("targetAverageValue", ("target", "averageValue"), _quantity)
_SHARE = _Field("currentAverageUtilization", ("current", "averageUtilization"), _int32)
_AVERAGE = _Field("currentAverageValue", ("current", "averageValue"), _quantity, always=True)
_VALUE = _Field("currentValue", ("current", "value"), _quantity, always=True)
_TARGETS: Final[Mapping[str, tuple[_Field, ...]]] = {
    "object": (
        _OBJECT,
        _NAME,
        _Field("targetValue", ("target", "value"), _quantity, always=True),
        _METRIC_SELECTOR,
        _Field("averageValue", ("target", "averageValue"), _quantity),
    ),
    "pods": (_NAME, _TARGET_AVERAGE._replace(always=True), _METRIC_SELECTOR),
    "resource": (_OWN_NAME, _TARGET_SHARE, _TARGET_AVERAGE),
    "containerResource": (_OWN_NAME, _TARGET_SHARE, _TARGET_AVERAGE, _CONTAINER),
    "external": (
        _NAME,
        _METRIC_SELECTOR._replace(name="metricSelector"),
        _Field("targetValue", ("target", "value"), _quantity),
        _TARGET_AVERAGE,
    ),
}
"""The sources of a metric in a spec, in the order of the Go type of v1."""
_READINGS: Final[Mapping[str, tuple[_Field, ...]]] = {
    "object": (
        _OBJECT,
        _NAME,
        _VALUE,
        _METRIC_SELECTOR,
        _Field("averageValue", ("current", "averageValue"), _quantity),
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
_POLICY: Final[Mapping[str, _Read]] = {"Type": _text, "Value": _int32, "PeriodSeconds": _int32}
_CONDITION_TYPES: Final[Mapping[str, _Read]] = {
    "type": _text,
    "status": _text,
    "lastTransitionTime": _time,
    "reason": _text,
    "message": _text,
}
_CONDITION: Final = tuple(_CONDITION_TYPES)
