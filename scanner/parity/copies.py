"""The copy of a stored object for a dry-run CREATE, and the paths at which two versions of an object differ."""

from __future__ import annotations

from typing import Final

from scanner.admission.server_fields import ALLOCATED, NEVER_WRITTEN, Path, drop_at
from scanner.model.json import Json, JsonObject, as_object
from scanner.model.resource import Kind

_MANAGED: Final = ("metadata", "managedFields")


def make_copy(kind: Kind, body: JsonObject) -> JsonObject:
    """The object without fields that the server rejects or ignores in a second object."""
    paths = (*(("metadata", name) for name in NEVER_WRITTEN), *ALLOCATED.get((kind.group, kind.kind), ()))
    copied: Json = body
    for path in paths:
        copied = drop_at(copied, path)
    return as_object(copied)


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
