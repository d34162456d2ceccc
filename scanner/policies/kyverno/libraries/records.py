"""`parseServiceAccount` and `listObjToMap`: functions that split and combine small data.

Mirrors Kyverno's user and transform libraries.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import LIST, MAP, STRING, object_type
from scanner.cel.values.values import Struct, Value

SERVICE_ACCOUNT = object_type("user.ServiceAccount")
_PREFIX = "system:serviceaccount:"


def _service_account(user: str) -> Value:
    namespace, colon, name = user.removeprefix(_PREFIX).partition(":")
    if not user.startswith(_PREFIX) or not colon:
        namespace = name = ""
    return Struct(SERVICE_ACCOUNT, {"Name": name, "Namespace": namespace})


def _to_map(keys: list[Value], values: list[Value], key_field: str, value_field: str) -> Value:
    if len(keys) != len(values):
        lengths = f"list1: {len(keys)}, list2: {len(values)}"
        raise EvaluationError(f"listObjToMap must take lists of equal length. {lengths}")
    return {_key(key, key_field): _field(value, value_field) for key, value in zip(keys, values, strict=True)}


def _key(record: Value, field: str) -> str:
    key = _field(record, field)
    if type(key) is not str:
        raise EvaluationError("the passed key name cannot be handled as a string in the key object list")
    return key


def _field(record: Value, field: str) -> Value:
    return record.get(field) if isinstance(record, dict) else None


_PARSE = (Overload("parse_service_account_string", (STRING,), SERVICE_ACCOUNT, _service_account),)
_LISTS = (Overload("list_of_object_to_map", (LIST, LIST, STRING, STRING), MAP, _to_map),)
LIBRARY = Library(
    "kyverno.records",
    (
        Function("parseServiceAccount", _PARSE, cost=ONE),
        Function("user.parseServiceAccount", _PARSE, cost=ONE),
        Function("listObjToMap", _LISTS, cost=ONE),
        Function("transform.listObjToMap", _LISTS, cost=ONE),
    ),
)
