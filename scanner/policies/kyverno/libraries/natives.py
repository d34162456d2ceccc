"""The Go values that Kyverno's functions make of their arguments, and the errors of values that cannot be converted.

Source of truth: the `ConvertToNative` methods of cel-go 0.30 for Go's string and for any Go value; `converted` is the second one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.named_formats import NamedFormat
from scanner.cel.types.type_system import Type
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

_NO_STRING: dict[type, str] = {
    type(None): "type conversion error from 'null_type' to 'string'",
    bool: "type conversion error from bool to 'string'",
    int: "unsupported type conversion from 'int' to string",
    UInt: "unsupported type conversion from 'uint' to string",
    float: "type conversion error from Double to 'string'",
    bytes: "type conversion error from Bytes to 'string'",
    list: "type conversion error from list to 'string'",
    dict: "type conversion error from map to 'string'",
    KeyedMap: "type conversion error from map to 'string'",
    Duration: "type conversion error from 'Duration' to 'string'",
    Timestamp: "type conversion error from 'Timestamp' to 'string'",
    Type: "type conversion not supported for 'type'",
}


def as_string(value: Value) -> str:
    """Return a value as a Go string. Raises EvaluationError for a value that is none."""
    if type(value) is str:
        return value
    if type(value) is Optional:
        return as_string(value.unwrapped())
    if type(value) in _NO_STRING:
        raise EvaluationError(_NO_STRING[type(value)])
    if isinstance(value, Opaque) and hasattr(value, "GO_NATIVE"):
        return str(value)
    raise EvaluationError(f"type conversion error from '{_shown(value)}' to 'string'")


def converted(value: Value) -> Value:
    """Return a value as Go code receives it: optionals become what they contain. Raises EvaluationError."""
    conversion = _CONVERSIONS.get(type(value))
    if conversion is not None:
        return conversion(value)
    if isinstance(value, Struct | Message | Lazy | NamedFormat):
        raise EvaluationError(f"type conversion error from '{_shown(value)}' to 'interface {{}}'")
    return value


def native_type(value: Value) -> str:
    """Return the name of Go's type of a converted value."""
    own = _GO_TYPES.get(type(value))
    return own or str(getattr(type(value), "GO_NATIVE", type_of(value).name))


def _shown(value: Value) -> str:
    return "Format" if isinstance(value, NamedFormat) else type_of(value).name


def _type(_type: Type) -> Value:
    raise EvaluationError(_NO_STRING[Type])


_CONVERSIONS: dict[type, Callable[[Any], Value]] = {
    list: lambda value: [converted(item) for item in value],
    dict: lambda value: {key: converted(item) for key, item in value.items()},
    KeyedMap: lambda value: KeyedMap((converted(key), converted(item)) for key, item in value.items()),
    Optional: lambda value: converted(value.unwrapped()),
    Type: _type,
}
_GO_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    UInt: "uint64",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    list: "[]interface {}",
    Timestamp: "time.Time",
    Duration: "time.Duration",
}
