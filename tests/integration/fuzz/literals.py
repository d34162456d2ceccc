"""Apply configurations as expressions: `Object.spec.…{}` literals that say one thing about an object.

Objects are literals of their type, maps with free keys are map literals, and an element of a list that is merged by keys
is named by them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scanner.model.json import Json, JsonObject
from scanner.mutate.schema import UNTYPED, Atom, MergedMapType, Schema

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    [
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    ]
)
_LITERALS = {True: "true", False: "false", None: "null"}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in an object that a configuration can speak of, with the name of its type where that is an object."""

    path: str
    steps: tuple[str | int, ...]
    type_name: str
    value: Json
    atom: Atom


def places(schema: Schema, document: JsonObject) -> tuple[list[Place], list[Place]]:
    """All places but those in maps and lists below which no field can be named: those with a value, and those without."""
    places = [*_below(schema, schema.root, document, Place("", (), "Object", document, UNTYPED))]
    return [place for place in places if place.value is not None], [place for place in places if place.value is None]


def _below(schema: Schema, ref: Json, value: Json, place: Place) -> Iterator[Place]:
    atom = schema.resolve(ref)
    if isinstance(value, Mapping) and atom.map:
        for name, item in {**dict.fromkeys(atom.map.fields), **value}.items():
            below, member = atom.map.of(name), _member(schema, atom.map, place, name, item)
            if member is not None:
                yield member
                yield from _below(schema, below, item, member)
    elif isinstance(value, list) and atom.list:
        for at, item in enumerate(value):
            element = Place(
                f"{place.path}/{at}", (*place.steps, at), place.type_name, item, schema.resolve(atom.list.element)
            )
            yield element
            yield from _below(schema, atom.list.element, item, element)


def _member(schema: Schema, of: MergedMapType, owner: Place, name: str, value: Json) -> Place | None:
    is_field, ref = name in of.fields, of.of(name)
    if ref is None or name == "managedFields" or (is_field and not _IDENTIFIER.fullmatch(name)):
        return None
    type_name = f"{owner.type_name}.{_escaped(name)}" if is_field and owner.type_name else ""
    path = f"{owner.path}/{name.replace('~', '~0').replace('/', '~1')}"
    return Place(path, (*owner.steps, name), type_name, value, schema.resolve(ref))


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes configurations of one object. With `new`, elements have other keys than those that are there."""

    schema: Schema
    document: JsonObject
    new: bool = False

    def configuration(self, place: Place, value: str) -> str:
        """The configuration that puts an expression at a place."""
        return self._around(self.schema.root, self.document, place.steps, "Object", value)

    def _around(self, ref: Json, here: Json, steps: Sequence[str | int], type_name: str, value: str) -> str:
        if not steps:
            return value
        atom, (step, *rest) = self.schema.resolve(ref), steps
        if isinstance(step, int) and isinstance(here, list) and atom.list:
            inner = self._around(atom.list.element, here[step], rest, type_name, value)
            return f"[{self._keyed(atom.list.keys, here[step], inner, rest)}]"
        assert isinstance(step, str)
        assert isinstance(here, Mapping)
        assert atom.map
        is_field = step in atom.map.fields and type_name != ""
        below = f"{type_name}.{_escaped(step)}" if is_field else ""
        inner = self._around(atom.map.of(step), here.get(step), rest, below, value)
        return f"{type_name}{{{_escaped(step)}: {inner}}}" if is_field else f"{{{json.dumps(step)}: {inner}}}"

    def _keyed(self, keys: Sequence[str], element: Json, inner: str, rest: Sequence[str | int]) -> str:
        """An element with the keys by which it is merged, other than the one that is spoken of."""
        if not rest or not isinstance(element, Mapping) or not inner.startswith("Object"):
            return inner
        named = [f", {_escaped(key)}: {self._key(element[key])}" for key in keys if key in element and key != rest[0]]
        return f"{inner[:-1]}{''.join(named)}}}"

    def _key(self, value: Json) -> str:
        if self.new and not isinstance(value, bool) and isinstance(value, str | int):
            return literal(f"{value}-new" if isinstance(value, str) else value + 1)
        return literal(value)


def _escaped(name: str) -> str:
    return f"__{name}__" if name in _RESERVED else name


def literal(value: Json) -> str:
    """A JSON value as an expression; what mixes types has to be dynamic."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(name)}: dyn({literal(item)})' for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(f'dyn({literal(item)})' for item in value)}]"
    if value is None or isinstance(value, bool):
        return _LITERALS[value]
    return json.dumps(value)
