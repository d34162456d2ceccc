"""Lists: Kubernetes' own functions and cel-go's lists extension version 3.

Overloads exist per element type; on lists of dyn the first element picks one.

Rules: `docs/semantics/cel-libraries.md#lists`.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from scanner.cel import releases
from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, Tracker, declare_member
from scanner.cel.functions.pricing import (
    COMPARING,
    LIST_COST,
    SOUGHT,
    TRAVERSAL,
    UNIT,
    WALKED,
    WRAP,
    Arguments,
    Cost,
    Operands,
    Outcome,
    Price,
    Rule,
    measure_size,
)
from scanner.cel.functions.result_sizes import parts
from scanner.cel.releases import PREFIX_COSTS
from scanner.cel.types.type_system import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
)
from scanner.cel.values import arithmetic, equality, runtime
from scanner.cel.values.extent import SizeBound
from scanner.cel.values.values import Duration, Timestamp, UInt, Value, type_of

if TYPE_CHECKING:
    from collections.abc import Callable

# The costs of the functions of cel-go's list extension.
#
# Rules: `docs/semantics/cost.md#functions`.

_CALL_COST = 1 + LIST_COST
_SIGN_BIT = 1 << 63


def _convert_to_unsigned(number: float) -> int:
    """Return a float converted to an unsigned number as Go on amd64 does; out of range that is the highest bit."""
    return int(number) % WRAP if -_SIGN_BIT < number < WRAP else _SIGN_BIT


def _price_call(factor: float, length: int) -> int:
    return (_convert_to_unsigned(float(length) * factor) + _CALL_COST) % WRAP


def _price_result(_arguments: Arguments, result: Outcome) -> int:
    return _price_call(1.0, measure_size(result))


def _price_range(arguments: Arguments, _result: Outcome) -> int:
    count = arguments[0]
    return _price_call(1.0, max(count, 0) if type(count) is int else 1)


def _price_range_or_error(arguments: Arguments, result: Outcome) -> int:
    """Charge for the list, or for the error in its place."""
    return _price_call(1.0, 1) if isinstance(result, EvaluationError) else _price_range(arguments, result)


def _price_flatten(arguments: Arguments, _result: Outcome) -> int:
    depth = arguments[1] if len(arguments) > 1 else 1
    return _price_call(float(depth) if type(depth) is int else 1.0, measure_size(arguments[0]))


def _price_flatten_or_error(arguments: Arguments, result: Outcome) -> int:
    depth = arguments[1]
    if type(depth) is int and depth < 0:
        return _price_call(1.0, measure_size(arguments[0]))
    return _price_flatten(arguments, result)


def _price_self_comparison(keys: int) -> Rule:
    """Return the price of a function that compares each element of one of its arguments with every other element."""

    def rule(arguments: Arguments, _result: Outcome) -> int:
        elements = arguments[keys]
        length = measure_size(elements)
        if type(elements) is list and elements and type(elements[0]) in (str, bytes):
            return _price_call(2.0 + TRAVERSAL, length * length)
        return _price_call(2.0, length * length)

    return rule


BY_RESULT = Price(_price_result, late=True)
FLATTENED = Price(_price_flatten)
FLATTENED_OR_REFUSED = Price(_price_flatten_or_error).begin_with(PREFIX_COSTS, before=FLATTENED)
NUMBERED = Price(_price_range_or_error, late=True).begin_with(PREFIX_COSTS, before=Price(_price_range))
SELF_COMPARED = Price(_price_self_comparison(0))
KEYS_COMPARED = Price(_price_self_comparison(1))


def size_of_numbers(operands: Operands) -> SizeBound:
    """Return the extent of a list of numbers, whose length is the operand."""
    count = operands[0].number
    return SizeBound(count, 0.0, count)


def _bound_copy(operands: Operands) -> float:
    return operands[0].extent.span + LIST_COST + 2


def _bound_range(operands: Operands) -> float:
    return operands[0].number + LIST_COST + 2


def _bound_flatten(operands: Operands) -> float:
    depth = operands[1].number if len(operands) > 1 else 1.0
    return operands[0].extent.span * depth + LIST_COST + 2


def _bound_sort(operands: Operands) -> float:
    span = sum(operand.extent.span for operand in operands)
    return 2.1 * span * span + LIST_COST + 2


COPIED = Cost(UNIT, _bound_copy)
FLATTENING = Cost(UNIT, _bound_flatten)
NUMBERING = Cost(UNIT, _bound_range)
SORTED = Cost(UNIT, _bound_sort)


_LIST = list_of(A)
_NAMES = {
    INT: "int",
    UINT: "uint",
    DOUBLE: "double",
    BOOL: "bool",
    DURATION: "duration",
    TIMESTAMP: "timestamp",
    STRING: "string",
    BYTES: "bytes",
}
_COMPARABLE = tuple(_NAMES)
_SUMMABLE = (INT, UINT, DOUBLE, DURATION)
_ZEROS: dict[Type, Value] = {INT: 0, UINT: UInt(0), DOUBLE: 0.0, DURATION: Duration(0)}
_COMPARABLE_CLASSES = frozenset({int, UInt, float, bool, Duration, Timestamp, str, bytes})


def _compare_elements(left: Value, right: Value) -> int | None:
    """Return how two elements compare, or None when they do not."""
    try:
        return equality.order(left, right)
    except EvaluationError:
        return None


def _require_comparable(element: Value) -> None:
    if type(element) not in _COMPARABLE_CLASSES:
        raise runtime.make_no_overload()


def _is_sorted(elements: list[Value]) -> bool:
    for position, element in enumerate(elements):
        _require_comparable(element)
        if position and _compare_elements(elements[position - 1], element) == 1:
            return False
    return True


def _make_sum(zero: Value) -> Callable[[list[Value]], Value]:
    def run(elements: list[Value]) -> Value:
        total = zero
        for element in elements:
            total = arithmetic.add(total, element)
        return total

    return run


def _make_extreme(name: str, replaced_by: int) -> Callable[[list[Value]], Value]:
    """Return `min` or `max`: the kept element is replaced when comparing it with the next gives `replaced_by`."""

    def run(elements: list[Value]) -> Value:
        if not elements:
            raise EvaluationError(f"{name} called on empty list")
        extreme = elements[0]
        _require_comparable(extreme)
        for element in elements[1:]:
            _require_comparable(element)
            if _compare_elements(extreme, element) == replaced_by:
                extreme = element
        return extreme

    return run


def _matches(element: Value, item: Value) -> bool:
    try:
        return equality.equal(element, item)
    except EvaluationError:
        return False


def _index_of(elements: list[Value], item: Value) -> int:
    return next((position for position, element in enumerate(elements) if _matches(element, item)), -1)


def _last_index_of(elements: list[Value], item: Value) -> int:
    positions = range(len(elements) - 1, -1, -1)
    return next((position for position in positions if _matches(elements[position], item)), -1)


def _slice(elements: list[Value], start: int, end: int) -> Value:
    call = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise EvaluationError(f"{call}negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{call}start index must be less than or equal to end index")
    if end > len(elements):
        raise EvaluationError(f"{call}list is length {len(elements)}")
    return elements[start:end]


def _flatten_one(elements: Value) -> Value:
    if type(elements) is not list:
        raise EvaluationError(f"no such overload: {type_of(elements).full_name()}.flatten()")
    return _flatten_to_depth(elements, 1)


def _flatten(elements: Value, depth: Value) -> Value:
    if type(depth) is not int:
        raise runtime.make_no_overload()
    if type(elements) is not list:
        raise EvaluationError(f"no such overload: {type_of(elements).full_name()}.flatten(int)")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    return _flatten_to_depth(elements, depth)


def _flatten_to_depth(elements: list[Value], depth: int) -> list[Value]:
    flat = elements
    for _ in range(depth):
        if not any(type(element) is list for element in flat):
            break
        flat = [inner for element in flat for inner in (element if type(element) is list else [element])]
    return flat


def _includes(container: Value, item: Value) -> bool:
    """Return whether a list has an element; any other value includes its equals."""
    if type(container) is list:
        return any(_matches(element, item) for element in container)
    return _matches(container, item)


def make_range(count: int) -> Value:
    """Return the ints from 0 to before a count; an empty list for a count that is not positive."""
    return [*range(count)]


def _distinct(elements: list[Value]) -> Value:
    distinct: list[Value] = []
    for element in elements:
        if not any(_matches(element, other) for other in distinct):
            distinct.append(element)
    return distinct


def _reverse(elements: list[Value]) -> Value:
    return elements[::-1]


def _sort(elements: list[Value]) -> Value:
    return _sort_by(elements, elements)


def _sort_by(elements: list[Value], keys: list[Value]) -> Value:
    if not elements:
        return elements
    first = type(keys[0])
    if first not in _COMPARABLE_CLASSES:
        raise EvaluationError("list elements must be comparable")
    if any(type(key) is not first for key in keys):
        raise EvaluationError("list elements must have the same type")

    def by_key(left: int, right: int) -> int:
        return _compare_elements(keys[left], keys[right]) or 0

    return [elements[position] for position in sorted(range(len(keys)), key=cmp_to_key(by_key))]


def _for_each(types: tuple[Type, ...], make: Callable[[str, Type], Overload]) -> tuple[Overload, ...]:
    return tuple(make(_NAMES[type_], type_) for type_ in types)


KUBERNETES = Library(
    "kubernetes.lists",
    (
        Function(
            "isSorted",
            _for_each(
                _COMPARABLE,
                lambda name, of: declare_member(f"list_{name}_is_sorted_bool", (list_of(of),), BOOL, _is_sorted),
            ),
            cost=WALKED,
        ),
        Function(
            "sum",
            _for_each(
                _SUMMABLE,
                lambda name, of: declare_member(f"list_{name}_sum_{name}", (list_of(of),), of, _make_sum(_ZEROS[of])),
            ),
            cost=WALKED,
            result=parts,
        ),
        Function(
            "max",
            _for_each(
                _COMPARABLE,
                lambda name, of: declare_member(
                    f"list_{name}_max_{name}", (list_of(of),), of, _make_extreme("max", -1)
                ),
            ),
            cost=WALKED,
            result=parts,
        ),
        Function(
            "min",
            _for_each(
                _COMPARABLE,
                lambda name, of: declare_member(f"list_{name}_min_{name}", (list_of(of),), of, _make_extreme("min", 1)),
            ),
            cost=WALKED,
            result=parts,
        ),
        Function("indexOf", (declare_member("list_a_index_of_int", (_LIST, A), INT, _index_of),), cost=SOUGHT),
        Function(
            "lastIndexOf", (declare_member("list_a_last_index_of_int", (_LIST, A), INT, _last_index_of),), cost=SOUGHT
        ),
    ),
)

EXTENSION = Library(
    "lists",
    (
        Function(
            "slice",
            (declare_member("list_slice", (_LIST, INT, INT), _LIST, _slice, price=BY_RESULT),),
            cost=COPIED,
            result=parts,
        ),
        Function(
            "flatten",
            (
                declare_member("list_flatten", (list_of(_LIST),), _LIST, _flatten_one, price=FLATTENED),
                declare_member(
                    "list_flatten_int",
                    (list_of(DYN), INT),
                    list_of(DYN),
                    _flatten,
                    price=FLATTENED_OR_REFUSED,
                    tracker=Tracker(1, int),
                ),
            ),
            guarded=False,
            cost=FLATTENING,
            result=parts,
        ),
        Function(
            "sort",
            _for_each(
                _COMPARABLE,
                lambda _, of: declare_member(
                    f"list_{of.name}_sort", (list_of(of),), list_of(of), price=SELF_COMPARED, tracker=Tracker(0, list)
                ),
            ),
            _sort,
            frozenset({list}),
            cost=SORTED,
            result=parts,
            flow=ArgumentFlow.SORTS,
        ),
        Function(
            "@sortByAssociatedKeys",
            _for_each(
                _COMPARABLE,
                lambda _, of: declare_member(
                    f"list_{of.name}_sortByAssociatedKeys",
                    (_LIST, list_of(of)),
                    _LIST,
                    price=KEYS_COMPARED,
                    tracker=Tracker(1, list),
                ),
            ),
            _sort_by,
            frozenset({list}),
            cost=SORTED,
            result=parts,
        ),
        Function(
            "lists.range",
            (Overload("lists_range", (INT,), list_of(INT), make_range, price=NUMBERED),),
            cost=NUMBERING,
            result=size_of_numbers,
        ),
        Function(
            "reverse",
            (declare_member("list_reverse", (_LIST,), _LIST, _reverse, price=BY_RESULT),),
            cost=COPIED,
            result=parts,
        ),
        Function(
            "distinct",
            (
                declare_member(
                    "list_distinct", (_LIST,), _LIST, _distinct, price=SELF_COMPARED, tracker=Tracker(0, list)
                ),
            ),
            cost=SORTED.add_work(COMPARING),
            result=parts,
            flow=ArgumentFlow.SORTS,
        ),
    ),
    since=releases.LISTS.since,
)
INCLUDES = Library(
    "kubernetes.lists.includes",
    (Function("includes", (declare_member("dyn_includes", (DYN, DYN), BOOL, _includes),), cost=SOUGHT),),
    since=releases.INCLUDES.since,
)
