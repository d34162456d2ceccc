"""Objects that lack their defaults: a server has set them before the first mutation, and in any request.

So a mutation changes an object with its defaults, and values that the server sets in every request are not a policy's change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import TypeAlias

from scanner.model.json import Json, JsonObject
from scanner.mutate.difference import NAMING, align
from scanner.mutate.operations import is_same_json

_Merge: TypeAlias = Callable[[Json, Json, Json], Json]


def complete(before: JsonObject, start: JsonObject, after: JsonObject) -> JsonObject:
    """`after`, a mutation of `before`, with the values that the server set in `start`, which it makes of `before`."""
    result = _complete(before, start, after)
    return result if isinstance(result, Mapping) else after


def restore(before: JsonObject, start: JsonObject, after: JsonObject) -> JsonObject:
    """`after` with the values of `before` where it equals `start`, which the server makes of `before`."""
    result = _restore(before, start, after)
    return result if isinstance(result, Mapping) else after


def _complete(before: Json, start: Json, after: Json) -> Json:
    if before is start:
        return after
    if after is before or after is start:
        return start
    if isinstance(before, dict) and isinstance(start, dict) and isinstance(after, dict):
        return _complete_members(before, start, after)
    return _map_elements(before, start, after, _complete)


def _complete_members(before: JsonObject, start: JsonObject, after: JsonObject) -> JsonObject:
    """The object with the missing members; the same object when it has all, so that cached facts about it stay valid."""
    members = {name: _complete(before.get(name), start.get(name), member) for name, member in after.items()}
    lost = {name: member for name, member in start.items() if name not in before and name not in after}
    is_shared = all(map(is_, members.values(), after.values()))
    return after if is_shared and not lost else {**members, **lost}


def _restore(before: Json, start: Json, after: Json) -> Json:
    if is_same_json(start, after):
        return before
    if isinstance(before, dict) and isinstance(start, dict) and isinstance(after, dict):
        return _restore_members(before, start, after)
    return _map_elements(before, start, after, _restore)


def _restore_members(before: JsonObject, start: JsonObject, after: JsonObject) -> JsonObject:
    members: dict[str, Json] = {}
    for name, member in after.items():
        if name in before:
            members[name] = _restore(before[name], start.get(name), member)
        elif name not in start or not is_same_json(start[name], member):
            members[name] = member
    dropped = {name: member for name, member in before.items() if name not in start and name not in after}
    return {**members, **dropped}


def _map_elements(before: Json, start: Json, after: Json, merge: _Merge) -> Json:
    """Lists whose elements the server has kept in their places."""
    if not isinstance(before, list) or not isinstance(start, list) or not isinstance(after, list):
        return after
    if len(before) != len(start):
        return after
    partners = _match_elements(before if merge is _complete else start, after)
    elements = [
        element if (at := partners.get(index)) is None else merge(before[at], start[at], element)
        for index, element in enumerate(after)
    ]
    return after if all(map(is_, elements, after)) else elements


def _match_elements(earlier: Sequence[Json], after: Sequence[Json]) -> dict[int, int]:
    """The earlier places of elements: with the same value or the same name, or else at the same index.

    An element with a name may be new, unless there are as many as before: then it may have another name now.
    """
    pairs = align(earlier, after)  # type: ignore[arg-type]
    paired = {left for left, _ in pairs}
    in_place = {
        index: index
        for index, element in enumerate(earlier)
        if index not in paired and (len(earlier) == len(after) or not _is_named(element))
    }
    return {**in_place, **{right: left for left, right in pairs}}


def _is_named(element: Json) -> bool:
    return isinstance(element, Mapping) and any(name in element for name in NAMING)
