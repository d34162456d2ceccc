"""Equality, order and membership.

Rules: `docs/semantics/cel-evaluation.md#equality`.
"""

from __future__ import annotations

from collections.abc import Callable

from scanner.cel.errors import EvaluationError
from scanner.cel.types.type_system import Type
from scanner.cel.values.runtime import Operand, go_type, make_no_overload
from scanner.cel.values.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    KeyedMap,
    Message,
    Opaque,
    Optional,
    Struct,
    Timestamp,
    UInt,
    Value,
    map_key,
)
from scanner.cel.values.wrapped_values import are_same_structures, is_structure, is_wrapped

_NUMBERS = frozenset({int, UInt, float})
_PLAIN = frozenset({str, bool, bytes})


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal.

    Raises EvaluationError where the left one is of Kubernetes' own types, or wrapped, and the right one of another type.
    """
    # Null comes first: a comparison with null is no error, even for Kubernetes' own types.
    if left is None or right is None:
        return left is right
    kind = type(left)
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and equal_numbers(left, right)
    if kind is not type(right):
        return _equal_unlike(left, right)
    if kind in _PLAIN:
        return left == right
    return _equal_alike(left, right)


def unequal(left: Value, right: Value) -> bool:
    """Return whether two values are not equal; values that cannot be compared are unequal."""
    try:
        return not equal(left, right)
    except EvaluationError:
        return True


def _equal_unlike(left: Value, right: Value) -> bool:
    """Compare values of different classes: maps have two classes, and opaque types raise."""
    if type(left) in (dict, KeyedMap) and type(right) in (dict, KeyedMap):
        return equal_maps(left, right)
    if isinstance(left, Opaque) or (type(left) in (dict, list) and is_wrapped(left)):
        raise make_no_overload()
    return False


def _equal_alike(left: Operand, right: Operand) -> bool:
    """Compare values of one class that is neither plain nor a number."""
    if type(left) is list and type(right) is list:
        return len(left) == len(right) and _equal_elements(
            left, right, _is_surely_equal if is_wrapped(left) else _is_not_unequal
        )
    if type(left) in (dict, KeyedMap):
        return equal_maps(left, right)
    if isinstance(left, Opaque) and isinstance(right, Opaque):
        return left.equals(right)
    if type(left) in (Timestamp, Duration):
        return bool(left.nanoseconds == right.nanoseconds)
    if type(left) is Optional and type(right) is Optional:
        return left.present is right.present and (not left.present or _equal_inside(left.value, right.value))
    if type(left) is Type and type(right) is Type:
        return left.name == right.name
    if type(left) is Struct and type(right) is Struct:
        return left.type == right.type and equal_maps(left.fields, right.fields)
    if type(left) is Message and type(right) is Message:
        same = left.type == right.type and left.unknown == right.unknown
        return same and equal_maps(left.fields, right.fields)
    return left is right


def equal_sum(left: Value, right: Value) -> bool:
    """Return whether a list that `+` has joined is equal to another value.

    Raises the EvaluationError of two elements that cannot be compared, if no others differ: upstream compares them all.
    """
    if type(left) is not list or type(right) is not list or len(left) != len(right):
        return False
    failure: EvaluationError | None = None
    for first, second in zip(left, right, strict=True):
        try:
            if not equal(first, second):
                return False
        except EvaluationError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return True


def unequal_sum(left: Value, right: Value) -> bool:
    """Return whether a joined list differs from another value; values that cannot be compared are unequal."""
    try:
        return not equal_sum(left, right)
    except EvaluationError:
        return True


def contains_sum(element: Value, container: Value) -> bool:
    """Return whether a joined list is an element of a list; an error is no match."""
    if type(container) is not list:
        return contains(container, element)
    return any(not unequal_sum(element, candidate) for candidate in container)


def _equal_elements(left: list[Value], right: list[Value], same: Callable[[Value, Value], bool]) -> bool:
    """Compare element by element, without a function of C in between: lists may nest thousands of levels deep."""
    for first, second in zip(left, right, strict=True):  # noqa: SIM110
        if not same(first, second):
            return False
    return True


def _equal_inside(left: Value, right: Value) -> bool:
    """Compare the contents of two optionals; here null is no exception for opaque types."""
    if right is None and isinstance(left, Opaque):
        raise make_no_overload()
    return equal(left, right)


def _is_not_unequal(left: Value, right: Value) -> bool:
    """Compare elements; upstream takes an error between two elements for no difference."""
    try:
        return equal(left, right)
    except EvaluationError:
        return True


def equal_maps(left: Operand, right: Operand) -> bool:
    """Return whether two maps of either shape are equal; wrapped maps are stricter, and structures have their own equality."""
    same = _is_not_unequal
    if is_wrapped(left):
        if is_structure(left) and is_structure(right):
            return are_same_structures(left, right)
        same = equal if is_structure(left) else _is_surely_equal
    if len(left) != len(right):
        return False
    for key, value in left.items():
        other = find_key(right, key)
        if other is None or not same(value, other[0]):
            return False
    return True


def find_key(container: Value, key: Value) -> tuple[Value] | None:
    """Return the value under a map's key in a tuple of one, or None when there is none."""
    if type(container) is dict:
        return (container[key],) if type(key) is str and key in container else None
    if type(container) is KeyedMap:
        entry = container.find(key)
        return None if entry is None else (entry[1],)
    return None


