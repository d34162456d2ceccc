"""One mutation, from the value of its expression to the changed object.

Mirrors the two patchers of apiserver 1.36 (`policy/mutating/patch`). failurePolicy decides about a PatchFault;
a RequestFault ends the request under either failure policy.

Rules: `docs/semantics/mutation.md#apply-configuration`, `docs/semantics/mutation.md#json-patch`.
"""

from __future__ import annotations

import base64
import math
from typing import cast

from scanner import cel
from scanner.cel.values.conversions import to_string
from scanner.cel.values.runtime import rewrap_value
from scanner.model.json import Json, JsonObject, as_text
from scanner.mutate import custom, merge
from scanner.mutate.decoding import decode_configuration, decode_strictly
from scanner.mutate.merge import merge_patch
from scanner.mutate.native import (
    Foreign,
    ForeignKey,
    Native,
    PatchFault,
    RequestFault,
    convert_object,
    end_connection,
    find_misnamed,
)
from scanner.mutate.operations import Node, PatchOperation, TestFailed, apply
from scanner.mutate.origin import RequestData
from scanner.mutate.schema import Schema
from scanner.mutate.storing import read_mutated


def apply_configuration(value: cel.Value, live: JsonObject, schema: Schema, data: RequestData) -> JsonObject:
    """The object with an apply configuration merged in.

    Raises PatchFault for a configuration that is invalid or cannot be merged, RequestFault for an object that cannot be
    converted.
    """
    if not isinstance(value, cel.Struct):
        raise PatchFault(f"unsupported return type from ApplyConfiguration expression: {cel.type_name(value)}")
    if names := find_misnamed(value, data):
        raise PatchFault(f"type mismatch: {names}")
    patch = {**_convert_configuration(value, data), **_get_identity(live)}
    if fault := merge.find_faults(schema, patch):
        raise PatchFault(f"error applying patch: failed to convert patch object to typed object: {fault}")
    if touched := merge.list_atomics(schema, patch):
        detail = f"may not mutate atomic arrays, maps or structs: {', '.join(touched)}"
        raise PatchFault(f"error applying patch: invalid ApplyConfiguration: {detail}")
    # The stored object of a built-in kind was decoded by its Go type, and so conforms to its schema.
    if fault := "" if schema.builtin else merge.find_faults(schema, live, duplicates=True):
        raise PatchFault(f"error applying patch: failed to convert original object to typed object: {fault}")
    try:
        merged_object = cast("JsonObject", merge_patch(schema, live, patch))
    except PatchFault as fault:
        raise PatchFault(f"error applying patch: failed to merge patch: {fault}") from None
    if schema.builtin:
        return read_mutated(schema, live, decode_configuration(schema, merged_object, live))
    custom.reject_unwritable(patch)
    return read_mutated(schema, live, merged_object)


def _convert_configuration(value: cel.Struct, data: RequestData) -> dict[str, Native]:
    try:
        return convert_object(value, data)
    except ForeignKey:
        raise PatchFault("invalid return type: *dynamic.ObjectVal") from None


def _get_identity(live: JsonObject) -> dict[str, Native]:
    return {key: str(live[key]) for key in ("apiVersion", "kind") if key in live}


def apply_patch(value: cel.Value, live: JsonObject, schema: Schema, data: RequestData, target: str = "") -> JsonObject:
    """The object with JSON patch operations applied; itself when a test fails. Raises PatchFault and RequestFault.

    `target` is the apiVersion of the request if it is not that of the object.
    """
    if not isinstance(value, list):
        raise PatchFault("type mismatch: JSONPatchType.expression should evaluate to array")
    operations = [_read_operation(operation, data) for operation in value]
    try:
        patched_document = apply(operations, cast("Node", live))
    except TestFailed:
        return live
    except RequestFault:
        raise
    except PatchFault as fault:
        raise PatchFault(f"JSON Patch: {fault}") from None
    document = cast("Json", patched_document)
    if schema.builtin:
        return read_mutated(schema, live, decode_strictly(schema, document, live))
    target = target or as_text(live.get("apiVersion"))
    return read_mutated(schema, live, custom.decode_patched(schema.custom, document, live, target))


def _read_operation(value: cel.Value, data: RequestData) -> PatchOperation:
    if not isinstance(value, cel.Struct) or value.type != cel.JSON_PATCH:
        raise PatchFault(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of "
            f"{cel.type_name(value)}"
        )
    fields = value.fields
    has_value = "value" in fields
    return PatchOperation(
        op=str(fields.get("op", "")),
        path=str(fields.get("path", "")),
        value=convert_value(fields["value"], data) if has_value else None,
        has_value=has_value,
        source=str(fields.get("from", "")),
    )


# The `value` of a JSON patch operation as JSON.
#
# Mirrors `ConvertToNative(structpb.Value)` of cel-go: numbers are doubles there, integers beyond 2^53 texts, bytes
# base64. A list that `+` has joined (`concatList`) is converted to Go (`Value`) and back (`NativeToValue`) before: an
# object in it becomes a map, while an object in another list or map ends the connection.

_LARGEST = 2**53 - 1
# Go's protobuf separates its prefix by a blank that does not break.
_INVALID_TYPE = "proto:\u00a0invalid type"
_INVALID_NUMBER = (
    "json: error calling MarshalJSON for type *structpb.Value: proto:\u00a0google.protobuf.Value.number_value: invalid"
)
_PREFIX = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
# The names of Kubernetes' own values in their errors, where these differ from the names of their types.
_NAMES = {
    "kubernetes.Quantity": "Quantity",
    "kubernetes.URL": "URL",
    "kubernetes.Semver": "Semver",
    "kubernetes.NamedFormat": "Format",
    "net.IP": "IP",
    "net.CIDR": "CIDR",
}


