"""`resource.Get`, `resource.List`, `resource.ToGVR`: functions that read objects of the cluster.

Mirrors Kyverno's resource library: a namespaced policy reads its own namespace only, and its functions have one argument less.
Resources are named by their plural; an object that does not exist is null. `resource.Post` writes, so Assay rejects it.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

from typing import ClassVar

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import DYN, STRING, Type, map_of, opaque
from scanner.cel.values.values import Opaque, Value
from scanner.policies.kyverno.libraries.cluster_data import ClusterData, Collection, Unavailable

RESOURCE = opaque("resource.Context")
GVR = opaque("resource.GroupVersionResource")
_OBJECT = map_of(STRING, DYN)
_LABELS = map_of(STRING, STRING)


class ResourceReader(Opaque):
    """The value of `resource`; with a namespace it belongs to a namespaced policy, which reads no other namespace."""

    __slots__ = ("cluster_data", "namespace")
    TYPE: ClassVar[Type] = RESOURCE
    GO_TYPE: ClassVar[str] = "resource.Context"

    def __init__(self, cluster_data: ClusterData, namespace: str = "") -> None:
        self.cluster_data = cluster_data
        self.namespace = namespace


class GroupVersionResource(Opaque):
    """The result of `ToGVR`."""

    __slots__ = ("collection",)
    TYPE: ClassVar[Type] = GVR
    GO_TYPE: ClassVar[str] = "schema.GroupVersionResource"

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    def equals(self, other: Opaque) -> bool:
        """Compare group, version and plural."""
        return isinstance(other, GroupVersionResource) and self.collection == other.collection


def _collection(api_version: str, plural: str, verb: str) -> Collection:
    group, version = group_version(api_version, f"failed to {verb} resource")
    return Collection(group, version, plural)


def group_version(api_version: str, failure: str) -> tuple[str, str]:
    """Return group and version of `apps/v1` or `v1`.

    Raises EvaluationError for another text, with Go's message after `failure`.
    """
    if api_version.count("/") > 1:
        raise EvaluationError(f"{failure}: unexpected GroupVersion string: {api_version}")
    group, _, version = api_version.rpartition("/")
    return group, version


def _get(reader: ResourceReader, api_version: str, plural: str, namespace: str, name: str) -> Value:
    return reader.cluster_data.get(_collection(api_version, plural, "get"), namespace, name)


def _get_of(reader: ResourceReader, gvr: GroupVersionResource, namespace: str, name: str) -> Value:
    return reader.cluster_data.get(gvr.collection, namespace, name)


def _list(
    reader: ResourceReader, api_version: str, plural: str, namespace: str, labels: dict[str, str] | None = None
) -> Value:
    return reader.cluster_data.list(_collection(api_version, plural, "list"), namespace, labels or {})


def _list_of(
    reader: ResourceReader, gvr: GroupVersionResource, namespace: str, labels: dict[str, str] | None = None
) -> Value:
    return reader.cluster_data.list(gvr.collection, namespace, labels or {})


def _own_get(reader: ResourceReader, api_version: str, plural: str, name: str) -> Value:
    return _get(reader, api_version, plural, reader.namespace, name)


def _own_get_of(reader: ResourceReader, gvr: GroupVersionResource, name: str) -> Value:
    return _get_of(reader, gvr, reader.namespace, name)


def _own_list(reader: ResourceReader, api_version: str, plural: str, labels: dict[str, str] | None = None) -> Value:
    return _list(reader, api_version, plural, reader.namespace, labels)


def _own_list_of(reader: ResourceReader, gvr: GroupVersionResource, labels: dict[str, str] | None = None) -> Value:
    return _list_of(reader, gvr, reader.namespace, labels)


def _post(*_arguments: Value) -> Value:
    raise Unavailable("it creates an object with resource.Post, and a scan writes nothing")


def _to_gvr(reader: ResourceReader, api_version: str, kind: str) -> Value:
    group, version = group_version(api_version, "failed to map kind to resource")
    return GroupVersionResource(reader.cluster_data.collection(group, version, kind))


def _both(name: str, overloads: tuple[Overload, ...]) -> tuple[Function, Function]:
    """Declare a function in Pascal case and in camel case."""
    camel = "toGVR" if name == "ToGVR" else name[0].lower() + name[1:]
    flow = ArgumentFlow.READS
    return Function(name, overloads, cost=ONE, flow=flow), Function(camel, overloads, cost=ONE, flow=flow)


_TO_GVR = _both("ToGVR", (declare_member("convert_to_gvr_string_string", (RESOURCE, STRING, STRING), GVR, _to_gvr),))

CLUSTER = Library(
    "kyverno.resource",
    (
        *_both(
            "Get",
            (
                declare_member(
                    "resource_get_string_string_string_string",
                    (RESOURCE, STRING, STRING, STRING, STRING),
                    _OBJECT,
                    _get,
                ),
                declare_member("resource_get_gvr_string_string", (RESOURCE, GVR, STRING, STRING), _OBJECT, _get_of),
            ),
        ),
        *_both(
            "List",
            (
                declare_member(
                    "resource_list_string_string_string", (RESOURCE, STRING, STRING, STRING), _OBJECT, _list
                ),
                declare_member(
                    "resource_list_string_string_string_map",
                    (RESOURCE, STRING, STRING, STRING, _LABELS),
                    _OBJECT,
                    _list,
                ),
                declare_member("list_resources_gvr_string", (RESOURCE, GVR, STRING), _OBJECT, _list_of),
                declare_member("list_resources_gvr_string_map", (RESOURCE, GVR, STRING, _LABELS), _OBJECT, _list_of),
            ),
        ),
        *_both(
            "Post",
            (
                declare_member(
                    "resource_post_string_string_string_map",
                    (RESOURCE, STRING, STRING, STRING, _OBJECT),
                    _OBJECT,
                    _post,
                ),
                declare_member("resource_post_string_string_map", (RESOURCE, STRING, STRING, _OBJECT), _OBJECT, _post),
            ),
        ),
        *_TO_GVR,
    ),
)
NAMESPACED = Library(
    "kyverno.resource.namespaced",
    (
        *_both(
            "Get",
            (
                declare_member(
                    "resource_get_string_string_string", (RESOURCE, STRING, STRING, STRING), _OBJECT, _own_get
                ),
                declare_member("resource_get_gvr_string", (RESOURCE, GVR, STRING), _OBJECT, _own_get_of),
            ),
        ),
        *_both(
            "List",
            (
                declare_member("resource_list_string_string", (RESOURCE, STRING, STRING), _OBJECT, _own_list),
                declare_member(
                    "resource_list_string_string_map", (RESOURCE, STRING, STRING, _LABELS), _OBJECT, _own_list
                ),
                declare_member("list_resources_gvr", (RESOURCE, GVR), _OBJECT, _own_list_of),
                declare_member("list_resources_gvr_map", (RESOURCE, GVR, _LABELS), _OBJECT, _own_list_of),
            ),
        ),
        *_both(
            "Post",
            (declare_member("resource_post_string_string_map", (RESOURCE, STRING, STRING, _OBJECT), _OBJECT, _post),),
        ),
        *_TO_GVR,
    ),
)


# `globalContext.Get`: the data of GlobalContextEntry objects.
#
# Mirrors Kyverno's globalcontext library: an entry that does not exist is null.
#
# Rules: `docs/semantics/kyverno.md#kyvernos-functions`.

GLOBAL_CONTEXT = opaque("globalcontext.Context")


class GlobalContext(Opaque):
    """The value of `globalContext`."""

    __slots__ = ("cluster_data",)
    TYPE: ClassVar[Type] = GLOBAL_CONTEXT
    GO_TYPE: ClassVar[str] = "globalcontext.Context"

    def __init__(self, cluster_data: ClusterData) -> None:
        self.cluster_data = cluster_data


def _get_entry(context: GlobalContext, name: str, projection: str = "") -> Value:
    return context.cluster_data.entry(name, projection)


_OVERLOADS = (
    declare_member("globalcontext_get_string", (GLOBAL_CONTEXT, STRING), DYN, _get_entry),
    declare_member("globalcontext_get_string_string", (GLOBAL_CONTEXT, STRING, STRING), DYN, _get_entry),
)
LIBRARY = Library(
    "kyverno.globalcontext",
    tuple(Function(name, _OVERLOADS, cost=ONE, flow=ArgumentFlow.READS) for name in ("Get", "get")),
)
