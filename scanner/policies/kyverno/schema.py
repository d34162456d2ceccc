"""The API server's errors for a document by the schema of its kind, before Kyverno's webhook receives it.

Source of truth: the CustomResourceDefinitions of `policies.kyverno.io` in Kyverno 1.19, and `pkg/apiserver/validation` of
k8s.io/apiextensions-apiserver. A schema is data: an object maps its fields, a list holds the schema of its elements, `...` is
anything, and a text names a type. A type that ends with `!` is required; one with `|` has only these values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from scanner.cel.values.text import quote
from scanner.model.json import Json, as_list, as_object

Schema: TypeAlias = "str | Sequence[Schema] | Mapping[str, Schema] | object"
TEXTS: Schema = ["string"]
LABELS = "labels"
_FORMATS = {"date-time": "string", "int32": "integer"}
_INT64 = 2**63


def schema_faults(value: Json, schema: Schema, path: str) -> Iterator[str]:
    """The errors of a value at `path`; fields that the schema does not have are dropped silently."""
    if isinstance(schema, str):
        yield from _leaf_faults(value, schema.removesuffix("!"), path)
    elif isinstance(schema, list):
        yield from _type_faults(value, "array", path)
        for index, item in enumerate(as_list(value)):
            yield from schema_faults(item, schema[0], f"{path}[{index}]")
    elif isinstance(schema, Mapping):
        yield from _type_faults(value, "object", path)
        yield from _field_faults(value, schema, path)


def named_faults(value: Json, path: str) -> Iterator[str]:
    """The errors of a list whose elements are identified by their names."""
    names: set[str] = set()
    for index, item in enumerate(as_list(value)):
        name = as_object(item).get("name")
        if not isinstance(item, Mapping):
            yield f"{path}[{index}]: Invalid value: {_json(item)}: must be an object for an array of list-type map"
        elif isinstance(name, str) and name in names:
            yield f'{path}[{index}]: Duplicate value: {{"name":{quote(name)}}}'
        names |= {name} if isinstance(name, str) else set()


def repeated_faults(value: Json, path: str) -> Iterator[str]:
    """The repeated texts in a list that is a set."""
    items = as_list(value)
    for index, item in enumerate(items):
        if isinstance(item, str) and item in items[:index]:
            yield f"{path}[{index}]: Duplicate value: {quote(item)}"


def _field_faults(value: Json, schema: Mapping[str, Schema], path: str) -> Iterator[str]:
    """The errors of an object's fields; null is an absent field (`PruneNonNullableNullsWithoutDefaults`)."""
    fields = as_object(value)
    for name, field_schema in schema.items():
        where = f"{path}.{name}"
        if fields.get(name) is not None:
            yield from schema_faults(fields[name], field_schema, where)
        elif isinstance(value, Mapping) and isinstance(field_schema, str) and field_schema.endswith("!"):
            yield f"{where}: Required value"


def _leaf_faults(value: Json, type_: str, path: str) -> Iterator[str]:
    if type_ == LABELS:
        yield from _type_faults(value, "object", path)
        for key, item in as_object(value).items():
            yield from _type_faults(item, "string", f"{path}.{key}") if item is not None else ()
    elif type_ in _FORMATS:
        yield from _format_faults(value, type_, path)
    elif "|" in type_:
        choices = type_.split("|")
        yield from _type_faults(value, "string", path)
        if value not in choices:
            yield f"{path}: Unsupported value: {_json(value)}: supported values: {', '.join(map(quote, choices))}"
    else:
        yield from _type_faults(value, type_, path)


def _format_faults(value: Json, type_: str, path: str) -> Iterator[str]:
    """The errors of a value with a format, which is mostly checked before the type; a list in place of a time has none."""
    word = _type(value)
    if type_ == "int32" and word in ("string", "array"):
        yield from _type_faults(value, "integer", path)
    elif word != _FORMATS[type_] and word != "array":
        shown = "float64" if isinstance(value, float) else ""
        yield f'{path}: Invalid value: "{shown}": {path} in body must be of type {type_}: "{shown}"'
    elif type_ == "date-time" and isinstance(value, str) and moment(value) is None:
        yield f"{path}: Invalid value: {quote(value)}: {path} in body must be of type {type_}: {quote(value)}"


def moment(text: str) -> datetime | None:
    """A time in ISO 8601, in UTC if it names no zone, or None for another text."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _type_faults(value: Json, type_: str, path: str) -> Iterator[str]:
    word = _type(value)
    if word != type_:
        yield f'{path}: Invalid value: "{word}": {path} in body must be of type {type_}: "{word}"'


def _type(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer" if value < _INT64 else "number"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case _:
            return "object" if isinstance(value, Mapping) else "array"
