"""What operators, selections and indexes mean at run time (cel-go's common/types).

Every function takes values and returns a value or raises `EvaluationError` with upstream's text.

Rules: `docs/semantics/cel-evaluation.md#selection`, `docs/semantics/cel-evaluation.md#equality`,
`docs/semantics/cel-evaluation.md#arithmetic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from scanner.cel.errors import EvaluationError
from scanner.cel.types.type_system import Type
from scanner.cel.values import list_kinds
from scanner.cel.values.text import converted_double
from scanner.cel.values.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    KeyedMap,
    Lazy,
    Message,
    Opaque,
    Optional,
    Struct,
    Timestamp,
    UInt,
    Value,
    map_key,
    type_of,
)
from scanner.cel.values.wrapped_values import go_name, is_structure, same_structures, wrapped

SECOND = 10**9
FIRST_SECOND = -62_135_596_800
LAST_SECOND = 253_402_300_799
Unary: TypeAlias = "Callable[[Value], Value]"
Binary: TypeAlias = "Callable[[Value, Value], Value]"
Operand: TypeAlias = Any
"""A value whose class the code looks at before it does anything with it."""
_NUMBERS = frozenset({int, UInt, float})
_PLAIN = frozenset({str, bool, bytes})


def no_overload() -> EvaluationError:
    """Return the error of an operand of the wrong type."""
    return EvaluationError("no such overload")


def printed(value: Value) -> str:
    """Return a value the way Go's `%v` prints it inside error texts."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return converted_double(value)
    if type(value) is int or type(value) is UInt:
        return str(int(value))
    if type(value) is str:
        return value
    if value is None:
        return "0"
    if type(value) is bytes:
        return f"[{' '.join(map(str, value))}]"
    if type(value) is list:
        return f"[{', '.join([printed(element) for element in value])}]"
    if type(value) is dict or type(value) is KeyedMap:
        return "{" + ", ".join([f"{printed(key)}: {printed(item)}" for key, item in value.items()]) + "}"
    if type(value) is Optional:
        return f"optional({printed(value.value)})" if value.present else "optional.none()"
    return str(value)


# --- equality and order


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal; only Kubernetes' own types raise, when the other's type differs."""
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
    """Return whether two values are not equal; what cannot be compared is unequal."""
    try:
        return not equal(left, right)
    except EvaluationError:
        return True


def _equal_unlike(left: Value, right: Value) -> bool:
    """Compare values of different classes: maps come in two shapes, and opaque types refuse."""
    if type(left) in (dict, KeyedMap) and type(right) in (dict, KeyedMap):
        return equal_maps(left, right)
    if isinstance(left, Opaque) or (type(left) in (dict, list) and wrapped(left)):
        raise no_overload()
    return False


def _equal_alike(left: Operand, right: Operand) -> bool:
    """Compare values of one class that is neither plain nor a number."""
    if type(left) is list and type(right) is list:
        return len(left) == len(right) and _equal_elements(
            left, right, _surely_equal if wrapped(left) else _not_unequal
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
    """Compare a list that `+` has joined: upstream lets an error between two elements count there, if no others differ."""
    if type(left) is not list or type(right) is not list or len(left) != len(right):
        return False
    failure: EvaluationError | None = None
    for one, other in zip(left, right, strict=True):
        try:
            if not equal(one, other):
                return False
        except EvaluationError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return True


def unequal_sum(left: Value, right: Value) -> bool:
    """Negate the comparison of a joined list; what cannot be compared is unequal."""
    try:
        return not equal_sum(left, right)
    except EvaluationError:
        return True


def contains_sum(element: Value, container: Value) -> bool:
    """Return whether a joined list is an element of a list; an error is no match."""
    if type(container) is not list:
        return contains(container, element)
    return any(not unequal_sum(element, candidate) for candidate in container)


SUMS: dict[str, Callable[[Value, Value], bool]] = {"_==_": equal_sum, "_!=_": unequal_sum, "@in": contains_sum}
"""What compares a joined list, by function; its first operand is the list."""


def _equal_elements(left: list[Value], right: list[Value], same: Callable[[Value, Value], bool]) -> bool:
    """Compare element by element, without a function of C in between: lists may nest thousands of levels deep."""
    for one, other in zip(left, right, strict=True):  # noqa: SIM110
        if not same(one, other):
            return False
    return True


def _equal_inside(left: Value, right: Value) -> bool:
    """Compare what two optionals hold; here null is no exception for opaque types."""
    if right is None and isinstance(left, Opaque):
        raise no_overload()
    return equal(left, right)


def _not_unequal(left: Value, right: Value) -> bool:
    """Compare elements; upstream takes an error between two elements for no difference."""
    try:
        return equal(left, right)
    except EvaluationError:
        return True


def equal_maps(left: Operand, right: Operand) -> bool:
    """Compare two maps of either shape; wrapped ones are stricter, and structures have an equality of their own."""
    same = _not_unequal
    if wrapped(left):
        if is_structure(left) and is_structure(right):
            return same_structures(left, right)
        same = equal if is_structure(left) else _surely_equal
    if len(left) != len(right):
        return False
    for key, value in left.items():
        other = find_key(right, key)
        if other is None or not same(value, other[0]):
            return False
    return True


def find_key(container: Value, key: Value) -> tuple[Value] | None:
    """Return the value under a map's key, wrapped, or None when there is none."""
    if type(container) is dict:
        return (container[key],) if type(key) is str and key in container else None
    if type(container) is KeyedMap:
        entry = container.find(key)
        return None if entry is None else (entry[1],)
    return None


