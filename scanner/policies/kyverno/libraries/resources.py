"""`resource.Get`, `resource.List`, `resource.ToGVR`: functions that read objects of the cluster.

Mirrors Kyverno's resource library: a namespaced policy reads its own namespace only, and its functions have one argument less.
Resources are named by their plural; an object that does not exist is null. `resource.Post` writes, so Assay rejects it.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

from typing import ClassVar

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import ArgumentFlow, Run
from scanner.cel.types.type_system import Type, opaque
from scanner.cel.values.values import Opaque, Value
from scanner.policies.kyverno.libraries.cluster_data import ClusterData, Collection, Unavailable
from scanner.policies.kyverno.libraries.declared import Implementation

RESOURCE = opaque("resource.Context")
GVR = opaque("schema.GroupVersionResource")


class ResourceReader(Opaque):
    """The value of `resource`; with a namespace it belongs to a namespaced policy, which reads no other namespace.

    `missing_is_null`: an object that does not exist is null; in older releases it is an error.
    """

    __slots__ = ("cluster_data", "missing_is_null", "namespace")
    TYPE: ClassVar[Type] = RESOURCE
    GO_TYPE: ClassVar[str] = "resource.Context"

    def __init__(self, cluster_data: ClusterData, namespace: str = "", *, missing_is_null: bool = True) -> None:
        self.cluster_data = cluster_data
        self.namespace = namespace
        self.missing_is_null = missing_is_null


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
    return _found(reader, _collection(api_version, plural, "get"), namespace, name)


def _get_of(reader: ResourceReader, gvr: GroupVersionResource, namespace: str, name: str) -> Value:
    return _found(reader, gvr.collection, namespace, name)


def _found(reader: ResourceReader, collection: Collection, namespace: str, name: str) -> Value:
    found = reader.cluster_data.get(collection, namespace, name)
    if found is None and not reader.missing_is_null:
        resource = f"{collection.plural}.{collection.group}" if collection.group else collection.plural
        raise EvaluationError(f'failed to get resource: {resource} "{name}" not found')
    return found


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


_SHARED: dict[str, Run] = {"resource_post_string_string_map": _post, "convert_to_gvr_string_string": _to_gvr}
CLUSTER = Implementation(
    {
        **_SHARED,
        "resource_get_string_string_string_string": _get,
        "resource_get_gvr_string_string": _get_of,
        "resource_list_string_string_string": _list,
        "resource_list_string_string_string_map": _list,
        "list_resources_gvr_string": _list_of,
        "list_resources_gvr_string_map": _list_of,
        "resource_post_string_string_string_map": _post,
    },
    flow=ArgumentFlow.READS,
)
NAMESPACED = Implementation(
    {
        **_SHARED,
        "resource_get_string_string_string": _own_get,
        "resource_get_gvr_string": _own_get_of,
        "resource_list_string_string": _own_list,
        "resource_list_string_string_map": _own_list,
        "list_resources_gvr": _own_list_of,
        "list_resources_gvr_map": _own_list_of,
    },
    flow=ArgumentFlow.READS,
)


# `globalContext.Get`: the data of GlobalContextEntry objects.
#
# Mirrors Kyverno's globalcontext library: an entry that does not exist is null.
#
# Rules: `docs/semantics/kyverno.md#kyvernos-functions`.

GLOBAL_CONTEXT = opaque("globalcontext.Context")


class GlobalContext(Opaque):
    """The value of `globalContext`; a `confined` one belongs to a namespaced policy, which reads no entries since 1.19."""

    __slots__ = ("cluster_data", "confined")
    TYPE: ClassVar[Type] = GLOBAL_CONTEXT
    GO_TYPE: ClassVar[str] = "globalcontext.Context"

    def __init__(self, cluster_data: ClusterData, *, confined: bool = False) -> None:
        self.cluster_data = cluster_data
        self.confined = confined


def _get_entry(context: GlobalContext, name: str, projection: str = "") -> Value:
    if context.confined:
        raise EvaluationError("failed to get global reference: globalContext.* is not allowed in namespaced policies")
    return context.cluster_data.entry(name, projection)


ENTRIES = Implementation(
    {"globalcontext_get_string": _get_entry, "globalcontext_get_string_string": _get_entry}, flow=ArgumentFlow.READS
)
