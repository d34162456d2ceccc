"""The conversion of a value to a field of a protobuf message, and its errors.

Mirrors `msgSetField` of cel-go's `types/provider.go` and the `ConvertToNative` of its values and of Kubernetes' own: a value that
becomes JSON has doubles for numbers, texts for integers beyond 2^53, and base64 for bytes. From 1.37 on the lists and maps of
native objects are Go values that are not JSON.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as Choice

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.functions.cidr import Prefix
from scanner.cel.functions.ip import IPAddress
from scanner.cel.functions.named_formats import NamedFormat
from scanner.cel.functions.quantity import Quantity
from scanner.cel.functions.semver import Semver
from scanner.cel.functions.url import Url
from scanner.cel.protobuf.prototext import PREFIX
from scanner.cel.releases import TYPED_LISTS
from scanner.cel.types.type_system import Type, empty_type
from scanner.cel.values.conversions import to_string
from scanner.cel.values.values import (
    Duration,
    KeyedMap,
    Lazy,
    Message,
    Opaque,
    Optional,
    Struct,
    Timestamp,
    UInt,
    Value,
    type_of,
)
from scanner.cel.values.wrapped_values import is_wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scanner.cel.protobuf.messages import Field, Kind, MessageType
    from scanner.cel.releases import Version

Target: TypeAlias = "Kind | Choice['uint8']"

_LARGEST_JSON_INT = 2**53 - 1
_GO_TYPES: Mapping[Target, str] = {
    "bool": "bool",
    "bytes": "[]uint8",
    "double": "float64",
    "float": "float32",
    "int32": "int32",
    "int64": "int64",
    "string": "string",
    "uint8": "uint8",
    "uint32": "uint32",
    "uint64": "uint64",
    "enum": "protoreflect.EnumNumber",
    "struct": "*structpb.Struct",
    "list": "*structpb.ListValue",
    "value": "*structpb.Value",
}
_GO_NAMES = {"enum": "EnumNumber", "bytes": "", "struct": "", "list": "", "value": ""}
"""The names of Go types that are not a complete type: pointers and slices have none."""
_LARGEST_INTS = {"int32": 2**31 - 1, "enum": 2**31 - 1, "int64": 2**63 - 1}
_LARGEST_UINTS = {"uint8": 2**8 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1}
_MESSAGES = {"struct": "google.protobuf.Struct", "list": "google.protobuf.ListValue"}
_TEXTUAL: dict[type, str] = {Quantity: "Quantity", IPAddress: "IP", Prefix: "CIDR", Url: "URL", Semver: "Semver"}
"""The Kubernetes types that may represent a text, and their names in its errors."""


def assign_field(message: MessageType, name: str, value: Value, version: Version) -> Value:
    """Return the value of a message's field after an assignment.

    Raises EvaluationError for a value that does not fit, EvaluationStopped where upstream panics.
    """
    field = message.fields[name]
    if (field.is_list and type(value) is not list) or (field.is_map and not _is_map(value)):
        raise _make_unsupported(f"{message.name}.{name}", value, version)
    _reject_objects(message, name, value)
    try:
        return _convert(field, value)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        message_text = f"field type conversion error for {message.name}.{name} value type: {error}"
        raise EvaluationError(message_text) from None


def _make_unsupported(place: str, value: Value, version: Version) -> EvaluationError:
    type_ = type_of(value) if TYPED_LISTS.holds(version) else empty_type(type_of(value))
    return EvaluationError(f"unsupported field type for {place}: {type_.full_name()}")


def _reject_objects(message: MessageType, name: str, value: Value) -> None:
    """Stop at an object of a patch, which upstream does not accept as the message that it expects."""
    field = message.fields[name]
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else (value,)
    if field.kind == "value" and any(type(part) is Struct for part in parts):
        place = "google.protobuf.Struct.FieldsEntry.value" if field.is_map else f"{message.name}.{name}"
        message_text = f"{PREFIX}{place}: assigning invalid message type google.protobuf.Struct"
        raise EvaluationStopped(f"internal error: {message_text}")


def _is_map(value: Value) -> bool:
    return type(value) in (dict, KeyedMap) or isinstance(value, Lazy)


def _convert(field: Field, value: Value) -> Value:
    if field.is_map and isinstance(value, Lazy):
        return {name: convert_value(value.entries[name], "value") for name in value.names()}
    if field.is_map and (type(value) is dict or type(value) is KeyedMap):
        return _convert_map(value, "struct")
    return _convert_list(value, "list") if field.is_list and type(value) is list else convert_value(value, field.kind)


def convert_value(value: Value, target: Target) -> Value:
    """Return a value in the form of a kind of field. Raises EvaluationError for a value that has no such form."""
    if type(value) in (dict, list) and is_wrapped(value):
        raise EvaluationError(f"type conversion error from '{type_of(value).full_name()}' to '{_GO_TYPES[target]}'")
    convert = _BY_CLASS.get(type(value))
    if convert is not None:
        return convert(value, target)
    if isinstance(value, Lazy):
        name = _GO_NAMES.get(target, _GO_TYPES[target])
        raise EvaluationError(f'disallowed conversion from "{value.TYPE.name}" to "{name}"')
    if isinstance(value, Opaque):
        return _convert_opaque(value, target)
    if isinstance(value, EvaluationError):
        raise value
    raise EvaluationError(f"unable to convert to {_GO_TYPES[target]}")


def _convert_null(value: Value, target: Target) -> Value:
    if target == "value":
        return value
    raise EvaluationError(f"type conversion error from 'null_type' to '{_GO_TYPES[target]}'")


def _convert_bool(value: Value, target: Target) -> Value:
    if target in ("bool", "value"):
        return value
    raise EvaluationError(f"type conversion error from bool to '{_GO_TYPES[target]}'")


def _convert_int(value: int, target: Target) -> Value:
    largest = _LARGEST_INTS.get(target)
    if largest is not None:
        if -largest - 1 <= value <= largest:
            return value
        raise EvaluationError("integer overflow")
    if target == "value":
        return _make_json_number(value)
    raise EvaluationError(f"unsupported type conversion from 'int' to {_GO_TYPES[target]}")


def _convert_uint(value: UInt, target: Target) -> Value:
    largest = _LARGEST_UINTS.get(target)
    if largest is not None:
        if value <= largest:
            return value
        raise EvaluationError("unsigned integer overflow")
    if target == "value":
        return _make_json_number(value)
    raise EvaluationError(f"unsupported type conversion from 'uint' to {_GO_TYPES[target]}")


def _make_json_number(value: int) -> Value:
    return float(value) if abs(value) <= _LARGEST_JSON_INT else str(int(value))


def _convert_double(value: float, target: Target) -> Value:
    if target in ("double", "value"):
        return value
    if target == "float":
        return round_to_single(value)
    raise EvaluationError(f"type conversion error from Double to '{_GO_TYPES[target]}'")


def round_to_single(value: float) -> float:
    """Return a double rounded to a float of 32 bits; infinite where it is too large."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _convert_string(value: Value, target: Target) -> Value:
    if target in ("string", "value"):
        return value
    raise EvaluationError(f"unsupported native conversion from string to '{_GO_TYPES[target]}'")