def equal_numbers(left: Operand, right: Operand) -> bool:
    """Return whether two numbers of any types are equal; NaN equals nothing."""
    if type(left) is float or type(right) is float:
        if left != left or right != right:  # noqa: PLR0124 (NaN)
            return False
        return _order_mixed(left, right) == 0
    return bool(left == right)


def order(left: Operand, right: Operand) -> int:
    """Return -1, 0 or 1, the order of two values. Raises EvaluationError for NaN, and if the values have no order."""
    kind = type(left)
    if kind is type(right):
        if kind is int or kind is str or kind is bool or kind is bytes or kind is UInt:
            return int(left > right) - int(left < right)
        if kind is float:
            return _order_doubles(left, right)
        if kind is Timestamp or kind is Duration:
            return int(left.nanoseconds > right.nanoseconds) - int(left.nanoseconds < right.nanoseconds)
    elif kind in _NUMBERS and type(right) in _NUMBERS:
        return _order_doubles(left, right)
    raise make_no_overload()


def _order_doubles(left: Operand, right: Operand) -> int:
    if left != left or right != right:  # noqa: PLR0124 (NaN)
        raise EvaluationError("NaN values cannot be ordered")
    return _order_mixed(left, right)


def _order_mixed(left: Operand, right: Operand) -> int:
    """Order two numbers; an integer is compared to a double as the nearest double, unless the double is out of its range."""
    if type(left) is float and type(right) is not float:
        return _order_double(left, right)
    if type(right) is float and type(left) is not float:
        return -_order_double(right, left)
    return int(left > right) - int(left < right)


def _order_double(double: float, integer: Operand) -> int:
    low, high = (0, UINT_MAX) if type(integer) is UInt else (INT_MIN, INT_MAX)
    if double < float(low):
        return -1
    if double > float(high):
        return 1
    nearest = float(integer)
    return (double > nearest) - (double < nearest)


def contains(container: Value, element: Value) -> bool:
    """Return `element in container`: a key of a map, or equal to an element of a list.

    Raises EvaluationError if the container is neither a list nor a map.
    """
    if type(container) is dict:
        return element in container if type(element) is str else has_no_key(container, element)
    if type(container) is list:
        return any(_is_surely_equal(element, candidate) for candidate in container)
    if type(container) is KeyedMap:
        return container.find(element) is not None
    raise make_no_overload()


def is_key(key: Value, container: Value) -> bool:
    """Return `key in container` for a map that the expression made.

    Raises EvaluationStopped for a key that Go cannot hash, unless the map is empty; the types of the map's keys do not matter.
    """
    if type(container) is dict and container:
        map_key(key)
    return contains(container, key)


def has_no_key(container: Value, key: Value) -> bool:
    """Return False for a key that is no text. Raises EvaluationError for a wrapped map, which accepts no such key."""
    if is_wrapped(container):
        raise EvaluationError(f"unsupported map key type: {go_type(key)}")
    return False


def _is_surely_equal(left: Value, right: Value) -> bool:
    """Compare for membership; an error is no match."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False
