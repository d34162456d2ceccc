"""What the API server makes of a document that a JSON patch left behind.

Mirrors its strict decoder: for kinds that are compiled into it unknown fields and values of the wrong type end the request;
custom resources are taken as they are. A stored object of a kind that is compiled in came through its Go type and suits its schema:
only what a patch has changed is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from scanner.cel.text import quoted
from scanner.model.json import EMPTY, Json, JsonObject, as_text
from scanner.mutate.schema import MapType, Scalar, Schema
from scanner.mutate.values import RequestFault

_PREFIX = "Internal error occurred: "
_GO: dict[Scalar, str] = {
    "string": "string",
    "boolean": "bool",
    "int32": "int32",
    "int64": "int64",
    "numeric": "float64",
}


def strictly_decoded(schema: Schema, document: Json, live: JsonObject) -> JsonObject:
    """The document, its kind filled in where the server knows it anyway. Raises RequestFault."""
    if not isinstance(document, dict):
        raise RequestFault(f"{_PREFIX}{_undecodable(document, live)}")
    if not schema.builtin:
        return _with_kind(document)
    if _suits(schema, schema.root, document, live):
        return _known(document, live)
    if fault := next(_misfits(schema, schema.root, document, (), ""), ""):
        raise RequestFault(f"{_PREFIX}{fault}")
    if unknown := list(_unknown(schema, schema.root, document, "")):
        fields = ", ".join(f"unknown field {quoted(path)}" for path in unknown)
        raise RequestFault(f"{_PREFIX}strict decoding error: {fields}")
    return _known(document, live)


def _known(document: JsonObject, live: JsonObject) -> JsonObject:
    return {**{key: live[key] for key in ("kind", "apiVersion") if key in live}, **document}


def _suits(schema: Schema, ref: Json, value: Json, before: Json) -> bool:
    """Whether a typed decoder can read a value and knows every field in it; what has not changed is known to suit."""
    if value is None or value is before:
        return True
    atom = schema.resolve(ref)
    if atom.map and atom.scalar:
        return True
    if isinstance(value, dict) and atom.map:
        return _suits_within(schema, atom.map, value, before if isinstance(before, dict) else EMPTY)
    if isinstance(value, list) and atom.list:
        known = {id(one) for one in before} if isinstance(before, list) else frozenset()
        return all(id(one) in known or _suits(schema, atom.list.element, one, None) for one in value)
    return _fits(atom.scalar, value)


def _suits_within(schema: Schema, of: MapType, value: JsonObject, before: JsonObject) -> bool:
    for name, one in value.items():
        known = before.get(name)
        below = of.of(name)
        if one is not known and (below is None or not _suits(schema, below, one, known)):
            return False
    return True


def _undecodable(document: Json, live: JsonObject) -> str:
    kind = as_text(live.get("kind"))
    version = as_text(live.get("apiVersion")).rpartition("/")[2]
    return f"json: cannot unmarshal {_word(document)} into Go value of type {version}.{kind}"


def _with_kind(document: JsonObject) -> JsonObject:
    if not as_text(document.get("kind")):
        raise RequestFault(f"{_PREFIX}Object 'Kind' is missing in '{orjson.dumps(document).decode()}'")
    return document


def _unknown(schema: Schema, ref: Json, value: Json, path: str) -> Iterator[str]:
    atom = schema.resolve(ref)
    if isinstance(value, dict) and atom.map:
        for name, one in value.items():
            place = f"{path}.{name}" if path else name
            below = atom.map.of(name)
            if below is None:
                yield place
            else:
                yield from _unknown(schema, below, one, place)
    elif isinstance(value, list) and atom.list:
        for index, one in enumerate(value):
            yield from _unknown(schema, atom.list.element, one, f"{path}[{index}]")


def _misfits(schema: Schema, ref: Json, value: Json, path: tuple[str, ...], struct: str) -> Iterator[str]:
    """What a typed decoder cannot read, in document order."""
    atom = schema.resolve(ref)
    if value is None or (atom.map and atom.scalar):
        return
    if isinstance(value, dict) and atom.map:
        yield from _misfits_within(schema, atom.map, value, path, atom.name or struct)
    elif isinstance(value, list) and atom.list:
        for one in value:
            yield from _misfits(schema, atom.list.element, one, path, struct)
    elif not _fits(atom.scalar, value):
        where = f"{struct.rpartition('.')[2]}.{'.'.join(path)}"
        expected = _GO.get(atom.scalar or "untyped") or _container(schema, ref)
        yield f"json: cannot unmarshal {_word(value)} into Go struct field {where} of type {expected}"


def _misfits_within(
    schema: Schema, of: MapType, value: JsonObject, path: tuple[str, ...], struct: str
) -> Iterator[str]:
    for name, one in value.items():
        below = of.of(name)
        if below is not None:
            yield from _misfits(schema, below, one, (*path, name) if of.fields else path, struct)


def _fits(scalar: Scalar | None, value: Json) -> bool:
    match scalar:
        case "untyped" | "quantity":
            return True
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "int32" | "int64":
            return isinstance(value, int) and not isinstance(value, bool)
        case "numeric":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case None:
            return False


def _container(schema: Schema, ref: Json) -> str:
    """The Go type of a list, map or struct, as error texts print it."""
    atom = schema.resolve(ref)
    if atom.list:
        return f"[]{_element(schema, atom.list.element)}"
    if atom.map and atom.map.element is not None:
        return f"map[string]{_element(schema, atom.map.element)}"
    return _short(atom.name)


def _element(schema: Schema, ref: Json) -> str:
    scalar = schema.resolve(ref).scalar
    return _GO.get(scalar, "string") if scalar else _container(schema, ref)


def _short(name: str) -> str:
    return ".".join(name.split(".")[-2:])


def _word(value: Json) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case None:
            return "null"
        case _:
            return "object"
