"""The places of objects in files: where a reader of a report finds what it is about."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """A file and the line, from 1, where an object begins. `path` has slashes, and is absolute for a file outside the folder of the scan."""

    path: str
    line: int


class PlacedObject(NamedTuple):
    """An object of files and its place. `group` is that of its kind."""

    group: str
    kind: str
    namespace: str
    name: str
    place: Place


class Places(Protocol):
    """The places of the objects of a scan."""

    def of(self, group: str, kind: str, namespace: str, name: str) -> Place | None:
        """The place of an object, or None if it has none."""
        ...
