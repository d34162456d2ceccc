"""The types that patches are made of: `Object{…}`, `Object.spec{…}` and so on for any path, and `JSONPatch{…}`.

Mirrors `pkg/cel/mutation` of apiserver 1.36: an object type has any field, of any type; whether its name fits its
place is checked after the evaluation.

Rules: `docs/semantics/mutation.md#apply-configuration`, `docs/semantics/mutation.md#json-patch`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import jsonpatch
from scanner.cel.types.type_system import DYN, STRING, Type, list_of, object_type
from scanner.cel.values.runtime import go_type
from scanner.cel.values.values import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.cel.checking.env import Environment
    from scanner.cel.values.values import Value

OBJECT = object_type("Object")
JSON_PATCH = object_type("JSONPatch")
PATCH_LIST = list_of(JSON_PATCH)
_TEXTS = ("op", "path", "from")
_ABSENT = MappingProxyType(dict.fromkeys(_TEXTS, ""))
_NATIVE = {"types.Bool": "bool", "types.Int": "int64", "types.Uint": "uint64", "types.Double": "float64"}


@dataclass(frozen=True, slots=True)
class PatchTypes:
    """Any name that begins with `Object`, and `JSONPatch`."""

    def find_type(self, name: str) -> Type | None:
        """Return the object type of a name, or None."""
        if name in (JSON_PATCH.name, OBJECT.name) or name.startswith(f"{OBJECT.name}."):
            return object_type(name)
        return None

    def field(self, type_name: str, name: str) -> Type | None:
        """Return the type of a field, or None when the type has no such field."""
        if type_name != JSON_PATCH.name:
            return DYN
        if name in _TEXTS:
            return STRING
        return DYN if name == "value" else None

    def maker(self, type_: Type) -> Callable[[dict[str, Value]], Value]:
        """Return a constructor of a type's values from fields.

        It raises EvaluationError for a JSON patch whose op, path or from is not a string.
        """
        return _make_operation if type_ == JSON_PATCH else partial(Struct, type_)


def _make_operation(fields: dict[str, Value]) -> Value:
    for name in _TEXTS:
        if name in fields and type(fields[name]) is not str:
            unexpected = _name_native_type(fields[name])
            raise EvaluationError(f"unexpected type {unexpected} for JSONPatchType '{name}' field")
    return Struct(JSON_PATCH, {name: value for name, value in fields.items() if name == "value" or value}, _ABSENT)


def allow_patches(environment: Environment) -> Environment:
    """Return an environment whose expressions may make patches, and escape the keys of their paths."""
    return replace(environment, structs=PatchTypes(), extras=(*environment.extras, jsonpatch.LIBRARY))


def _name_native_type(value: Value) -> str:
    if value is None:
        return "structpb.NullValue"
    name = go_type(value)
    return _NATIVE.get(name, name)
