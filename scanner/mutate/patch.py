"""One mutation, from the value of its expression to the changed object.

Mirrors the two patchers of apiserver 1.36 (`policy/mutating/patch`). failurePolicy decides about a PatchFault;
a RequestFault ends the request under either failure policy.

Rules: `docs/semantics/mutation.md#apply-configuration`, `docs/semantics/mutation.md#json-patch`.
"""

from __future__ import annotations

from typing import cast

from scanner import cel
from scanner.model.json import Json, JsonObject, as_text
from scanner.mutate import custom, typed
from scanner.mutate.decoding import converted, strictly_decoded
from scanner.mutate.merge import merged
from scanner.mutate.native import ForeignKey, Native, PatchFault, RequestFault, misnamed, native_object
from scanner.mutate.operations import Node, Operation, TestFailed, apply
from scanner.mutate.origin import Data
from scanner.mutate.schema import Schema
from scanner.mutate.storing import mutated
from scanner.mutate.values import json_value


def configured(value: cel.Value, live: JsonObject, schema: Schema, data: Data) -> JsonObject:
    """The object with an apply configuration merged in.

    Raises PatchFault for a configuration that is invalid or cannot be merged, RequestFault for an object that cannot be
    converted.
    """
    if not isinstance(value, cel.Struct):
        raise PatchFault(f"unsupported return type from ApplyConfiguration expression: {cel.type_name(value)}")
    if names := misnamed(value, data):
        raise PatchFault(f"type mismatch: {names}")
    patch = {**_configuration(value, data), **_identity(live)}
    if fault := typed.faults(schema, patch):
        raise PatchFault(f"error applying patch: failed to convert patch object to typed object: {fault}")
    if touched := typed.atomics(schema, patch):
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(touched)}"
        raise PatchFault(f"error applying patch: invalid ApplyConfiguration: {why}")
    # The stored object of a built-in kind was decoded by its Go type, and so conforms to its schema.
    if fault := "" if schema.builtin else typed.faults(schema, live, duplicates=True):
        raise PatchFault(f"error applying patch: failed to convert original object to typed object: {fault}")
    try:
        merged_object = cast("JsonObject", merged(schema, live, patch))
    except PatchFault as fault:
        raise PatchFault(f"error applying patch: failed to merge patch: {fault}") from None
    if schema.builtin:
        return mutated(schema, live, converted(schema, merged_object, live))
    custom.reject_unwritable(patch)
    return mutated(schema, live, merged_object)


def _configuration(value: cel.Struct, data: Data) -> dict[str, Native]:
    try:
        return native_object(value, data)
    except ForeignKey:
        raise PatchFault("invalid return type: *dynamic.ObjectVal") from None


def _identity(live: JsonObject) -> dict[str, Native]:
    return {key: str(live[key]) for key in ("apiVersion", "kind") if key in live}


def patched(value: cel.Value, live: JsonObject, schema: Schema, data: Data, target: str = "") -> JsonObject:
    """The object with JSON patch operations applied; itself when a test fails. Raises PatchFault and RequestFault.

    `target` is the apiVersion of the request if it is not that of the object.
    """
    if not isinstance(value, list):
        raise PatchFault("type mismatch: JSONPatchType.expression should evaluate to array")
    operations = [_operation(operation, data) for operation in value]
    try:
        changed = apply(operations, cast("Node", live))
    except TestFailed:
        return live
    except RequestFault:
        raise
    except PatchFault as fault:
        raise PatchFault(f"JSON Patch: {fault}") from None
    document = cast("Json", changed)
    if schema.builtin:
        return mutated(schema, live, strictly_decoded(schema, document, live))
    target = target or as_text(live.get("apiVersion"))
    return mutated(schema, live, custom.decoded(schema.custom, document, live, target))


def _operation(value: cel.Value, data: Data) -> Operation:
    if not isinstance(value, cel.Struct) or value.type != cel.JSON_PATCH:
        raise PatchFault(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of "
            f"{cel.type_name(value)}"
        )
    fields = value.fields
    given = "value" in fields
    return Operation(
        op=str(fields.get("op", "")),
        path=str(fields.get("path", "")),
        value=json_value(fields["value"], data) if given else None,
        given=given,
        source=str(fields.get("from", "")),
    )