def convert_value(value: cel.Value, data: RequestData) -> Node:
    """The JSON of a value (`ConvertToNative`). Raises PatchFault for a value that has none."""
    if isinstance(value, cel.Struct) and value.type != cel.JSON_PATCH:
        if names := find_misnamed(value, data):
            raise PatchFault(f"type mismatch: {names}")
        return _convert_struct(value, data)
    if isinstance(value, cel.Optional) and isinstance(value.value, cel.Struct):
        return _convert_struct(value.value, data)
    return _convert(value, data)


def _convert_struct(value: cel.Struct, data: RequestData) -> Node:
    try:
        return _convert_plain(convert_object(value, data))
    except ForeignKey as fault:
        raise PatchFault(f"{_PREFIX}{fault}") from None


def _convert(value: cel.Value, data: RequestData) -> Node:
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value) if abs(value) <= _LARGEST else str(int(value))
        case float():
            return _convert_number(value)
        case bytes():
            return base64.b64encode(value).decode()
        case cel.Timestamp() | cel.Duration():
            return str(to_string(value))
        case list() | dict():
            return _convert_container(value, data)
        case cel.Optional() if value.present:
            return _convert(value.value, data)
        case cel.Struct():
            return _convert_struct_inside(value, data)
        case cel.Message():
            return {name: _convert(field, data) for name, field in value.fields.items()}
        case _:
            raise PatchFault(_PREFIX + _describe_unconvertible(value))


def _describe_unconvertible(value: cel.Value) -> str:
    match value:
        case cel.Optional():
            return "optional.none() dereference"
        case cel.Type():
            return "type conversion not supported for 'type'"
        case cel.KeyedMap():
            return _describe_key_fault(next(key for key in value if not isinstance(key, str)))
        case _:
            name = cel.type_name(value)
            return f"type conversion error from '{_NAMES.get(name, name)}' to '*structpb.Value'"


def _describe_key_fault(key: cel.Value) -> str:
    if isinstance(key, bool):
        return "type conversion error from bool to 'string'"
    return f"unsupported type conversion from '{cel.type_name(key)}' to string"


def _convert_container(value: list[cel.Value] | dict[str, cel.Value], data: RequestData) -> Node:
    if wrapping := data.find_go_types(value):
        raise PatchFault(f"{_PREFIX}type conversion error from {wrapping}")
    if isinstance(value, dict):
        return {key: _convert(item, data) for key, item in value.items()}
    if data.get_list_kind(value) is cel.ListKind.JOINED:
        return [_convert(_take_out(item, data), data) for item in value]
    return [_convert(item, data) for item in value]


def _take_out(value: cel.Value, data: RequestData) -> cel.Value:
    """An element of a joined list after its conversion to a Go value: `Value` and then `NativeToValue`."""
    if isinstance(value, cel.Optional) and value.present:
        return _take_out(value.value, data)
    if isinstance(value, cel.Struct) and value.type != cel.JSON_PATCH:
        return {name: _take_out_field(name, field, data) for name, field in value.fields.items()}
    rewrapped_value = rewrap_value(value)
    if isinstance(rewrapped_value, cel.EvaluationError):
        raise PatchFault(f"{_PREFIX}{rewrapped_value}")
    return rewrapped_value


def _take_out_field(name: str, value: cel.Value, data: RequestData) -> cel.Value:
    """A field of an object in a joined list: `convertField` converts a list or map one level deep."""
    if isinstance(value, cel.KeyedMap):
        raise PatchFault(f"{_PREFIX}{ForeignKey(name, next(key for key in value if not isinstance(key, str)))}")
    if isinstance(value, list | dict) and (value in data or data.get_list_kind(value) is not None):
        return value
    if isinstance(value, list):
        return [_take_out(item, data) for item in value]
    if isinstance(value, dict):
        return {key: _take_out(item, data) for key, item in value.items()}
    return _take_out(value, data)


def _convert_struct_inside(value: cel.Struct, data: RequestData) -> Node:
    """An object inside a list or map: until 1.36 the server panics on it, unless `+` has joined the list."""
    if value.type == cel.JSON_PATCH:
        raise PatchFault(f"{_PREFIX}cannot convert to native type: *structpb.Value")
    if not data.rebuilds:
        raise end_connection("an Object inside a list or map of a JSON patch")
    return _convert_struct(value, data)


def _convert_number(value: float) -> Node:
    if not math.isfinite(value):
        text = "NaN" if math.isnan(value) else f"{value:+}".replace("inf", "Inf")
        raise PatchFault(f"{_PREFIX}{_INVALID_NUMBER} {text} value")
    return int(value) if value.is_integer() and abs(value) < 1e21 else value  # noqa: PLR2004 - Go writes an exponent from there


def _convert_plain(value: object) -> Node:
    """The value that protobuf's Struct holds for a converted object: every number is a double."""
    match value:
        case Foreign(type="uint64"):
            return _convert_number(float(value.text))
        case Foreign(type="[]uint8"):
            return base64.b64encode(bytes(map(int, value.text[1:-1].split()))).decode()
        case Foreign():
            raise PatchFault(f"{_PREFIX}{_INVALID_TYPE}: {value.type}")
        case bool() | str() | None:
            return value
        case int() | float():
            return _convert_number(float(value))
        case list():
            return [_convert_plain(item) for item in cast("list[object]", value)]
        case dict():
            return {key: _convert_plain(item) for key, item in value.items()}
        case _:
            raise PatchFault(f"{_PREFIX}{_INVALID_TYPE}: {type(value).__name__}")
