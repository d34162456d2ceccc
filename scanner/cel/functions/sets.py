"""Lists as sets (cel-go's sets extension).

Rules: `docs/semantics/cel-libraries.md#sets`.
"""

from __future__ import annotations

from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.types.type_system import BOOL, A, list_of
from scanner.cel.values import runtime
from scanner.cel.values.values import Value

_LIST = list_of(A)


def _contains(whole: list[Value], part: list[Value]) -> bool:
    return all(runtime.contains(whole, element) for element in part)


def _equivalent(left: list[Value], right: list[Value]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: list[Value], right: list[Value]) -> bool:
    return any(runtime.contains(right, element) for element in left)


LIBRARY = Library(
    "sets",
    (
        Function("sets.contains", (Overload("list_sets_contains_list", (_LIST, _LIST), BOOL, _contains),)),
        Function("sets.equivalent", (Overload("list_sets_equivalent_list", (_LIST, _LIST), BOOL, _equivalent),)),
        Function("sets.intersects", (Overload("list_sets_intersects_list", (_LIST, _LIST), BOOL, _intersects),)),
    ),
)
