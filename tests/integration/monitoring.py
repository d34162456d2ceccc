"""Definitions of the kinds of the Prometheus Operator, with the fields that the chart sets.

Source of truth: the API reference of the operator, https://prometheus-operator.dev/docs/api-reference/api/. A field that is
missing here is unknown to the server, which refuses it with `fieldValidation=Strict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from scanner.model.json import Json, JsonObject

TEXT: Final[JsonObject] = {"type": "string"}
TEXTS: Final[JsonObject] = {"type": "array", "items": TEXT}
LABELS: Final[JsonObject] = {"type": "object", "additionalProperties": TEXT}
DURATION: Final[JsonObject] = {
    "type": "string",
    "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$",
}


def _fields(*required: str, **properties: Json) -> JsonObject:
    """The schema of an object."""
    return {"type": "object", "properties": properties, **({"required": [*required]} if required else {})}


def _several(item: JsonObject) -> JsonObject:
    """The schema of a list."""
    return {"type": "array", "items": item}


RULE: Final = _fields(
    "expr",
    alert=TEXT,
    record=TEXT,
    expr={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, TEXT]},
    **{"for": DURATION},
    labels=LABELS,
    annotations=LABELS,
)
GROUP: Final = _fields("name", name={"type": "string", "minLength": 1}, interval=DURATION, rules=_several(RULE))
GROUPS: Final[JsonObject] = {
    **_several(GROUP),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
ENDPOINT: Final = _fields(
    port=TEXT,
    path=TEXT,
    interval=DURATION,
    scrapeTimeout=DURATION,
    honorLabels={"type": "boolean"},
    authorization=_fields(type=TEXT, credentials=_fields("key", name=TEXT, key=TEXT)),
)
MONITOR: Final = _fields(
    "selector",
    "endpoints",
    selector=_fields(matchLabels=LABELS),
    namespaceSelector=_fields(any={"type": "boolean"}, matchNames=TEXTS),
    endpoints=_several(ENDPOINT),
)


def _definition(kind: str, plural: str, spec: JsonObject) -> JsonObject:
    """The definition of a kind in version v1."""
    schema = _fields("spec", apiVersion=TEXT, kind=TEXT, metadata={"type": "object"}, spec=spec)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


DEFINITIONS: Final[Sequence[JsonObject]] = (
    _definition("PrometheusRule", "prometheusrules", _fields(groups=GROUPS)),
    _definition("ServiceMonitor", "servicemonitors", MONITOR),
)
