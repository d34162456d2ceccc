"""The conversion of an object by the Go type of its kind: it is read from JSON and written as the API server writes it.

Mirrors the field rules of `encoding/json` (`omitempty`, `omitzero`, pointers, embedded structs) and of sigs.k8s.io/json, and the
storage in between, which does not distinguish an empty list from an absent one. Only parts that differ from the stored object are
visited: the stored object has been converted already. A field that only its schema defines, not the Go types of 1.36, is read by
the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeAlias, assert_never

from msgspec import Struct

from scanner.model.json import EMPTY, Json, JsonObject
from scanner.mutate.goread import SPECIAL_ZEROS, ZEROS
from scanner.mutate.gotypes import (
    GoAny,
    GoField,
    GoList,
    GoMap,
    GoPlain,
    GoSpecial,
    GoStruct,
    GoType,
    Special,
    get_always_written,
    get_fields,
    is_known,
)
from scanner.mutate.paths import place_element
from scanner.mutate.schema import Atom, MergedListType, MergedMapType, Scalar, Schema

Order: TypeAlias = Callable[[JsonObject, Mapping[str, GoField]], Iterable[str]]
"""The order in which the members of an object are read."""

_ABSENT: Json = ("no member",)  # null is a member
_SCHEMA_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_STORED_AS_JSON = ("io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.")
_CREATED = "creationTimestamp"
_STRUCT = GoStruct()
_TEXT = GoPlain("string", "string")


class FieldPlace(Struct, frozen=True):
    """The place of a value: the struct that has the field, the fields on the way, and the path with its indexes."""

    struct: str = ""
    fields: tuple[str, ...] = ()
    path: str = ""

    def field(self, struct: str, name: str, embedded: tuple[str, ...]) -> FieldPlace:
        """The place of a struct's field."""
        return FieldPlace(struct, (*self.fields, *embedded, name), self._append_name(name))

    def key(self, name: str) -> FieldPlace:
        """The place of a map's entry."""
        return FieldPlace(self.struct, self.fields, self._append_name(name))

    def index(self, at: int) -> FieldPlace:
        """The place of a list's element."""
        return FieldPlace(self.struct, self.fields, f"{self.path}[{at}]")

    def _append_name(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


class Reader(Protocol):
    """The reader of single values for a decoder, including values that do not fit their type."""

    def read_plain(self, go: GoPlain, value: Json, place: FieldPlace) -> Json:
        """A text, number or boolean."""
        ...

    def read_bytes(self, value: Json, place: FieldPlace) -> Json:
        """Bytes."""
        ...

    def read_special(self, kind: Special, value: Json, place: FieldPlace) -> Json:
        """Handle a value of a type with its own decoder: return its written form."""
        ...

    def reject_misplaced(self, value: Json, expected: str, type_: str, place: FieldPlace) -> None:
        """Handle a value that is not of the list, map or struct type that is required."""
        ...

    def report_unknown(self, place: FieldPlace, name: str) -> None:
        """Handle a member that the struct does not have."""
        ...

    def enter(self, place: FieldPlace) -> tuple[Reader, FieldPlace]:
        """The reader for the content of a type with its own decoder, and the place that its errors name."""
        ...


def keep_order(value: JsonObject, fields: Mapping[str, GoField]) -> Iterable[str]:
    """The order of the document itself, where no order is required."""
    del fields
    return value


def order_by_name(value: JsonObject, fields: Mapping[str, GoField]) -> Iterable[str]:
    """The order in which Go writes a map."""
    del fields
    return sorted(value)


def order_by_field(value: JsonObject, fields: Mapping[str, GoField]) -> Iterable[str]:
    """The order of the struct."""
    return [*(name for name in fields if name in value), *(name for name in value if name not in fields)]


class Rewriting:
    """One object, read by a reader."""

    def __init__(self, schema: Schema, reader: Reader, order: Order = keep_order) -> None:
        self._schema = schema
        self._reader = reader
        self._order = order

    def rewrite(self, document: JsonObject, before: JsonObject | None) -> JsonObject:
        """The whole object as Go writes it after it was read. Without an object `before`, it has all fields that Go always writes."""
        return self.rewrite_struct(self._schema.resolve(self._schema.root), document, before, FieldPlace())

    def rewrite_value(self, ref: Json, go: GoType, value: Json, before: Json, place: FieldPlace) -> Json:
        """A value of a type, as Go writes it; null where the type requires null."""
        if value is None:
            return self._make_zero(ref, go, before)
        match go:
            case GoPlain():
                return self._reader.read_plain(go, value, place)
            case GoSpecial():
                return self._rewrite_special(go.kind, value, before, place)
            case GoAny():
                return value
            case GoStruct():
                return self._rewrite_struct(ref, value, before, place)
            case GoList():
                return self._rewrite_list(ref, go, value, before, place)
            case GoMap():
                return self._rewrite_map(ref, go, value, before, place)
            case _ as never:
                assert_never(never)

    def _make_zero(self, ref: Json, go: GoType, before: Json) -> Json:
        """The JSON that Go writes for an absent value."""
        if go.pointer:
            return None
        match go:
            case GoPlain():
                return ZEROS[go.kind]
            case GoSpecial():
                return SPECIAL_ZEROS.get(go.kind)
            case GoStruct():
                return self.rewrite_struct(self._schema.resolve(ref), EMPTY, before, FieldPlace())
            case _:
                return None

    def _rewrite_special(self, kind: Special, value: Json, before: Json, place: FieldPlace) -> Json:
        match kind:
            case "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray":
                reader, place = self._reader.enter(place)
                inner = Rewriting(self._schema, reader, self._order)
                return inner._rewrite_schema_or(kind, value, before, place)
            case _:
                return self._reader.read_special(kind, value, place)

    def _rewrite_schema_or(self, kind: Special, value: Json, before: Json, place: FieldPlace) -> Json:
        """A JSON schema, or an alternative that is allowed in its place; any other value is dropped."""
        if isinstance(value, dict):
            return self._rewrite_struct(self._get_schema_props(), value, before, place)
        if kind == "JSONSchemaPropsOrBool":
            return self._reader.read_special(kind, value, place)
        if not isinstance(value, list):
            return None
        if kind == "JSONSchemaPropsOrArray":
            return [self.rewrite_value(self._get_schema_props(), _STRUCT, item, None, place) for item in value] or None
        return [self.rewrite_value("s", _TEXT, item, None, place) for item in value] or None

    def _get_schema_props(self) -> Json:
        """The type of a JSON schema; where that is unknown, anything."""
        return self._schema.names.index(_SCHEMA_PROPS) if _SCHEMA_PROPS in self._schema.names else "?"

    def _rewrite_struct(self, ref: Json, value: Json, before: Json, place: FieldPlace) -> Json:
        atom = self._schema.resolve(ref)
        if isinstance(value, dict):
            return self.rewrite_struct(atom, value, before, place)
        self._reader.reject_misplaced(value, "struct", shorten_name(atom.name), place)
        return None

    def rewrite_struct(self, atom: Atom, value: JsonObject, before: Json, place: FieldPlace) -> JsonObject:
        """The members of a struct that Go writes."""
        of = atom.map
        if of is None:
            return value
        fields = get_fields(atom.name)
        stored_members = before if isinstance(before, dict) else EMPTY
        is_bare = not of.fields and is_known(atom.name)
        members: dict[str, Json] = {}
        for name in self._order(value, fields):
            member, stored = value[name], stored_members.get(name, _ABSENT)
            if member is stored:
                members[name] = member
                continue
            below = None if is_bare else of.of(name)
            if below is None:
                self._reader.report_unknown(place, name)
                continue
            field = fields.get(name) or infer_field(self._schema, of, name)
            at = place.field(shorten_name(atom.name).rpartition(".")[2], name, field.embedded)
            rewritten = self.rewrite_value(below, field.type, member, None if stored is _ABSENT else stored, at)
            if (member is not None) if field.type.pointer else rewritten:
                members[name] = rewritten
            elif field.always:
                members[name] = self._write_empty(atom, field.type, rewritten, stored)
        return self._complete(members, atom, of, value, before)

    def _write_empty(self, atom: Atom, go: GoType, empty: Json, stored: Json) -> Json:
        """The form of an empty value that is written: the storage keeps no empty list or map, except in JSON fields."""
        is_kept = not isinstance(go, GoList | GoMap) or go.pointer or atom.name.startswith(_STORED_AS_JSON)
        return empty if is_kept or stored == empty else None

    def _complete(
        self, members: dict[str, Json], atom: Atom, of: MergedMapType, value: JsonObject, before: Json
    ) -> JsonObject:
        """The struct with the absent fields that Go always writes.

        A field that the stored struct lacks too is not added: its server may be of another release.
        """
        for name, field in get_always_written(atom.name).items():
            if name in value or name not in of.fields or (isinstance(before, dict) and name not in before):
                continue
            stored = before.get(name) if isinstance(before, dict) else None
            members[name] = self._make_zero(of.fields[name], field.type, stored)
        if isinstance(before, dict) and _CREATED not in members and before.get(_CREATED, _ABSENT) is None:
            members[_CREATED] = None  # servers before 1.34 write it where it is zero
        return members

    def _rewrite_list(self, ref: Json, go: GoList, value: Json, before: Json, place: FieldPlace) -> Json:
        if isinstance(go.element, GoPlain) and go.element.kind == "uint8":
            return self._reader.read_bytes(value, place)
        if not isinstance(value, list):
            self._reader.reject_misplaced(value, "slice", write_go_type(self._schema, ref, go), place)
            return None
        of = self._schema.resolve(ref).list or MergedListType("?")
        stored = before if isinstance(before, list) else []
        same = {id(element) for element in stored}
        if same.issuperset(map(id, value)):
            return value
        partners = self._index_stored(of, stored)
        return [
            element
            if id(element) in same and isinstance(element, dict | list)
            else self.rewrite_value(
                of.element,
                go.element,
                element,
                partners.get(place_element(self._schema, of, at, element)),
                place.index(at),
            )
            for at, element in enumerate(value)
        ]

    def _index_stored(self, of: MergedListType, stored: list[Json]) -> dict[str, Json]:
        return {place_element(self._schema, of, at, element): element for at, element in enumerate(stored)}

    def _rewrite_map(self, ref: Json, go: GoMap, value: Json, before: Json, place: FieldPlace) -> Json:
        if not isinstance(value, dict):
            self._reader.reject_misplaced(value, "map", write_go_type(self._schema, ref, go), place)
            return None
        of = self._schema.resolve(ref).map
        element = of.element if of else None
        stored = before if isinstance(before, dict) else EMPTY
        return {
            name: value[name]
            if value[name] is stored.get(name, _ABSENT)
            else self._rewrite_entry(
                "?" if element is None else element, go.element, value[name], stored.get(name), place.key(name)
            )
            for name in self._order(value, {})
        }

    def _rewrite_entry(self, ref: Json, go: GoType, value: Json, before: Json, place: FieldPlace) -> Json:
        """A map's entry; a null in a map of bytes is read from the storage as empty bytes."""
        member = self.rewrite_value(ref, go, value, before, place)
        return "" if member is None and isinstance(go, GoList) and go.element.kind == "uint8" else member  # type: ignore[union-attr]


# The Go type of a field that the Go types of 1.36 lack, inferred from its schema, and the form of a type in error
# texts.
#
# A server of another release has fields that these types lack. An optional field that is not a string is taken for a
# pointer, as the API conventions require.

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


def infer_field(schema: Schema, of: MergedMapType, name: str) -> GoField:
    """The field of an object with a given name, as its schema describes it: the Go type itself is unknown."""
    atom = schema.resolve(of.of(name))
    always = name in of.written
    go = _infer_type(schema, atom)
    if always and isinstance(go, GoPlain):
        go = GoPlain(go.kind, go.name)
    if isinstance(go, GoStruct):
        go = GoStruct(pointer=not always)
    return GoField(go, always=always) if name in of.fields else GoField(go, always=True)


def _infer_type(schema: Schema, atom: Atom) -> GoType:
    if atom.name in _SPECIAL:
        return GoSpecial(_SPECIAL[atom.name], pointer=True)
    if atom.scalar:
        return _PLAIN.get(atom.scalar) or GoAny(pointer=True)
    if atom.list:
        return GoList(_get_element(schema, atom.list.element))
    if atom.map and not atom.map.fields and atom.map.element is not None:
        return GoMap(_get_element(schema, atom.map.element))
    return GoStruct()


def _get_element(schema: Schema, ref: Json) -> GoType:
    go = _infer_type(schema, schema.resolve(ref))
    return GoPlain(go.kind, go.name) if isinstance(go, GoPlain) else go


def write_go_type(schema: Schema, ref: Json, go: GoType) -> str:
    """A type as error texts print it."""
    match go:
        case GoPlain():
            return go.name
        case GoList():
            of = schema.resolve(ref).list
            return go.name or f"[]{write_go_type(schema, of.element if of else '?', go.element)}"
        case GoMap():
            of_map = schema.resolve(ref).map
            element = of_map.element if of_map and of_map.element is not None else "?"
            return go.name or f"map[{go.key}]{write_go_type(schema, element, go.element)}"
        case GoAny():
            return "interface {}"
        case GoStruct() | GoSpecial():
            return shorten_name(schema.resolve(ref).name)
        case _ as never:
            assert_never(never)


def shorten_name(definition: str) -> str:
    """The Go name of a definition: its package and its type."""
    return ".".join(definition.split(".")[-2:])
