"""The Go type of a field that the Go types of 1.36 lack, inferred from its schema, and the form of a type in error texts.

A server of another release has fields that these types lack. An optional field that is not a string is taken for a pointer,
as the API conventions require.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from scanner.model.json import Json
from scanner.mutate.gotypes import GoAny, GoField, GoList, GoMap, GoPlain, GoSpecial, GoStruct, GoType, Special
from scanner.mutate.schema import Atom, MapType, Scalar, Schema

_PLAIN: Mapping[Scalar, GoType] = {
    "string": GoPlain("string", "string"),
    "boolean": GoPlain("bool", "bool", pointer=True),
    "int32": GoPlain("int32", "int32", pointer=True),
    "int64": GoPlain("int64", "int64", pointer=True),
    "numeric": GoPlain("float64", "float64", pointer=True),
    "quantity": GoSpecial("Quantity", pointer=True),
}
_SPECIAL: Mapping[str, Special] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "Time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
}


def inferred(schema: Schema, of: MapType, name: str) -> GoField:
    """The field of an object with a given name, as its schema describes it: the Go type itself is unknown."""
    atom = schema.resolve(of.of(name))
    always = name in of.written
    go = _inferred(schema, atom)
    if always and isinstance(go, GoPlain):
        go = GoPlain(go.kind, go.name)
    if isinstance(go, GoStruct):
        go = GoStruct(pointer=not always)
    return GoField(go, always=always) if name in of.fields else GoField(go, always=True)


def _inferred(schema: Schema, atom: Atom) -> GoType:
    if atom.name in _SPECIAL:
        return GoSpecial(_SPECIAL[atom.name], pointer=True)
    if atom.scalar:
        return _PLAIN.get(atom.scalar) or GoAny(pointer=True)
    if atom.list:
        return GoList(_element(schema, atom.list.element))
    if atom.map and not atom.map.fields and atom.map.element is not None:
        return GoMap(_element(schema, atom.map.element))
    return GoStruct()


def _element(schema: Schema, ref: Json) -> GoType:
    go = _inferred(schema, schema.resolve(ref))
    return GoPlain(go.kind, go.name) if isinstance(go, GoPlain) else go


def go_text(schema: Schema, ref: Json, go: GoType) -> str:
    """A type as error texts print it."""
    match go:
        case GoPlain():
            return go.name
        case GoList():
            of = schema.resolve(ref).list
            return go.name or f"[]{go_text(schema, of.element if of else '?', go.element)}"
        case GoMap():
            of_map = schema.resolve(ref).map
            element = of_map.element if of_map and of_map.element is not None else "?"
            return go.name or f"map[{go.key}]{go_text(schema, element, go.element)}"
        case GoAny():
            return "interface {}"
        case GoStruct() | GoSpecial():
            return short(schema.resolve(ref).name)
        case _ as never:
            assert_never(never)


def short(definition: str) -> str:
    """The Go name of a definition: its package and its type."""
    return ".".join(definition.split(".")[-2:])
