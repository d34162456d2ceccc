"""Places in documents, and the places from which a value comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from scanner.cel.values.values import Value

Place: TypeAlias = "tuple[str | int, ...]"
"""The name of a variable of the environment, then keys and indexes. A policy's variable: `variables` and its name."""

_MOST_LOCATED = 50_000
VARIABLES = "variables"


class Origin(Struct, frozen=True):
    """The place of a value, empty for a computed value, and all places whose content may be in it."""

    place: Place = ()
    reads: frozenset[Place] = frozenset()

    @property
    def is_unchanged(self) -> bool:
        """Return whether the value is an unchanged part of a document."""
        return bool(self.place) and self.place[0] != VARIABLES

    def below(self, key: Value) -> Origin:
        """Return the origin of an element or field of the value."""
        if not self.place or isinstance(key, bool) or not isinstance(key, int | str):
            return Origin((), self.reads)
        place = (*self.place, key)
        return locate_unchanged(place) if self.is_unchanged else Origin(place, self.reads)

    def add_reads(self, reads: frozenset[Place]) -> Origin:
        """Return the same origin with additional places that contributed."""
        return Origin(self.place, self.reads | reads) if reads else self


NOWHERE = Origin()
Scope: TypeAlias = "Mapping[str, Origin]"
"""The origins of the variables of the loops around a note."""


def locate_unchanged(place: Place) -> Origin:
    """Return the origin of an unchanged value at a place."""
    return Origin(place, frozenset({place}))


def list_containers(activation: Mapping[str, object]) -> Iterator[tuple[int, Place]]:
    """Yield the identity and the place of each list and map of all documents, at most `_MOST_LOCATED`.

    Of several places of a list or map the first comes last, so that a dict of the pairs keeps it.
    """
    located: list[tuple[int, Place]] = []
    for root, document in activation.items():
        stack: list[tuple[Place, object]] = [((root,), document)]
        while stack and len(located) < _MOST_LOCATED:
            place, value = stack.pop()
            if type(value) is dict:
                located.append((id(value), place))
                stack.extend(((*place, key), item) for key, item in value.items() if type(item) in (dict, list))
            elif type(value) is list:
                located.append((id(value), place))
                stack.extend(((*place, at), item) for at, item in enumerate(value) if type(item) in (dict, list))
    return reversed(located)
