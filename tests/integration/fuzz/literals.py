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
from scanner.mutate.schema import Schema

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


def places(schema: Schema, document: JsonObject) -> list[Place]:
    """All places but those in maps and lists below which no field can be named."""
    return [*_below(schema, schema.root, document, Place("", (), "Object", document))]


def _below(schema: Schema, ref: Json, value: Json, place: Place) -> Iterator[Place]:
    atom = schema.resolve(ref)
    if isinstance(value, Mapping) and atom.map:
        for name, one in value.items():
            below = atom.map.of(name)
            is_field = name in atom.map.fields
            if below is None or name == "managedFields" or (is_field and not _IDENTIFIER.fullmatch(name)):
                continue
            type_name = f"{place.type_name}.{_escaped(name)}" if is_field and place.type_name else ""
            path = f"{place.path}/{name.replace('~', '~0').replace('/', '~1')}"
            found = Place(path, (*place.steps, name), type_name, one)
            yield found
            yield from _below(schema, below, one, found)
    elif isinstance(value, list) and atom.list:
        for at, one in enumerate(value):
            found = Place(f"{place.path}/{at}", (*place.steps, at), place.type_name, one)
            yield found
            yield from _below(schema, atom.list.element, one, found)


def configuration(schema: Schema, document: JsonObject, place: Place, value: str) -> str:
    """The configuration that puts an expression at a place."""
    return _around(schema, schema.root, document, place.steps, "Object", value)


def _around(schema: Schema, ref: Json, here: Json, steps: Sequence[str | int], type_name: str, value: str) -> str:
    if not steps:
        return value
    atom, (step, *rest) = schema.resolve(ref), steps
    if isinstance(step, int) and isinstance(here, list) and atom.list:
        inner = _around(schema, atom.list.element, here[step], rest, type_name, value)
        return f"[{_keyed(atom.list.keys, here[step], inner, rest)}]"
    assert isinstance(step, str)
    assert isinstance(here, Mapping)
    assert atom.map
    is_field = step in atom.map.fields and type_name != ""
    inner = _around(
        schema, atom.map.of(step), here[step], rest, f"{type_name}.{_escaped(step)}" if is_field else "", value
    )
    if is_field:
        return f"{type_name}{{{_escaped(step)}: {inner}}}"
    return f"{{{json.dumps(step)}: {inner}}}"


def _keyed(keys: Sequence[str], element: Json, inner: str, rest: Sequence[str | int]) -> str:
    """An element with the keys by which it is merged, other than the one that is spoken of."""
    if not rest or not isinstance(element, Mapping) or not inner.endswith("}"):
        return inner
    named = [f"{_escaped(key)}: {literal(element[key])}" for key in keys if key in element and key != rest[0]]
    return f"{inner[:-1]}{''.join(f', {it}' for it in named)}}}" if inner.startswith("Object") else inner


def _escaped(name: str) -> str:
    return f"__{name}__" if name in _RESERVED else name


def literal(value: Json) -> str:
    """A JSON value as an expression; what mixes types has to be dynamic."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(name)}: dyn({literal(one)})' for name, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(f'dyn({literal(one)})' for one in value)}]"
    if value is None or isinstance(value, bool):
        return _LITERALS[value]
    return json.dumps(value)
