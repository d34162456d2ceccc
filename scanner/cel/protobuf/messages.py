"""The messages of protobuf that expressions can make, `google.protobuf.Int32Value{value: 1}`: their fields and their types.

Mirrors `pb.DefaultDb` of cel-go, which every environment begins with: the files any, duration, empty, struct, timestamp and
wrappers; and `checkedWellKnowns`, the types that the checker sees. They are the same in all releases from Kubernetes 1.30 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as Choice

from scanner.cel.types.type_system import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    nullable,
    object_type,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Choice[
    "bool",
    "bytes",
    "double",
    "float",
    "int32",
    "int64",
    "string",
    "uint32",
    "uint64",
    "enum",
    "struct",
    "list",
    "value",
]
"""The kinds of a field, or of each part of a repeated field."""

PACKAGE = "google.protobuf"
_OBJECTS = map_of(STRING, DYN)
_LISTS = list_of(DYN)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: its number on the wire, its kind, and the type that the checker expects of a value."""

    number: int
    kind: Kind
    type: Type

    @property
    def is_map(self) -> bool:
        """True if the field holds values by name."""
        return self.kind == "value" and self.type == _OBJECTS

    @property
    def is_list(self) -> bool:
        """True if the field holds any number of values."""
        return self.kind == "value" and self.type == _LISTS


@dataclass(frozen=True, slots=True, eq=False)
class MessageType:
    """A message type, and the type of its literals. `named`: its name alone is a value, as for types that stay messages."""

    name: str
    type: Type
    fields: Mapping[str, Field]
    named: bool = False


def _declare_wrapper(name: str, kind: Kind, type_: Type) -> MessageType:
    return MessageType(f"{PACKAGE}.{name}", nullable(type_), MappingProxyType({"value": Field(1, kind, type_)}))


def _declare_message(name: str, type_: Type | None = None, *, named: bool = False, **fields: Field) -> MessageType:
    full_name = f"{PACKAGE}.{name}"
    return MessageType(full_name, type_ or object_type(full_name), MappingProxyType(fields), named or type_ is None)


_MOMENT = {"seconds": Field(1, "int64", INT), "nanos": Field(2, "int32", INT)}
_ALL = (
    _declare_wrapper("BoolValue", "bool", BOOL),
    _declare_wrapper("BytesValue", "bytes", BYTES),
    _declare_wrapper("DoubleValue", "double", DOUBLE),
    _declare_wrapper("FloatValue", "float", DOUBLE),
    _declare_wrapper("Int32Value", "int32", INT),
    _declare_wrapper("Int64Value", "int64", INT),
    _declare_wrapper("StringValue", "string", STRING),
    _declare_wrapper("UInt32Value", "uint32", UINT),
    _declare_wrapper("UInt64Value", "uint64", UINT),
    _declare_message("Any", ANY, type_url=Field(1, "string", STRING), value=Field(2, "bytes", BYTES)),
    _declare_message("Duration", DURATION, named=True, **_MOMENT),
    _declare_message("Timestamp", TIMESTAMP, named=True, **_MOMENT),
    _declare_message("Empty"),
    _declare_message("Struct", _OBJECTS, fields=Field(1, "value", _OBJECTS)),
    _declare_message("Struct.FieldsEntry", key=Field(1, "string", STRING), value=Field(2, "value", DYN)),
    _declare_message("ListValue", _LISTS, values=Field(1, "value", _LISTS)),
    _declare_message(
        "Value",
        DYN,
        null_value=Field(1, "enum", INT),
        number_value=Field(2, "double", DOUBLE),
        string_value=Field(3, "string", STRING),
        bool_value=Field(4, "bool", BOOL),
        struct_value=Field(5, "struct", _OBJECTS),
        list_value=Field(6, "list", _LISTS),
    ),
)
MESSAGES: Mapping[str, MessageType] = MappingProxyType({message.name: message for message in _ALL})
ENUMS: Mapping[str, int] = MappingProxyType({f"{PACKAGE}.NullValue.NULL_VALUE": 0})
"""The values of enumerations, which are constants; an enumeration itself has no name in an expression."""
ALIASES: Mapping[str, str] = MappingProxyType(
    {"duration": f"{PACKAGE}.Duration", "timestamp": f"{PACKAGE}.Timestamp", "null_type": f"{PACKAGE}.NullValue"}
)
"""Kubernetes' names of types that the checker takes for messages, with their fields; expressions cannot make values of them."""
