"""The status of a new object, as validating policies read it.

Mirrors `PrepareForCreate` of the strategies in `pkg/registry`: all but that of nodes replace the status of the client, most of them by the
zero of its Go type, which is written with the fields that Go always writes. A pod has its phase, its class of service
(`ComputePodQOS`) and, with scheduling gates, a condition (`applySchedulingGatedCondition`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scanner.cel.functions.quantity import Quantity, add, compare, make_from_int, parse
from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, as_text, dig
from scanner.mutate.decoding import UnstructuredDecoder
from scanner.mutate.rewriting import Rewriting
from scanner.mutate.schema import Schema
from scanner.mutate.walk import drop_members

_NODE: Final = "io.k8s.api.core.v1.Node"
_POD: Final = "io.k8s.api.core.v1.Pod"
_PHASES: Final[Mapping[str, JsonObject]] = {
    "io.k8s.api.core.v1.Namespace": {"phase": "Active"},
    "io.k8s.api.core.v1.PersistentVolume": {"phase": "Pending"},
}
_GATED: Final[JsonObject] = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_COMPUTED: Final = frozenset(("cpu", "memory"))
_ZERO: Final = make_from_int(0)


def set_first_status(schema: Schema, body: JsonObject) -> JsonObject:
    """A decoded new object of a built-in kind with the status that its strategy gives it, if its type has one."""
    name = schema.resolve(schema.root).name
    if name == _NODE:
        return body
    status = _make_pod_status(as_object(body.get("spec"))) if name == _POD else _PHASES.get(name, EMPTY)
    return _set_status(schema, body, status)


def complete_status(schema: Schema, body: JsonObject) -> JsonObject:
    """A new object of a built-in kind as mutating policies read it: without a status it has the zero of its type."""
    return body if "status" in body else _set_status(schema, body, EMPTY)


def _set_status(schema: Schema, body: JsonObject, status: JsonObject) -> JsonObject:
    written = Rewriting(schema, UnstructuredDecoder()).rewrite({"status": status}, EMPTY)
    return {**drop_members(body, "status"), **written}


def _make_pod_status(spec: JsonObject) -> JsonObject:
    gated: JsonObject = {"conditions": [_GATED]} if as_list(spec.get("schedulingGates")) else {}
    return {"phase": "Pending", "qosClass": find_service_class(spec), **gated}


def find_service_class(spec: JsonObject) -> str:
    """The class of service of a pod: `Guaranteed`, `Burstable` or `BestEffort`.

    Resources of the pod, if it has any, count instead of those of its containers.
    """
    whole = spec.get("resources")
    containers = (*as_list(spec.get("containers")), *as_list(spec.get("initContainers")))
    parts = [as_object(whole)] if whole is not None else [as_object(dig(each, "resources")) for each in containers]
    requests, limits = (_add_up(part.get(name) for part in parts) for name in ("requests", "limits"))
    if not requests and not limits:
        return "BestEffort"
    # Limits of the pod count only if it has any; each container needs both.
    limited = [part.get("limits") for part in parts if whole is None or part.get("limits")]
    guaranteed = all(_COMPUTED == _add_up([each]).keys() for each in limited)
    same = all(name in limits and compare(limits[name], request) == 0 for name, request in requests.items())
    return "Guaranteed" if guaranteed and same and len(requests) == len(limits) else "Burstable"


def _add_up(amounts: Iterable[Json]) -> dict[str, Quantity]:
    """The sums of the amounts of processors and memory above zero."""
    sums: dict[str, Quantity] = {}
    for of_part in amounts:
        for name, text in as_object(of_part).items():
            amount = parse(as_text(text))
            if name in _COMPUTED and compare(amount, _ZERO) > 0:
                sums[name] = add(sums[name], amount) if name in sums else amount
    return sums