def _convert_bytes(value: bytes, target: Target) -> Value:
    if target == "bytes":
        return value
    if target == "value":
        return base64.b64encode(value).decode()
    raise EvaluationError(f"type conversion error from Bytes to '{_GO_TYPES[target]}'")


def _convert_time(value: Value, target: Target) -> Value:
    if target == "value":
        return to_string(value)
    raise EvaluationError(f"type conversion error from '{type(value).__name__}' to '{_GO_TYPES[target]}'")


def _convert_list(value: list[Value], target: Target) -> Value:
    if target in ("list", "value"):
        return [_convert_part(element, "reflect.Set") for element in value]
    if target == "bytes":
        return bytes([_convert_octet(convert_value(element, "uint8")) for element in value])
    raise EvaluationError(f"type conversion error from list to '{_GO_TYPES[target]}'")


def _convert_octet(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _convert_map(value: dict[str, Value] | KeyedMap, target: Target) -> Value:
    if target in ("struct", "value"):
        return {
            str(convert_value(key, "string")): _convert_part(item, "reflect.Value.SetMapIndex")
            for key, item in value.items()
        }
    if target == "list":
        return _fill_from_fields(value)
    raise EvaluationError(f"type conversion error from map to '{_GO_TYPES[target]}'")


def _convert_part(value: Value, call: str) -> Value:
    """Return a part of a list or map as JSON; upstream panics on an object of a patch there."""
    if type(value) is Struct:
        message_text = f"{call}: value of type *structpb.Struct is not assignable to type *structpb.Value"
        raise EvaluationStopped(f"internal error: {message_text}")
    return convert_value(value, "value")


def _fill_from_fields(value: dict[str, Value] | KeyedMap) -> Value:
    """Fill Go's list structure from a map of its fields, of which it has one."""
    values: Value = []
    for key, item in value.items():
        name = str(to_string(key))
        name = name[:1].upper() + name[1:]
        if name != "Values":
            raise EvaluationError(f"type conversion error, no such field '{name}' in type 'structpb.ListValue'")
        if type(item) is not list:
            return convert_value(item, "list")
        values = convert_value(item, "list")
    return values


def _convert_type(_value: Value, _target: Target) -> Value:
    raise EvaluationError("type conversion not supported for 'type'")


def _convert_optional(value: Optional, target: Target) -> Value:
    return convert_value(value.unwrapped(), target)


def _convert_opaque(value: Opaque, target: Target) -> Value:
    name = _TEXTUAL.get(type(value))
    if name is not None and target == "string":
        return str(value)
    shown = name or ("Format" if isinstance(value, NamedFormat) else value.TYPE.name)
    raise EvaluationError(f"type conversion error from '{shown}' to '{_GO_TYPES[target]}'")


def _convert_message(value: Message, target: Target) -> Value:
    if target == "value":
        return {name: convert_value(item, "value") for name, item in value.fields.items()}
    if target in _MESSAGES:
        message_text = f"pb.Merge() arguments must be the same type. got: {_MESSAGES[target]}, {value.type.name}"
        raise EvaluationError(f"type conversion error: {message_text}")
    raise EvaluationError(f"type conversion error from '{value.go_type}' to '{_GO_TYPES[target]}'")


_BY_CLASS: Mapping[type, Callable[..., Value]] = {
    type(None): _convert_null,
    bool: _convert_bool,
    int: _convert_int,
    UInt: _convert_uint,
    float: _convert_double,
    str: _convert_string,
    bytes: _convert_bytes,
    Timestamp: _convert_time,
    Duration: _convert_time,
    list: _convert_list,
    dict: _convert_map,
    KeyedMap: _convert_map,
    Type: _convert_type,
    Optional: _convert_optional,
    Message: _convert_message,
}
