"""Lists as sets (cel-go's sets extension).

Rules: `docs/semantics/cel-libraries.md#sets`.
"""

from __future__ import annotations

from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import COMPARING, UNIT, Cost, Operands, Price, measure_size
from scanner.cel.types.type_system import BOOL, A, list_of
from scanner.cel.values import equality
from scanner.cel.values.values import Value

_LIST = list_of(A)


def _contains(whole: list[Value], part: list[Value]) -> bool:
    return all(equality.contains(whole, element) for element in part)


def _equivalent(left: list[Value], right: list[Value]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: list[Value], right: list[Value]) -> bool:
    return any(equality.contains(right, element) for element in left)


def _price_crossing(times: int) -> Price:
    """Return the price of comparing each element of one list with each element of another, so many times."""
    return Price(lambda arguments, _result: 1 + times * measure_size(arguments[0]) * measure_size(arguments[1]))


def _bound_crossing(operands: Operands) -> float:
    left, right = operands
    return 1 + 2 * left.extent.span * right.extent.span


_CROSSING = Cost(UNIT, _bound_crossing, COMPARING)

LIBRARY = Library(
    "sets",
    (
        Function(
            "sets.contains",
            (Overload("list_sets_contains_list", (_LIST, _LIST), BOOL, _contains, price=_price_crossing(1)),),
            cost=_CROSSING,
        ),
        Function(
            "sets.equivalent",
            (Overload("list_sets_equivalent_list", (_LIST, _LIST), BOOL, _equivalent, price=_price_crossing(2)),),
            cost=_CROSSING,
        ),
        Function(
            "sets.intersects",
            (Overload("list_sets_intersects_list", (_LIST, _LIST), BOOL, _intersects, price=_price_crossing(1)),),
            cost=_CROSSING,
        ),
    ),
)
