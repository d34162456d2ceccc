"""The metadata of a custom resource, or of an object inside one, as its Go type reads and writes it.

Source of truth: `schemaobjectmeta.GetObjectMetaWithOptions`, which reads metadata member by member when it cannot be read as a
whole, and the JSON tags of `metav1.ObjectMeta`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scanner.model.json import EMPTY, Json, JsonObject
from scanner.mutate.decoding import Ended, Inside
from scanner.mutate.rewriting import Rewriting
from scanner.mutate.schema import Schema

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_TEXTS: Final[Json] = {"v": "s"}
_OWNER: Final[Json] = {
    "f": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), "s"),
        **dict.fromkeys(("blockOwnerDeletion", "controller"), "b"),
    }
}
_ENTRY: Final[Json] = {
    "f": {
        **dict.fromkeys(("apiVersion", "fieldsType", "manager", "operation", "subresource"), "s"),
        "time": "u",
        "fieldsV1": "*",
    }
}
_METADATA: Final[Json] = {
    "f": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), "s"),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), "l"),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), "u"),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"e": "s"},
        "ownerReferences": {"e": 1},
        "managedFields": {"e": 2},
    }
}
_SCHEMA: Final = Schema(
    0, (_METADATA, _OWNER, _ENTRY), (f"{_META}ObjectMeta", f"{_META}OwnerReference", f"{_META}ManagedFieldsEntry")
)


def object_meta(metadata: Json, *, keeps_malformed: bool = False) -> JsonObject:
    """The metadata without unknown members.

    Malformed members are dropped too, unless validation still has to reject them (`keeps_malformed`).
    """
    given = metadata if isinstance(metadata, Mapping) else EMPTY
    members: dict[str, Json] = {}
    for name, value in given.items():
        members.update(_read(name, value, keeps_malformed=keeps_malformed))
    return given if members == given else members


def _read(name: str, value: Json, *, keeps_malformed: bool) -> JsonObject:
    """The stored form of a member; nothing for a member that is unknown or empty."""
    member = {name: value}
    try:
        return Rewriting(_SCHEMA, Inside()).rewritten(member, EMPTY)
    except Ended:
        return member if keeps_malformed else EMPTY
