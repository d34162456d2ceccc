"""Converts an object to another of its kinds: the built-in kinds that a server serves in several versions.

Source of truth: `pkg/apis/events/v1` and `pkg/apis/resource/v1beta1` conversions of Kubernetes 1.36, and
their JSON field tags: a field that Go writes although it is empty is written here too. The versions of the kinds in `_ALIKE` differ in
the apiVersion alone. So do those of a CustomResourceDefinition without a conversion webhook; the caller decides whether a
definition has a webhook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text
from scanner.model.resource import Kind, Resource, resource_of
from scanner.mutate.autoscalers import convert_to_v1, convert_to_v2
from scanner.mutate.gotypes import is_known

_Conversion: TypeAlias = Callable[[JsonObject], JsonObject]


def convert(body: JsonObject, kind: Kind) -> JsonObject | None:
    """The object in version `kind`, the same object if it has this version, or None if only a server can convert it.

    Mirrors the conversions of `pkg/apis`.
    """
    version, name = as_text(body.get("apiVersion")), as_text(body.get("kind"))
    if (version, name) == (kind.api_version, kind.kind):
        return body
    if name != kind.kind:
        return None
    if {version, kind.api_version} <= _ALIKE.get(name, frozenset()):
        return relabel(body, kind)
    conversion = _CONVERSIONS.get(name, {}).get((version, kind.api_version))
    return conversion(body) if conversion else None


def list_views(body: JsonObject, kind: Kind, others: Iterable[Kind], *, relabels: bool) -> Iterator[Resource]:
    """An object in its kind, and in each other kind to which it is converted without a server.

    `relabels` tells that the versions of a custom resource differ in the apiVersion alone.
    """
    yield resource_of(kind, body)
    for other in others:
        converted = relabel(body, other) if relabels else convert(body, other)
        if converted is not None:
            yield resource_of(other, converted)


def is_builtin(kind: Kind) -> bool:
    """Return whether a kind is compiled into the API server, as far as its Go type is known here."""
    package = kind.group.partition(".")[0] or "core"
    is_of_kubernetes = "." not in kind.group or kind.group.endswith(".k8s.io")
    return is_of_kubernetes and is_known(f"io.k8s.api.{package}.{kind.version}.{kind.kind}")


def relabel(body: JsonObject, kind: Kind) -> JsonObject:
    """The object with the apiVersion of another of its kinds, and nothing else changed."""
    return {**body, "apiVersion": kind.api_version}


def _keep_members(source: JsonObject, *names: str) -> dict[str, Json]:
    return {name: source[name] for name in names if name in source}


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


def _convert_to_core_event(body: JsonObject) -> JsonObject:
    renamed = {_EVENTS_TO_CORE.get(key, key): value for key, value in body.items()}
    return {**_CORE_ALWAYS, **renamed, "apiVersion": "v1"}


def _convert_to_events_event(body: JsonObject) -> JsonObject:
    renamed = {_CORE_TO_EVENTS.get(key, key): value for key, value in body.items()}
    written_members = {key: value for key, value in renamed.items() if value or key not in _EVENTS_OMIT}
    return {**_EVENTS_ALWAYS, **written_members, "apiVersion": "events.k8s.io/v1"}


_EXACT: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)


def _convert_claim(body: JsonObject, version: str, request: _Conversion, *above: str) -> JsonObject:
    """A claim, or with the way to its spec a template of claims, with its requests in another form."""
    return _change_at(
        {**body, "apiVersion": version},
        (*above, "spec", "devices"),
        lambda devices: _change_each(devices, "requests", request),
    )


def _flatten_request(request: JsonObject) -> JsonObject:
    """`Convert_resource_DeviceRequest_To_v1beta1_DeviceRequest`."""
    exactly = as_object(request.get("exactly"))
    rest = {name: member for name, member in request.items() if name != "exactly"}
    return {**rest, "deviceClassName": "", **_list_written(exactly)}


def _nest_request(request: JsonObject) -> JsonObject:
    """`Convert_v1beta1_DeviceRequest_To_resource_DeviceRequest`."""
    exactly = _list_written(request)
    rest = {name: member for name, member in request.items() if name not in _EXACT}
    return {**rest, "exactly": {"deviceClassName": "", **exactly}} if exactly else rest


def _convert_slice(body: JsonObject, version: str, device: _Conversion) -> JsonObject:
    def convert_spec(spec: JsonObject) -> JsonObject:
        rest = {name: value for name, value in spec.items() if name not in ("nodeName", "allNodes") or value}
        return _change_each(rest, "devices", device)

    return _change_at({**body, "apiVersion": version}, ("spec",), convert_spec)


def _list_written(request: JsonObject) -> dict[str, Json]:
    """The members of an exact request, without those that Go leaves out because they are empty."""
    members = {name: request[name] for name in _EXACT if name in request}
    return {name: value for name, value in members.items() if isinstance(value, bool | dict) or value}


def _nest_device(device: JsonObject) -> JsonObject:
    """`Convert_resource_Device_To_v1beta1_Device`."""
    basic = {name: value for name, value in device.items() if name != "name"}
    return {**_keep_members(device, "name"), "basic": basic}


def _flatten_device(device: JsonObject) -> JsonObject:
    """`Convert_v1beta1_Device_To_resource_Device`."""
    return {**_keep_members(device, "name"), **as_object(device.get("basic"))}


def _change_at(value: JsonObject, path: Sequence[str], change: _Conversion) -> JsonObject:
    """The object with a change of the object at a path; unchanged if the path leads to no object."""
    if not path:
        return change(value)
    name, *below = path
    inner = value.get(name)
    return {**value, name: _change_at(inner, below, change)} if isinstance(inner, Mapping) else value


def _change_each(value: JsonObject, name: str, change: _Conversion) -> JsonObject:
    if value.get(name) is None:
        return value
    return {**value, name: [change(as_object(element)) for element in as_list(value[name])]}


_FLAT_VERSION: Final = "resource.k8s.io/v1beta1"
_NESTED_VERSIONS: Final = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2")


def _make_resource_conversions(
    flat: _Conversion, nested: Callable[[JsonObject, str], JsonObject]
) -> Mapping[tuple[str, str], _Conversion]:
    """The conversions of a kind of which v1beta1 has another form than all later versions."""

    def to(version: str) -> _Conversion:
        return lambda body: nested(body, version)

    down = {(version, _FLAT_VERSION): flat for version in _NESTED_VERSIONS}
    return down | {(_FLAT_VERSION, version): to(version) for version in _NESTED_VERSIONS}


_ALIKE: Final[Mapping[str, frozenset[str]]] = {
    "IPAddress": frozenset({"networking.k8s.io/v1", "networking.k8s.io/v1beta1"}),
    "ServiceCIDR": frozenset({"networking.k8s.io/v1", "networking.k8s.io/v1beta1"}),
    "VolumeAttributesClass": frozenset({"storage.k8s.io/v1", "storage.k8s.io/v1beta1"}),
    "LeaseCandidate": frozenset({"coordination.k8s.io/v1beta1", "coordination.k8s.io/v1alpha2"}),
    "DeviceTaintRule": frozenset({"resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3"}),
    "DeviceClass": frozenset({*_NESTED_VERSIONS, _FLAT_VERSION}),
    **dict.fromkeys(("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"), frozenset(_NESTED_VERSIONS)),
}
_CONVERSIONS: Final[Mapping[str, Mapping[tuple[str, str], _Conversion]]] = {
    "HorizontalPodAutoscaler": {
        ("autoscaling/v2", "autoscaling/v1"): convert_to_v1,
        ("autoscaling/v1", "autoscaling/v2"): convert_to_v2,
    },
    "ResourceClaim": _make_resource_conversions(
        lambda body: _convert_claim(body, _FLAT_VERSION, _flatten_request),
        lambda body, version: _convert_claim(body, version, _nest_request),
    ),
    "ResourceClaimTemplate": _make_resource_conversions(
        lambda body: _convert_claim(body, _FLAT_VERSION, _flatten_request, "spec"),
        lambda body, version: _convert_claim(body, version, _nest_request, "spec"),
    ),
    "ResourceSlice": _make_resource_conversions(
        lambda body: _convert_slice(body, _FLAT_VERSION, _nest_device),
        lambda body, version: _convert_slice(body, version, _flatten_device),
    ),
    "Event": {("v1", "events.k8s.io/v1"): _convert_to_events_event, ("events.k8s.io/v1", "v1"): _convert_to_core_event},
}
