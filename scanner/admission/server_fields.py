"""The fields of an object that the server sets when the object is created or updated, and those of a request that its client sets.

Source of truth: `rest.FillObjectMetaSystemFields` and the strategies of the built-in kinds. A check that reads such a field has another
value at hand than admission has, so its verdict is not that of admission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import eq
from typing import Final

from scanner.model.json import Json, JsonObject, dig
from scanner.model.resource import SERVER_SET_METADATA, Kind

Path = tuple[str, ...]

NEVER_WRITTEN: Final = (
    *SERVER_SET_METADATA,
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""The fields of metadata that no client can set in a new object."""
# Fields that a second object cannot have, because the server allocates a value to one object alone.
ALLOCATED: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
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
"""The fields for which the server chooses a value, by group and kind."""
# Fields that the server sets from the user of the request.
_SIGNED: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("certificates.k8s.io", "CertificateSigningRequest"): tuple(
        ("spec", name) for name in ("username", "uid", "groups", "extra")
    ),
}
# Fields that the server sets from the cluster or the clock.
_CHOSEN: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("", "Service"): (("spec", "ipFamilies"),),
    ("", "PersistentVolume"): (("status", "lastPhaseTransitionTime"),),
    # A local APIService is available from the time of the request on.
    ("apiregistration.k8s.io", "APIService"): (("status", "conditions"),),
}
MANAGED_FIELDS: Final[Path] = ("metadata", "managedFields")
GENERATION: Final[Path] = ("metadata", "generation")
_COUNTS_ANNOTATIONS: Final = ("apps", "Deployment")
SET_BY_CLIENT: Final[tuple[Path, ...]] = (
    ("request", "dryRun"),
    ("request", "options", "dryRun"),
    ("request", "options", "fieldManager"),
    ("request", "options", "fieldValidation"),
)
"""The fields of `request` that the client of each request chooses."""


def list_fields_set_on_create(kind: Kind, body: JsonObject) -> tuple[Path, ...]:
    """The paths of a stored object whose values the server sets when a copy of the object is created."""
    family = (kind.group, kind.kind)
    metadata = tuple(("metadata", name) for name in NEVER_WRITTEN)
    allocated = (path for path in ALLOCATED.get(family, ()) if drop_at(body, path) != body)
    return (*metadata, ("status",), *allocated, *_SIGNED.get(family, ()))


def list_fields_to_be_set(kind: Kind, body: JsonObject) -> Iterator[Path]:
    """The paths of a new object that are not set yet, and that the server sets before policies validate it."""
    family = (kind.group, kind.kind)
    yield from (("metadata", name) for name in ("uid", "creationTimestamp", "generation", "managedFields"))
    unset = (*ALLOCATED.get(family, ()), *_CHOSEN.get(family, ()))
    yield from (path for path in unset if drop_at(body, path) == body)
    yield from _SIGNED.get(family, ())


def list_fields_set_on_update(kind: Kind, old: JsonObject, new: JsonObject) -> tuple[Path, ...]:
    """The paths of an updated object that the server sets before policies validate it: each change has a generation of its own."""
    names = {*old, *new} - {"metadata"}
    changes = any(old.get(name) != new.get(name) for name in names)
    if (kind.group, kind.kind) == _COUNTS_ANNOTATIONS:
        changes |= dig(old, "metadata", "annotations") != dig(new, "metadata", "annotations")
    return (MANAGED_FIELDS, GENERATION) if changes else (MANAGED_FIELDS,)


def reads_any(reads: Iterable[Path], paths: Iterable[Path]) -> bool:
    """Return whether an expression with these access paths reads one of these paths of the object."""
    return paths_overlap((path[1:] for path in reads if path[0] in ("object", "oldObject")), tuple(paths))


def paths_overlap(reads: Iterable[Path], paths: Sequence[Path]) -> bool:
    """Return whether a path that is read leads to one of some others, or through it."""
    return any(all(map(eq, read, path)) for read in reads for path in paths)


def drop_at(value: Json, path: Path) -> Json:
    """The value without the field at a path, in every item of a list on the way."""
    if isinstance(value, list):
        return [drop_at(item, path) for item in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {key: item for key, item in value.items() if key != path[0]}
    return {**value, path[0]: drop_at(value[path[0]], path[1:])}
