"""Validates the metadata of cluster-scoped objects.

Source of truth: `ValidateObjectMeta` of `apimachinery/pkg/api/validation` of Kubernetes 1.36. The server silently clears the
fields that a create request may not set: namespace, uid, generation, resourceVersion and managedFields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from scanner.model.json import Json, JsonObject, as_list, as_text, dig, text_map, texts
from scanner.policies.api_validation import names
from scanner.policies.api_validation.fields import each, invalid, invalid_json, label_faults, required

_LARGEST = 256 * 1024
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_IN_A_GROUP = 1


def metadata_faults(document: JsonObject) -> Iterator[str]:
    """The field errors of an object's metadata, in the order of `ValidateObjectMeta`."""
    metadata = dig(document, "metadata")
    prefix, name = as_text(dig(metadata, "generateName")), as_text(dig(metadata, "name"))
    if prefix:
        # The server adds characters to the prefix, so the prefix may end in a character that may not end a name.
        yield from each("metadata.generateName", prefix, names.subdomain(_completed(prefix)))
    if name:
        yield from each("metadata.name", name, names.subdomain(name))
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from label_faults("metadata.labels", text_map(dig(metadata, "labels")))
    yield from _annotation_faults(text_map(dig(metadata, "annotations")))
    yield from _owner_faults(as_list(dig(metadata, "ownerReferences")))
    yield from _finalizer_faults(texts(dig(metadata, "finalizers")))


def _completed(prefix: str) -> str:
    return f"{prefix[:-1]}a" if prefix.endswith("-") and len(prefix) > 1 else prefix


def _annotation_faults(annotations: Mapping[str, str]) -> Iterator[str]:
    path = "metadata.annotations"
    for key in sorted(annotations):
        yield from each(path, key, names.qualified(key.lower()))
    if sum(len(text.encode("utf-8", "surrogatepass")) for pair in annotations.items() for text in pair) > _LARGEST:
        yield f"{path}: Too long: may not be more than {_LARGEST} bytes"


def _owner_faults(owners: Sequence[Json]) -> Iterator[str]:
    path, controller = "metadata.ownerReferences", ""
    for owner in owners:
        version, kind, name = (as_text(dig(owner, field)) for field in ("apiVersion", "kind", "name"))
        if not _has_version(version):
            yield invalid(f"{path}.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not as_text(dig(owner, field)):
                yield invalid(f"{path}.{field}", "", "must not be empty")
        if (version, kind) == ("v1", "Event"):
            yield invalid_json(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if dig(owner, "controller") is True and controller:
            yield invalid_json(path, owners, _two_controllers(controller, f"{kind}/{name}"))
        elif dig(owner, "controller") is True:
            controller = f"{kind}/{name}"


def _has_version(text: str) -> bool:
    """Return whether a text has a version, alone or after a group."""
    return bool(text.rpartition("/")[2]) and text.count("/") <= _IN_A_GROUP


def _two_controllers(first: str, second: str) -> str:
    return f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'


def _finalizer_faults(finalizers: Sequence[str]) -> Iterator[str]:
    path = "metadata.finalizers"
    for finalizer in finalizers:
        yield from each(path, finalizer, names.qualified(finalizer))
    if {_ORPHAN, _FOREGROUND} <= {*finalizers}:
        yield invalid_json(path, [*finalizers], f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")
