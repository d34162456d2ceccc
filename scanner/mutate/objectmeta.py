"""The metadata of an object as its Go type reads and writes it.

Source of truth: the JSON tags of `metav1.ObjectMeta` and `OwnerReference`, and `schemaobjectmeta.GetObjectMetaWithOptions`,
which reads metadata member by member once it cannot be read as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from scanner.model.json import EMPTY, Json, JsonObject
from scanner.mutate.goread import Malformed, Mismatch, special


class _Malformed(ValueError):
    """A value that the Go type of its field cannot hold."""


_Reader: TypeAlias = Callable[[Json], Json]


def object_meta(metadata: Json, *, keeps_malformed: bool = False) -> JsonObject:
    """The metadata without what it cannot have; malformed members are gone too, unless validation is still to refuse them."""
    given = metadata if isinstance(metadata, Mapping) else EMPTY
    known = {
        name: read for name, value in given.items() for read in _read(name, value, keeps_malformed=keeps_malformed)
    }
    return given if known == given else known


def _read(name: str, value: Json, *, keeps_malformed: bool) -> tuple[Json, ...]:
    """What is left of a member: nothing of one that is unknown, empty or malformed."""
    reader = _FIELDS.get(name)
    try:
        found = reader(value) if reader else None
    except _Malformed:
        return (value,) if keeps_malformed else ()
    return () if found in (None, "", [], {}, 0) else (found,)


def _text(value: Json) -> Json:
    if value is not None and not isinstance(value, str):
        raise _Malformed
    return value or ""


def _flag(value: Json) -> Json:
    if value is not None and not isinstance(value, bool):
        raise _Malformed
    return value


def _texts(value: Json) -> Json:
    if value is not None and not isinstance(value, list):
        raise _Malformed
    return [_text(one) for one in value or ()]


def _text_map(value: Json) -> Json:
    if value is not None and not isinstance(value, dict):
        raise _Malformed
    return {name: _text(one) for name, one in (value or {}).items()}


def _owners(value: Json) -> Json:
    if value is not None and not isinstance(value, list):
        raise _Malformed
    return [_owner(one) for one in value or ()]


def _owner(value: Json) -> Json:
    if value is not None and not isinstance(value, dict):
        raise _Malformed
    given = value or {}
    flags = {name: _flag(given.get(name)) for name in ("controller", "blockOwnerDeletion")}
    return {
        **{name: _text(given.get(name)) for name in ("apiVersion", "kind", "name", "uid")},
        **{name: flag for name, flag in flags.items() if flag is not None},
    }


def _whole(value: Json) -> Json:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _Malformed
    return value


def _entries(value: Json) -> Json:
    if value is not None and not (isinstance(value, list) and all(isinstance(one, Mapping | None) for one in value)):
        raise _Malformed
    return value


def _time(value: Json) -> Json:
    try:
        return special("Time", value)
    except (Mismatch, Malformed):
        raise _Malformed from None


_FIELDS: Final[Mapping[str, _Reader]] = {
    "name": _text,
    "generateName": _text,
    "namespace": _text,
    "labels": _text_map,
    "annotations": _text_map,
    "finalizers": _texts,
    "ownerReferences": _owners,
    "managedFields": _entries,
    **dict.fromkeys(("uid", "resourceVersion", "selfLink"), _text),
    **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _whole),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _time),
}