def equal_numbers(left: Operand, right: Operand) -> bool:
    """Compare two numbers of any type; NaN equals nothing."""
    if type(left) is float or type(right) is float:
        if left != left or right != right:  # noqa: PLR0124 (NaN)
            return False
        return _order_mixed(left, right) == 0
    return bool(left == right)


def order(left: Operand, right: Operand) -> int:
    """Return -1, 0 or 1. Raises EvaluationError if the values have no order."""
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
    raise no_overload()


def _order_doubles(left: Operand, right: Operand) -> int:
    if left != left or right != right:  # noqa: PLR0124 (NaN)
        raise EvaluationError("NaN values cannot be ordered")
    return _order_mixed(left, right)


def _order_mixed(left: Operand, right: Operand) -> int:
    """Order two numbers; an integer meets a double as the nearest double, unless the double is out of its range."""
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
        return element in container if type(element) is str else _has_no_key(container, element)
    if type(container) is list:
        return any(_surely_equal(element, candidate) for candidate in container)
    if type(container) is KeyedMap:
        return container.find(element) is not None
    raise no_overload()


def is_key(key: Value, container: Value) -> bool:
    """Return `key in container` for a map that the expression made; Go hashes the key, whatever the keys of the map are."""
    if type(container) is dict and container:
        map_key(key)
    return contains(container, key)


def _has_no_key(container: Value, key: Value) -> bool:
    """Return False for a key that is no text; a wrapped map refuses it."""
    if wrapped(container):
        raise EvaluationError(f"unsupported map key type: {go_type(key)}")
    return False


def _surely_equal(left: Value, right: Value) -> bool:
    """Compare for membership; an error is no match."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


# --- arithmetic


def checked(number: int) -> int:
    """Return a number that fits 64 bits. Raises EvaluationError if it does not fit."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("integer overflow")


def checked_unsigned(number: int) -> UInt:
    """Return a number that fits 64 bits without a sign. Raises EvaluationError if it does not fit."""
    if 0 <= number <= UINT_MAX:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


def moment(nanoseconds: int, offset: int) -> Timestamp:
    """Return a timestamp between the years 1 and 9999. Raises EvaluationError for another year."""
    if FIRST_SECOND <= nanoseconds // SECOND <= LAST_SECOND:
        return Timestamp(nanoseconds, offset)
    raise EvaluationError("timestamp overflow")


