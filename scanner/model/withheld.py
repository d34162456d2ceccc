"""The parts of objects that a snapshot withholds, as they stand in a replayed object.

A part that is withheld keeps its type as far as its content allows: a text is `[redacted]` or has it in place of its secrets, a map or
a list is empty. The classes tell these parts from values that a cluster really has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from scanner.model.json import Json

Place: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes, from the root of an object."""


class WithheldText(str):
    """A text, or a number, that a snapshot withholds wholly or in part."""

    __slots__ = ()


class WithheldMap(dict[str, Json]):
    """A map whose content a snapshot withholds."""

    __slots__ = ()


class WithheldList(list[Json]):
    """A list whose content a snapshot withholds."""

    __slots__ = ()


_WITHHELD: Final = (WithheldText, WithheldMap, WithheldList)


def is_withheld(value: object) -> bool:
    """Return whether a snapshot withholds a value."""
    return isinstance(value, _WITHHELD)


def has_withheld(value: Json) -> bool:
    """Return whether a value is withheld, or has a part that is."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _WITHHELD):
            return True
        if isinstance(item, Mapping):
            stack.extend(item.values())
        elif isinstance(item, Sequence) and not isinstance(item, str):
            stack.extend(item)
    return False


def mark_withheld(body: Json, places: Iterable[Place]) -> None:
    """Mark the parts of a decoded object that a snapshot withholds, in place. Raises ValueError for a place that the object lacks."""
    for place in places:
        *steps, last = place
        container: Json = body
        for step in steps:
            container = _get(container, step, place)
        marked = _mark(_get(container, last, place))
        container[last] = marked  # type: ignore[index] # `_get` found a key or an index of a dict or a list


def unmark(value: Json) -> Json:
    """The value with plain values in place of withheld parts."""
    match value:
        case WithheldText():
            return str(value)
        case Mapping():
            return {key: unmark(item) for key, item in value.items()}
        case str():
            return value
        case Sequence():
            return [unmark(item) for item in value]
        case _:
            return value


def mark_like(value: Json, marked: Json) -> Json:
    """The value with each part marked that is withheld in another one; a list of another length is marked wholly."""
    if is_withheld(marked):
        return _mark(value)
    if isinstance(marked, Mapping) and isinstance(value, Mapping):
        known = {key: mark_like(item, marked[key]) if key in marked else item for key, item in value.items()}
        gone = {key: item for key, item in marked.items() if key not in value and has_withheld(item)}
        return {**known, **gone}
    if not has_withheld(marked):
        return value
    if isinstance(marked, list) and isinstance(value, list) and len(marked) == len(value):
        return [mark_like(item, other) for item, other in zip(value, marked, strict=True)]
    return _mark(value)


def _get(container: Json, step: str | int, place: Place) -> Json:
    if isinstance(container, dict) and isinstance(step, str) and step in container:
        value: Json = container[step]
        return value
    if isinstance(container, list) and isinstance(step, int) and 0 <= step < len(container):
        item: Json = container[step]
        return item
    raise ValueError(f"it withholds {'/'.join(map(str, place))}, which the object does not have")


def _mark(value: Json) -> Json:
    match value:
        case Mapping():
            return WithheldMap()
        case str():
            return WithheldText(value)
        case Sequence():
            return WithheldList()
        case _:
            return WithheldText(value)
