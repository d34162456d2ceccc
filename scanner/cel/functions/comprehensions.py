"""The function behind transformMap and transformMapEntry.

Expressions cannot name it, but checker and evaluator see it inside the macros.

Rules: `docs/semantics/cel-libraries.md#two-variables`.
"""

from __future__ import annotations

from scanner.cel import releases
from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import A, B, map_of
from scanner.cel.values.runtime import print_value
from scanner.cel.values.values import KeyedMap, Value

_MAP = map_of(A, B)


def insert(target: KeyedMap, key: Value, value: Value) -> None:
    """Add an entry to a map. Raises EvaluationError if its key is taken."""
    if not target.insert(key, value):
        raise EvaluationError(f"insert failed: key {print_value(key)} already exists")


def _insert(target: KeyedMap, key: Value, value: Value) -> Value:
    insert(target, key, value)
    return target


def _insert_all(target: KeyedMap, entries: dict[str, Value] | KeyedMap) -> Value:
    for key, value in entries.items():
        insert(target, key, value)
    return target


MAP_INSERT = Function(
    "cel.@mapInsert",
    (
        Overload("@mapInsert_map_key_value", (_MAP, A, B), _MAP, _insert),
        Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
    ),
    cost=ONE,
)
LIBRARY = Library("comprehensions", (MAP_INSERT,), since=releases.TWO_VARIABLES.since)
