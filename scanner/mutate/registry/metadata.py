"""The metadata after an update: fields that clients cannot set keep the stored values.

Mirrors `rest.BeforeUpdate`, `dedupOwnerReferences` and, for counters and dates, the values that every write sets.
"""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_list, as_object
from scanner.mutate.walk import with_member, without

_SERVER_SET = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)


def kept_metadata(before: JsonObject, after: JsonObject) -> JsonObject:
    """An object whose server-set metadata is that of the stored object (`rest.BeforeUpdate`)."""
    stored, given = as_object(before.get("metadata")), as_object(after.get("metadata"))
    if given is stored:
        return after
    own = {name: stored[name] for name in _SERVER_SET if name in stored}
    metadata = {**without(given, *_SERVER_SET), **own}
    if "namespace" not in stored:  # EnsureObjectNamespaceMatchesRequestNamespace
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = stored["namespace"]
    metadata = {**metadata, **_owners(metadata)}
    return {**after, "metadata": metadata} if metadata else without(after, "metadata")


def _owners(metadata: JsonObject) -> JsonObject:
    owners = as_list(metadata.get("ownerReferences"))
    once: list[Json] = [owner for index, owner in enumerate(owners) if owner not in owners[:index]]
    return {} if len(once) == len(owners) else {"ownerReferences": once}


def with_status(before: JsonObject, after: JsonObject) -> JsonObject:
    """An object with the stored status: only the status subresource changes it."""
    return with_member(after, "status", before["status"]) if "status" in before else without(after, "status")
