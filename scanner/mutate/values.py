"""The `value` of a JSON patch operation as JSON.

Mirrors `ConvertToNative(structpb.Value)` of cel-go: numbers are doubles there, integers beyond 2^53 texts, bytes base64.
"""

from __future__ import annotations

import base64
import math

from scanner import cel
from scanner.cel.conversions import to_string
from scanner.mutate.native import Foreign, PatchFault, misnamed, native_object
from scanner.mutate.operations import Node
from scanner.mutate.origin import Data

_LARGEST = 2**53 - 1
# Go's protobuf separates its prefix by a blank that does not break.
_INVALID_TYPE = "proto:\u00a0invalid type"
_PREFIX = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "


class RequestFault(PatchFault):
    """The request ends here, with the code of an internal error, whatever failurePolicy says."""


def json_value(value: cel.Value, data: Data) -> Node:
    """The JSON of a value. Raises PatchFault for what has none."""
    if isinstance(value, cel.Struct):
        if names := misnamed(value, data):
            raise PatchFault(f"type mismatch: {names}")
        return _plain(native_object(value, data))
    return _converted(value, data)


def _converted(value: cel.Value, data: Data) -> Node:
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value) if abs(value) <= _LARGEST else str(int(value))
        case float():
            return _number(value)
        case bytes():
            return base64.b64encode(value).decode()
        case cel.Timestamp() | cel.Duration():
            return str(to_string(value))
        case list() | dict():
            return _container(value, data)
        case cel.Optional() if value.present:
            return _converted(value.value, data)
        case cel.Struct():
            return _struct_inside(value, data)
        case cel.Message():
            return {name: _converted(one, data) for name, one in value.fields.items()}
        case _:
            raise PatchFault(f"{_PREFIX}type conversion error from '{cel.type_name(value)}' to '*structpb.Value'")


def _container(value: list[cel.Value] | dict[str, cel.Value], data: Data) -> Node:
    if wrapping := data.wrapping(value):
        raise PatchFault(f"{_PREFIX}type conversion error from {wrapping}")
    if isinstance(value, list):
        return [_converted(one, data) for one in value]
    return {key: _converted(one, data) for key, one in value.items()}


def _struct_inside(value: cel.Struct, data: Data) -> Node:
    """An object inside a list or map: until 1.36 the server does not survive it."""
    if not data.rebuilds:
        raise RequestFault("the API server ends the connection: an Object inside a list or map of a JSON patch")
    return _plain(native_object(value, data))


def _number(value: float) -> Node:
    if not math.isfinite(value):
        raise PatchFault(f"{_PREFIX}google.protobuf.Value cannot have {value} as a number")
    return int(value) if value.is_integer() and abs(value) < 1e21 else value  # noqa: PLR2004 - Go writes an exponent from there


def _plain(value: object) -> Node:
    """What protobuf's Struct makes of a converted object: every number a double."""
    match value:
        case Foreign():
            raise PatchFault(f"{_PREFIX}{_INVALID_TYPE}: {value.type}")
        case bool() | str() | None:
            return value
        case int() | float():
            return _number(float(value))
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case _:
            raise PatchFault(f"{_PREFIX}{_INVALID_TYPE}: {type(value).__name__}")
