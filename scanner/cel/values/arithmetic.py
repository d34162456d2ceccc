"""Arithmetic.

Rules: `docs/semantics/cel-evaluation.md#arithmetic`.
"""

from __future__ import annotations

import math

from scanner.cel.errors import EvaluationError
from scanner.cel.values import list_kinds
from scanner.cel.values.runtime import FIRST_SECOND, LAST_SECOND, SECOND, Operand, make_no_overload
from scanner.cel.values.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Timestamp,
    UInt,
    Value,
)


def check_int(number: int) -> int:
    """Return an int that fits 64 bits. Raises EvaluationError if it does not fit."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("integer overflow")


def check_uint(number: int) -> UInt:
    """Return a number as an uint of 64 bits. Raises EvaluationError if it does not fit."""
    if 0 <= number <= UINT_MAX:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow")


def make_timestamp(nanoseconds: int, offset: int) -> Timestamp:
    """Return the timestamp of nanoseconds since 1970; `offset` is in seconds east of UTC.

    Raises EvaluationError outside of the years 1 to 9999.
    """
    if FIRST_SECOND <= nanoseconds // SECOND <= LAST_SECOND:
        return Timestamp(nanoseconds, offset)
    raise EvaluationError("timestamp overflow")


def add(left: Operand, right: Operand) -> Value:
    """Return `left + right`: a number, text, bytes, list, timestamp or duration.

    Raises EvaluationError for operands of other types, and if the result does not fit its type.
    """
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return check_int(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is list:
            return list_kinds.join_lists(left, right)
        if kind is UInt:
            return check_uint(int(left) + int(right))
        if kind is Duration:
            return Duration(check_int(left.nanoseconds + right.nanoseconds))
    elif type(left) is Timestamp and type(right) is Duration:
        return make_timestamp(left.nanoseconds + right.nanoseconds, left.offset)
    elif type(left) is Duration and type(right) is Timestamp:
        return make_timestamp(left.nanoseconds + right.nanoseconds, right.offset)
    raise make_no_overload()


def subtract(left: Operand, right: Operand) -> Value:
    """Return `left - right`; the difference of two timestamps is a duration.

    Raises EvaluationError for operands of other types, and if the result does not fit its type.
    """
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return check_int(left - right)
        if kind is float:
            return left - right
        if kind is UInt:
            return check_uint(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return Duration(check_int(left.nanoseconds - right.nanoseconds))
    elif type(left) is Timestamp and type(right) is Duration:
        return make_timestamp(left.nanoseconds + check_int(-right.nanoseconds), left.offset)
    raise make_no_overload()


def multiply(left: Operand, right: Operand) -> Value:
    """Return `left * right` of two numbers of one type.

    Raises EvaluationError for operands of other types, and if the result does not fit its type.
    """
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return check_int(left * right)
        if kind is float:
            return left * right
        if kind is UInt:
            return check_uint(int(left) * int(right))
    raise make_no_overload()


def divide(left: Operand, right: Operand) -> Value:
    """Return `left / right`, truncated towards zero for integers.

    Raises EvaluationError for operands of other types, a divisor of 0, and a result that does not fit.
    """
    if type(left) is float and type(right) is float:
        return _divide_doubles(left, right)
    if type(left) is not type(right) or type(left) not in (int, UInt):
        raise make_no_overload()
    if right == 0:
        raise EvaluationError("division by zero")
    quotient: int = abs(left) // abs(right)
    if type(left) is UInt:
        return UInt(quotient)
    return check_int(quotient if (left < 0) == (right < 0) else -quotient)


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
        raise make_no_overload()
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
        return check_int(-operand)
    if type(operand) is float:
        return -operand
    if type(operand) is Duration:
        return Duration(check_int(-operand.nanoseconds))
    raise make_no_overload()
