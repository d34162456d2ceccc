"""The places of objects in files: where a reader of a report finds what it is about."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """A file and the line, from 1, where an object begins. `path` has slashes, and is absolute for a file outside the folder of the scan."""

    path: str
    line: int


class ObjectName(NamedTuple):
    """The name of an object of files. `group` is that of its kind."""

    group: str
    kind: str
    namespace: str
    name: str


class PlacedObject(NamedTuple):
    """An object of files and its place. The place of one of its fields has a name that `name_field` makes."""

    group: str
    kind: str
    namespace: str
    name: str
    place: Place


def name_field(name: str, field: str) -> str:
    """The name under which the place of a field of an object is kept; that of the object for an empty path."""
    return f"{name}\n{field}" if field else name


class Places(Protocol):
    """The places of the objects of a scan, and of the fields that decided its findings."""

    def find(self, group: str, kind: str, namespace: str, name: str, field: str = "") -> Place | None:
        """The place of an object, or of one of its fields; None if it is not known."""
        ...

    def __bool__(self) -> bool:
        """Return whether any object has a place."""
        ...
