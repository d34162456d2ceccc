"""`parseServiceAccount` and `listObjToMap`: functions that split and combine small data.

Mirrors Kyverno's user and transform libraries.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.types.type_system import object_type
from scanner.cel.values.values import KeyedMap, Struct, Value
from scanner.policies.kyverno.libraries.declared import Implementation
from scanner.policies.kyverno.libraries.natives import converted, native_type

SERVICE_ACCOUNT = object_type("user.ServiceAccount")
EXCEPTIONS = object_type("libs.Exception")
_PREFIX = "system:serviceaccount:"


def _service_account(user: str) -> Value:
    namespace, colon, name = user.removeprefix(_PREFIX).partition(":")
    if not user.startswith(_PREFIX) or not colon:
        namespace = name = ""
    fields = {"Name": name, "Namespace": namespace}
    return Struct(SERVICE_ACCOUNT, {field: text for field, text in fields.items() if text}, dict.fromkeys(fields, ""))


def _to_map(keys: list[Value], values: list[Value], key_field: str, value_field: str) -> Value:
    converted_keys, converted_values = [*map(converted, keys)], [*map(converted, values)]
    if len(keys) != len(values):
        lengths = f"list1: {len(keys)}, list2: {len(values)}"
        raise EvaluationError(f"listObjToMap must take lists of equal length. {lengths}")
    return dict(_pair(*pair, key_field, value_field) for pair in zip(converted_keys, converted_values, strict=True))


def _pair(key_record: Value, value_record: Value, key_field: str, value_field: str) -> tuple[str, Value]:
    if _foreign_key(key_record) is not None:
        raise EvaluationError(f"failed to convert key to a string, {_foreign_key(key_record)}")
    key = _field(key_record, key_field)
    if type(key) is not str:
        raise EvaluationError("the passed key name cannot be handled as a string in the key object list")
    if _foreign_key(value_record) is not None:
        raise EvaluationError("object cannot be handled as a map string to any in the value object list")
    return key, _field(value_record, value_field)


def _foreign_key(record: Value) -> str | None:
    """Return Go's type of a key that is no text, or None."""
    if type(record) is not KeyedMap:
        return None
    return next((native_type(key) for key, _ in record.items() if type(key) is not str), None)


def _field(record: Value, field: str) -> Value:
    if type(record) is dict:
        return record.get(field)
    if type(record) is KeyedMap:
        return None
    was = "interface is nil" if record is None else f"interface {{}} is {native_type(record)}"
    raise EvaluationStopped(f"internal error: interface conversion: {was}, not map[interface {{}}]interface {{}}")


IMPLEMENTATION = Implementation({"parse_service_account_string": _service_account, "list_of_object_to_map": _to_map})
