"""The Go types of the API's definitions: the types of a built-in kind's fields, and the conditions under which they are written.

Source of truth: the types of Kubernetes 1.36 (`gotypes.json`, written by `scripts/generate_go_types.py`). A field is one text:

| part | meaning |
|---|---|
| `string`, `bool`, `int32`, `int64`, `float64`, `uint8` | a plain value |
| `v1.PullPolicy=string` | the same under a type name, which error texts print |
| `*…`, `[]…`, `{}…`, `{v1.ResourceName}…` | a pointer, a list, a map, a map with named keys |
| `#` | the struct of the definition that the schema names there |
| `!Time` | a type with its own decoder |
| ` always` | written even when it is empty |
| ` in ProbeHandler` | a field of a struct that is embedded |
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Literal, TypeAlias, cast

import orjson
from msgspec import Struct

Plain: TypeAlias = Literal["string", "bool", "int32", "int64", "float64", "uint8"]
Special: TypeAlias = Literal[
    "Time",
    "MicroTime",
    "Quantity",
    "IntOrString",
    "RawExtension",
    "FieldsV1",
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
]


class GoPlain(Struct, frozen=True):
    """A text, a number or a boolean; `name` is how error texts print the type."""

    kind: Plain
    name: str
    pointer: bool = False


class GoSpecial(Struct, frozen=True):
    """A type with a decoder of its own."""

    kind: Special
    pointer: bool = False


class GoStruct(Struct, frozen=True):
    """The struct that the schema's definition names."""

    pointer: bool = False


class GoList(Struct, frozen=True):
    """A slice; `name` is empty where it has none."""

    element: GoType
    name: str = ""
    pointer: bool = False


class GoMap(Struct, frozen=True):
    """A map with texts for keys."""

    element: GoType
    name: str = ""
    key: str = "string"
    pointer: bool = False


class GoAny(Struct, frozen=True):
    """Any value."""

    pointer: bool = False


GoType: TypeAlias = "GoPlain | GoSpecial | GoStruct | GoList | GoMap | GoAny"


class GoField(Struct, frozen=True):
    """A field: its type, whether it is written when it is empty, and the structs through which it is embedded."""

    type: GoType
    always: bool = False
    embedded: tuple[str, ...] = ()


ANY = GoField(GoAny())
_NO_FIELDS: Mapping[str, GoField] = MappingProxyType({})


@cache
def get_fields(definition: str) -> Mapping[str, GoField]:
    """The fields of a definition's struct by name, in Go's order; none when the definition is unknown."""
    fields = _load_table().get(definition)
    return _NO_FIELDS if fields is None else {name: _read_field(code) for name, code in fields.items()}


@cache
def is_known(definition: str) -> bool:
    """Return whether the Go type of a definition is known."""
    return definition in _load_table()


@cache
def get_always_written(definition: str) -> Mapping[str, GoField]:
    """The fields, by name, that Go writes even when they are empty: those without `omitempty`."""
    return {name: field for name, field in get_fields(definition).items() if field.always}


@cache
def _load_table() -> Mapping[str, Mapping[str, str]]:
    table: Mapping[str, Mapping[str, str]] = orjson.loads(
        resources.files("scanner.cluster").joinpath("gotypes.json").read_bytes()
    )
    return table


@cache
def _read_field(code: str) -> GoField:
    rest, _, embedded = code.partition(" in ")
    type_code, _, always = rest.partition(" ")
    return GoField(read_type(type_code), always=bool(always), embedded=tuple(embedded.split(".")) if embedded else ())


def read_type(code: str, *, pointer: bool = False) -> GoType:
    """The type that a code denotes."""
    if code.startswith("*"):
        return read_type(code[1:], pointer=True)
    name, _, element_code = code.rpartition("=") if _is_named(code) else ("", "", code)
    if element_code.startswith("[]"):
        return GoList(read_type(element_code[2:]), name, pointer)
    if element_code.startswith("{"):
        key, _, element = element_code[1:].partition("}")
        return GoMap(read_type(element), name, key or "string", pointer)
    if element_code == "#":
        return GoStruct(pointer)
    if element_code == "any":
        return GoAny(pointer)
    if element_code.startswith("!"):
        return GoSpecial(cast("Special", element_code[1:]), pointer)
    return GoPlain(cast("Plain", element_code), name or element_code, pointer)


def _is_named(code: str) -> bool:
    return "=" in code and code[0] not in "[{"
