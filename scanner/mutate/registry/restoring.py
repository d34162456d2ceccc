"""Objects that lack their defaults: a server has set them before the first mutation, and in any request.

So a mutation changes an object with its defaults, and what the server sets in every request is no change of a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from scanner.model.json import Json, JsonObject
from scanner.mutate.operations import same

_Merge: TypeAlias = Callable[[Json, Json, Json], Json]
_NAMING = ("name", "key", "containerPort", "port", "mountPath", "type", "ip", "topologyKey", "uid")


def completed(before: JsonObject, start: JsonObject, after: JsonObject) -> JsonObject:
    """`after`, a mutation of `before`, with what the server had set in `start`, which it makes of `before`."""
    found = _complete(before, start, after)
    return found if isinstance(found, Mapping) else after


def restored(before: JsonObject, start: JsonObject, after: JsonObject) -> JsonObject:
    """`after` with all that it has in common with `start`, which the server makes of `before`, as it is in `before`."""
    found = _restore(before, start, after)
    return found if isinstance(found, Mapping) else after


def _complete(before: Json, start: Json, after: Json) -> Json:
    if before is start:
        return after
    if after is before or after is start:
        return start
    if isinstance(before, dict) and isinstance(start, dict) and isinstance(after, dict):
        known = {name: _complete(before.get(name), start.get(name), one) for name, one in after.items()}
        return {**known, **{name: one for name, one in start.items() if name not in before and name not in after}}
    return _elements(before, start, after, _complete)


def _restore(before: Json, start: Json, after: Json) -> Json:
    if same(start, after):
        return before
    if isinstance(before, dict) and isinstance(start, dict) and isinstance(after, dict):
        return _restore_members(before, start, after)
    return _elements(before, start, after, _restore)


def _restore_members(before: JsonObject, start: JsonObject, after: JsonObject) -> JsonObject:
    found: dict[str, Json] = {}
    for name, one in after.items():
        if name in before:
            found[name] = _restore(before[name], start.get(name), one)
        elif name not in start or not same(start[name], one):
            found[name] = one
    gone = {name: one for name, one in before.items() if name not in start and name not in after}
    return {**found, **gone}


def _elements(before: Json, start: Json, after: Json, merge: _Merge) -> Json:
    """Lists, whose elements the server has left in their places."""
    if not isinstance(before, list) or not isinstance(start, list) or not isinstance(after, list):
        return after
    if len(before) != len(start):
        return after
    found = []
    for index, one in enumerate(after):
        at = _partner(before, one, index, same_length=len(before) == len(after))
        found.append(one if at is None else merge(before[at], start[at], one))
    return found


def _partner(before: Sequence[Json], element: Json, index: int, *, same_length: bool) -> int | None:
    """Where an element was before: under the same name, as the same value, or in the same place."""
    name = _name(element)
    for at, one in enumerate(before):
        if (name is not None and _name(one) == name) or same(one, element):
            return at
    return index if same_length else None


def _name(element: Json) -> tuple[str, Json] | None:
    if not isinstance(element, dict):
        return None
    return next(((name, element[name]) for name in _NAMING if name in element), None)
