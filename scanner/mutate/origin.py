"""The origin of an expression's value: read from the request, or made by the expression, and by which operation.

All are lists and dicts here, and upstream converts them differently. From 1.37 on, data read from an object whose kind is
compiled into the API server is also a wrapped Go value, which a JSON patch does not accept.

Source of truth: `common.SchemalessTypedToVal` of apiserver 1.37, and which variables it wraps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from scanner import cel
from scanner.model.json import EMPTY, Json, as_object, dig
from scanner.mutate.schema import Schema

Wrapped: TypeAlias = "Iterable[tuple[Schema, object]]"
_MAP = "'map(dyn, dyn)' to '*structpb.Value'"
_LIST = "'list(dyn)' to '*structpb.Value'"
_REQUEST = {
    "kind": "v1.GroupVersionKind",
    "requestKind": "v1.GroupVersionKind",
    "resource": "v1.GroupVersionResource",
    "requestResource": "v1.GroupVersionResource",
    "userInfo": "v1.UserInfo",
}


class RequestData:
    """The data that an expression read from the request.

    `wrapped` are objects with their schemas, and `request` is the request, when they are Go values; with `rebuilds`, fields of an
    `Object{…}` are converted as from 1.37 on. `made` records the origin of lists, where that is relevant.
    """

    def __init__(
        self,
        sources: Iterable[object],
        *,
        wrapped: Wrapped = (),
        request: object = None,
        rebuilds: bool = False,
        made: cel.ListKinds | None = None,
    ) -> None:
        self.rebuilds = rebuilds
        self._made = made
        self._sources = tuple(sources)
        self._wrapped = tuple(wrapped)
        self._request = request
        self._ids: frozenset[int] | None = None
        self._kinds: Mapping[int, str] | None = None

    def __contains__(self, value: object) -> bool:
        if self._ids is None:
            self._ids = frozenset(id(part) for source in self._sources for part in _list_containers(source))
        return id(value) in self._ids

    def get_list_kind(self, value: object) -> cel.ListKind | None:
        """The origin of a list."""
        return self._made.of(value) if self._made else None

    def find_go_types(self, value: object) -> str:
        """The Go type names in the error of a wrapped value's failed conversion; empty for a plain value."""
        if self._kinds is None:
            self._kinds = dict(self._describe_request())
        return self._kinds.get(id(value), "")

    def _describe_request(self) -> Iterator[tuple[int, str]]:
        for schema, source in self._wrapped:
            yield from _list_wrapped(schema, schema.root, source)
        if self._request is not None:
            yield from _list_request_values(self._request)


def _list_containers(root: object) -> Iterator[object]:
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            yield value
            stack.extend(value.values())
        elif isinstance(value, list):
            yield value
            stack.extend(value)


def _list_wrapped(schema: Schema, ref: Json, value: object) -> Iterator[tuple[int, str]]:
    """The wrapped values of an object of a compiled kind; free-form parts of it stay plain."""
    atom = schema.resolve(ref)
    if atom.scalar:
        return
    if isinstance(value, dict) and atom.map:
        name = ".".join(atom.name.split(".")[-2:])
        yield id(value), f"struct type {name} to *structpb.Value" if atom.map.fields else _MAP
        for key, element in value.items():
            below = atom.map.of(key)
            if below is not None and below != "?":
                yield from _list_wrapped(schema, below, element)
    elif isinstance(value, list) and atom.list:
        yield id(value), _LIST
        for element in value:
            yield from _list_wrapped(schema, atom.list.element, element)


def _list_request_values(request: object) -> Iterator[tuple[int, str]]:
    fields = as_object(request) if isinstance(request, Mapping) else EMPTY
    for name, type_name in _REQUEST.items():
        if isinstance(fields.get(name), dict):
            yield id(fields[name]), f"struct type {type_name} to *structpb.Value"
    groups, extra = dig(fields, "userInfo", "groups"), dig(fields, "userInfo", "extra")
    yield id(groups), _LIST
    yield id(extra), _MAP
    yield from ((id(values), _LIST) for values in as_object(extra).values())
