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
