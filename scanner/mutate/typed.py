"""The validation of a value against its schema, and of a patch that writes into an atomic part.

Mirrors `typed.validate` of structured-merge-diff v6 and `validatePatch` of apiserver 1.36's ApplyConfiguration patcher.

Rules: `docs/semantics/mutation.md#apply-configuration`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scanner.cel.values.text import printed_double, quoted
from scanner.model.json import Json
from scanner.mutate.native import Foreign, NilList, go_text
from scanner.mutate.paths import BadElement, element_key
from scanner.mutate.schema import Atom, ListType, MapType, Scalar, Schema

_NUMERIC = frozenset({"numeric", "int32", "int64"})
_GO_TYPES = {bool: "bool", int: "int64", float: "float64", str: "string"}


def faults(schema: Schema, value: object, *, duplicates: bool = False) -> str:
    """The errors of a value, in the API's words, empty for a valid one. With `duplicates`, keys of lists may occur twice."""
    errors = list(_Validation(schema, duplicates=duplicates).visit(schema.root, value, ""))
    if len(errors) < 2:  # noqa: PLR2004 - one error stands alone, several are listed
        return "".join(errors)
    return "\n  ".join(["errors:", *errors])


class _Validation:
    def __init__(self, schema: Schema, *, duplicates: bool) -> None:
        self._schema = schema
        self._duplicates = duplicates

    def visit(self, ref: Json, value: object, path: str) -> Iterator[str]:
        atom = self._schema.resolve(ref).deduced(value)
        if atom.map:
            yield from self._map(atom.map, value, path)
        elif atom.scalar:
            yield from _placed(path, scalar_fault(atom.scalar, value))
        elif atom.list:
            yield from self._list(atom.list, value, path)

    def _map(self, of: MapType, value: object, path: str) -> Iterator[str]:
        if value is None:
            return
        if not isinstance(value, dict):
            yield from _placed(path, f"expected map, got {_pointed(value)}")
            return
        for name, member in value.items():
            ref = of.of(name)
            if ref is None:
                yield f"{path}.{name}: field not declared in schema"
                return
            yield from self.visit(ref, member, f"{path}.{name}")

    def _list(self, of: ListType, value: object, path: str) -> Iterator[str]:
        if value is None:
            return
        if not isinstance(value, list):
            yield from _placed(path, f"expected list, got {_pointed(value)}")
            return
        seen: set[str] = set()
        for index, element in enumerate(value):
            try:
                place = element_key(self._schema, of, element) if of.associative else f"[{index}]"
            except BadElement as error:
                yield from _placed(path, f"element {index}: {error}")
                return
            if of.associative and place in seen and not self._duplicates:
                yield from _placed(path, f"duplicate entries for key {place}")
            seen.add(place)
            yield from self.visit(of.element, element, path + place)


def _placed(path: str, message: str) -> Iterator[str]:
    if message:
        yield f"{path}: {message}" if path else message


def scalar_fault(scalar: Scalar, value: object) -> str:
    """The error of a value that is not of a scalar type, or an empty text. Null is of every type."""
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar in _NUMERIC:
        return "" if is_number else f"expected numeric (int or float), got {_type(value)}"
    if scalar == "string":
        return (
            "" if isinstance(value, str) else f"expected string, got &value.valueUnstructured{{Value:{_source(value)}}}"
        )
    if scalar == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got {_pointed(value)}"
    return "" if is_number or isinstance(value, bool | str) else f"expected any scalar, got {_pointed(value)}"


def _type(value: object) -> str:
    if isinstance(value, Foreign):
        return value.type
    if isinstance(value, list):
        return "[]interface {}"
    return _GO_TYPES.get(type(value), "map[string]interface {}")


def _pointed(value: object) -> str:
    return f"&{{{go_text(value)}}}"


def _source(value: object) -> str:
    """A value as Go's `%#v` prints it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return printed_double(value)
        case str():
            return quoted(value)
        case NilList():
            return "[]interface {}(nil)"
        case list():
            return f"[]interface {{}}{{{', '.join(map(_source, value))}}}"
        case Mapping():
            pairs = ", ".join(f"{quoted(key)}:{_source(value[key])}" for key in sorted(value))
            return f"map[string]interface {{}}{{{pairs}}}"
        case None:
            return "interface {}(nil)"
        case Foreign():
            return value.source
        case _:
            return go_text(value)


def atomics(schema: Schema, patch: object) -> list[str]:
    """The paths at which a patch touches an atomic list, map or struct, in order."""
    return list(_atomics(schema, schema.root, patch, ""))


def _atomics(schema: Schema, ref: Json, value: object, path: str) -> Iterator[str]:
    atom: Atom = schema.resolve(ref)
    if isinstance(value, dict) and atom.map:
        if atom.map.atomic:
            yield path
        for name, element in value.items():
            if name in atom.map.fields:
                yield from _atomics(schema, atom.map.fields[name], element, f"{path}.{name}")
    if isinstance(value, list) and atom.list:
        if not atom.list.associative:
            yield path
        for index, element in enumerate(value):
            yield from _atomics(schema, atom.list.element, element, f"{path}[{index}]")
