"""The copy of a stored object for a dry-run CREATE, and the fields that the server sets in it.

Source of truth: `rest.FillObjectMetaSystemFields` and the create strategies of the built-in kinds. A check that
reads such a field was evaluated with other values than admission has, so the two verdicts cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from scanner.model.json import Json, JsonObject, as_object
from scanner.model.resource import SERVER_SET_METADATA, Kind

Path = tuple[str, ...]

_MANAGED: Final = ("metadata", "managedFields")
_DROPPED: Final = (
    *SERVER_SET_METADATA,
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
# Fields that a second object cannot have, because the server allocates a value to one object alone.
_ALLOCATED: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("", "Service"): (
        ("spec", "clusterIP"),
        ("spec", "clusterIPs"),
        ("spec", "healthCheckNodePort"),
        ("spec", "ports", "nodePort"),
    ),
    ("batch", "Job"): (
        ("spec", "selector"),
        ("spec", "template", "metadata", "labels", "controller-uid"),
        ("spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"),
    ),
}
# Fields that the server sets from the user of the request.
_SIGNED: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("certificates.k8s.io", "CertificateSigningRequest"): tuple(
        ("spec", name) for name in ("username", "uid", "groups", "extra")
    ),
}


def list_fields_set_on_create(kind: Kind, body: JsonObject) -> tuple[Path, ...]:
    """The paths of an object whose values the server sets on CREATE."""
    family = (kind.group, kind.kind)
    metadata = tuple(("metadata", name) for name in _DROPPED)
    allocated = (path for path in _ALLOCATED.get(family, ()) if _drop_at(body, path) != body)
    return (*metadata, ("status",), *allocated, *_SIGNED.get(family, ()))


def make_copy(kind: Kind, body: JsonObject) -> JsonObject:
    """The object without fields that the server rejects or ignores in a second object."""
    paths = (*(("metadata", name) for name in _DROPPED), *_ALLOCATED.get((kind.group, kind.kind), ()))
    copied: Json = body
    for path in paths:
        copied = _drop_at(copied, path)
    return as_object(copied)


def reads_any(reads: Iterable[Path], paths: Iterable[Path]) -> bool:
    """Return whether an expression with these access paths reads one of these paths of the object."""
    of_the_object = [path[1:] for path in reads if path[0] in ("object", "oldObject")]
    return any(_paths_overlap(read, path) for read in of_the_object for path in paths)


def list_changed_paths(before: Json, after: Json, at: Path = ()) -> tuple[Path, ...]:
    """The outermost paths, through maps only, at which two versions of an object differ, without managedFields.

    A path is a tuple of member names, and begins with `at`.
    """
    if at == _MANAGED or before == after:
        return ()
    if not isinstance(before, dict) or not isinstance(after, dict):
        return (at,)
    keys = dict.fromkeys((*before, *after))
    return tuple(path for key in keys for path in list_changed_paths(before.get(key), after.get(key), (*at, key)))


def _paths_overlap(read: Path, path: Path) -> bool:
    return all(left == right for left, right in zip(read, path, strict=False))


def _drop_at(value: Json, path: Path) -> Json:
    """The value without the field at a path, in every item of a list on the way."""
    if isinstance(value, list):
        return [_drop_at(item, path) for item in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {key: item for key, item in value.items() if key != path[0]}
    return {**value, path[0]: _drop_at(value[path[0]], path[1:])}