def add(left: Operand, right: Operand) -> Value:
    """Return `left + right`.

    Raises EvaluationError for operands of other types, and if the result does not fit its type.
    """
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is list:
            return list_kinds.joined(left, right)
        if kind is UInt:
            return checked_unsigned(int(left) + int(right))
        if kind is Duration:
            return Duration(checked(left.nanoseconds + right.nanoseconds))
    elif type(left) is Timestamp and type(right) is Duration:
        return moment(left.nanoseconds + right.nanoseconds, left.offset)
    elif type(left) is Duration and type(right) is Timestamp:
        return moment(left.nanoseconds + right.nanoseconds, right.offset)
    raise no_overload()


def subtract(left: Operand, right: Operand) -> Value:
    """Return `left - right`.

    Raises EvaluationError for operands of other types, and if the result does not fit its type.
    """
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked(left - right)
        if kind is float:
            return left - right
        if kind is UInt:
            return checked_unsigned(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return Duration(checked(left.nanoseconds - right.nanoseconds))
    elif type(left) is Timestamp and type(right) is Duration:
        return moment(left.nanoseconds + checked(-right.nanoseconds), left.offset)
    raise no_overload()


def multiply(left: Operand, right: Operand) -> Value:
    """Return `left * right`.

    Raises EvaluationError for operands of other types, and if the result does not fit its type.
    """
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return checked(left * right)
        if kind is float:
            return left * right
        if kind is UInt:
            return checked_unsigned(int(left) * int(right))
    raise no_overload()


def divide(left: Operand, right: Operand) -> Value:
    """Return `left / right`, truncated towards zero for integers.

    Raises EvaluationError for operands of other types, a divisor of 0, and a result that does not fit.
    """
    if type(left) is float and type(right) is float:
        return _divide_doubles(left, right)
    if type(left) is not type(right) or type(left) not in (int, UInt):
        raise no_overload()
    if right == 0:
        raise EvaluationError("division by zero")
    quotient: int = abs(left) // abs(right)
    if type(left) is UInt:
        return UInt(quotient)
    return checked(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder(left: Operand, right: Operand) -> Value:
    """Return `left % right`, with the sign of the dividend.

    Raises EvaluationError for operands of other types, a divisor of 0, and a result that does not fit.
    """
    if type(left) is not type(right) or type(left) not in (int, UInt):
        raise no_overload()
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest: int = abs(left) % abs(right)
    if type(left) is UInt:
        return UInt(rest)
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    return -rest if left < 0 else rest


def negate(operand: Operand) -> Value:
    """Return `-operand`.

    Raises EvaluationError for an operand of another type, and if the result does not fit its type.
    """
    if type(operand) is int:
        return checked(-operand)
    if type(operand) is float:
        return -operand
    if type(operand) is Duration:
        return Duration(checked(-operand.nanoseconds))
    raise no_overload()


# --- selection and indexes


def select(container: Value, field: str) -> Value:
    """Return `container.field`, or the element under a constant string index.

    Raises EvaluationError if there is none, and for an impossible index.
    """
    if type(container) is dict:
        try:
            return container[field]
        except KeyError:
            raise EvaluationError(f"no such key: {field}") from None
    return index(container, field)


def index(container: Value, key: Value) -> Value:
    """Return `container[key]`. Raises EvaluationError if there is none, and for an impossible index."""
    found = look_up(container, key)
    if found is not None:
        return found[0]
    if type(container) is list:
        raise EvaluationError(f"index out of bounds: {printed(key)}")
    raise EvaluationError(f"no such key: {printed(key)}")


def look_up(container: Value, key: Value) -> tuple[Value] | None:
    """Return what is under a key or index, wrapped, or None where there is nothing.

    Raises EvaluationError for an impossible index.
    """
    require_key(key)
    if type(container) is list:
        at = list_index(key)
        if not 0 <= at < len(container):
            return None
        if type(key) is not int and wrapped(container):
            raise EvaluationError(f"unsupported index type: {go_type(key)}")
        return (container[at],)
    if isinstance(container, Lazy):
        return _entry(container, key)
    if type(container) is Struct:
        return container.find(key)
    if type(container) is Message:
        return (container.find(key),)
    if type(container) is dict and type(key) is not str:
        return (None,) if _has_no_key(container, key) else None
    return find_key(container, key)


def probe(container: Value, key: Value) -> tuple[Value] | None:
    """Return what is under a key as an optional selection sees it: a field of a message that is not set is not there."""
    found = look_up(container, key)
    return None if type(container) is Message and key not in container.fields else found


def _entry(variables: Lazy, key: Value) -> tuple[Value] | None:
    if type(key) is not str:
        raise no_overload()
    return variables.find(key)


_KEYS = frozenset({str, int, UInt, bool, float})


def require_key(key: Value) -> None:
    """Raise EvaluationError for a value that can be neither the key of a map nor the index of a list in an index."""
    if type(key) not in _KEYS:
        raise EvaluationError(f"invalid qualifier type: {go_type(key)}")


def list_index(key: Value) -> int:
    """Return what a value is as the index of a list. Raises EvaluationError for what is no whole number."""
    if type(key) is int:
        return key
    if type(key) is float:
        if key.is_integer() and INT_MIN < key < INT_MAX:
            return int(key)
        raise EvaluationError(f"unsupported index value {printed(key)} in list")
    if type(key) is UInt:
        if key <= INT_MAX:
            return int(key)
        raise EvaluationError(f"unsupported index value {printed(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_of(key).name}' in list")


def has(container: Value, field: str) -> bool:
    """Return `has(container.field)`."""
    if type(container) is dict:
        return field in container
    if type(container) is Struct:
        return field in container.fields
    return probe(container, field) is not None


def rewrapped(value: Value) -> Value:
    """Return what upstream makes of a value that it unwraps to a Go value and takes back.

    Plain values survive it; a nested optional loses a level, a type becomes its name, and what has no way back becomes an error
    that shows when the value is used.
    """
    if type(value) is Optional:
        return rewrapped(value.value) if value.present else None
    if type(value) is Type:
        return value.name
    native = getattr(type(value), "GO_NATIVE", None)
    if native is not None:
        return EvaluationError(f"unsupported conversion to ref.Val: ({native}){value}")
    return value


_GO_TYPES = {
    bool: "types.Bool",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    Type: "*types.Type",
    Optional: "*types.Optional",
    list: "*types.baseList",
    dict: "*types.baseMap",
    KeyedMap: "*types.baseMap",
    Struct: "*dynamic.ObjectVal",
    Message: "*types.protoObj",
}


def go_type(value: Value) -> str:
    """Return the name of upstream's implementation of a value, which some error texts show."""
    return value.go_type() if isinstance(value, Opaque) else go_name(value) or _GO_TYPES[type(value)]


def elements(container: Value) -> list[Value]:
    """Return what a comprehension of one variable runs over.

    Raises EvaluationError if it is neither a list nor a map.
    """
    if type(container) is list:
        return container
    if type(container) is dict or type(container) is KeyedMap:
        return list(container)
    if isinstance(container, Lazy):
        return [_found_or_failed(container, name) for name in container.names()]
    raise EvaluationError(f"got '{go_type(container)}', expected iterable type")


def _found_or_failed(variables: Lazy, name: Value) -> Value:
    """Return the value of a variable, or its error, which shows when somebody reads it."""
    try:
        return index(variables, name)
    except EvaluationError as error:
        return error


def pairs(container: Value) -> list[tuple[Value, Value]]:
    """Return what a comprehension of two variables runs over.

    Raises EvaluationError if it is neither a list nor a map.
    """
    if type(container) is list:
        return list(enumerate(container))
    if type(container) is dict or type(container) is KeyedMap:
        return list(container.items())
    if isinstance(container, Lazy):
        return [(value, _found_or_failed(container, value)) for value in elements(container)]
    raise EvaluationError(f"unsupported comprehension range type: {go_type(container)}")
