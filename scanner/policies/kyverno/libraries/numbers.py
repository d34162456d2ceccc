"""cel-go's math extension, which Kubernetes does not have, and Kyverno's rounding to decimals.

Source of truth: ext.Math of cel-go 0.31. Doubles are rounded half away from zero, as Go's math.Round does.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import BOOL, DOUBLE, DYN, INT, UINT, Type, list_of
from scanner.cel.values import arithmetic, equality
from scanner.cel.values.values import UINT_MAX, UInt, Value

_NUMBERS = (DOUBLE, INT, UINT)
_BITS = 64


def _extreme(name: str, wanted: int) -> Function:
    """Declare `math.greatest` or `math.least`: an argument replaces the kept one if the comparison returns `wanted`."""

    def of_list(values: list[Value]) -> Value:
        if not values:
            raise EvaluationError(f"math.@{name}(list) argument must not be empty")
        kept = values[0]
        for value in values[1:]:
            kept = value if equality.order(value, kept) == wanted else kept
        return kept

    def of_two(left: Value, right: Value) -> Value:
        return of_list([left, right])

    def result(left: Type, right: Type) -> Type:
        return left if left == right else DYN

    return Function(
        f"math.{'greatest' if name == 'max' else 'least'}",
        (
            *(Overload(f"math_@{name}_{type_.name}", (type_,), type_, lambda value: value) for type_ in _NUMBERS),
            *(
                Overload(f"math_@{name}_{left.name}_{right.name}", (left, right), result(left, right), of_two)
                for left, right in product(_NUMBERS, repeat=2)
            ),
            *(Overload(f"math_@{name}_list_{type_.name}", (list_of(type_),), type_, of_list) for type_ in _NUMBERS),
        ),
        cost=ONE,
    )


def _rounded(value: float) -> float:
    if not math.isfinite(value):
        return value
    whole = math.trunc(value)
    away = math.copysign(1.0, value) if abs(value - whole) >= 0.5 else 0.0  # noqa: PLR2004
    return math.copysign(float(whole) + away, value)


def _rounded_to(value: float, places: int) -> float:
    try:
        scale = 10.0**places
    except OverflowError:
        scale = math.inf
    scaled = value * scale
    return _rounded(scaled) / scale if scale else math.nan


def _whole(rule: Callable[[float], int]) -> Callable[[float], Value]:
    def run(value: float) -> Value:
        return math.copysign(float(rule(value)), value) if math.isfinite(value) else value

    return run


def _absolute_int(value: int) -> Value:
    return arithmetic.check_int(abs(value))


def _sign_int(value: int) -> int:
    return (value > 0) - (value < 0)


def _sign_double(value: float) -> float:
    if math.isnan(value) or value == 0:
        return value if math.isnan(value) else 0.0
    return math.copysign(1.0, value)


def _root(value: float) -> float:
    return math.nan if value < 0 or math.isnan(value) else math.sqrt(value)


def _signed(bits: int) -> int:
    bits &= UINT_MAX
    return bits - (1 << _BITS) if bits >> (_BITS - 1) else bits


def _unsigned(bits: int) -> UInt:
    return UInt(bits & UINT_MAX)


def _bitwise(name: str, rule: Callable[[int, int], int]) -> Function:
    return Function(
        f"math.{name}",
        (
            Overload(f"math_{name}_int_int", (INT, INT), INT, lambda left, right: _signed(rule(left, right))),
            Overload(f"math_{name}_uint_uint", (UINT, UINT), UINT, lambda left, right: _unsigned(rule(left, right))),
        ),
        cost=ONE,
    )


def _shift(name: str, rule: Callable[[int, int], int]) -> Function:
    def shifted(bits: int, places: int) -> int:
        if places < 0:
            raise EvaluationError(f"math.{name}() negative offset: {places}")
        return 0 if places >= _BITS else rule(bits & UINT_MAX, places)

    return Function(
        f"math.{name}",
        (
            Overload(f"math_{name}_int_int", (INT, INT), INT, lambda bits, by: _signed(shifted(bits, by))),
            Overload(f"math_{name}_uint_int", (UINT, INT), UINT, lambda bits, by: _unsigned(shifted(bits, by))),
        ),
        cost=ONE,
    )


def _of_double(name: str, result: Type, run: Callable[[float], Value]) -> Function:
    return Function(f"math.{name}", (Overload(f"math_{name}_double", (DOUBLE,), result, run),), cost=ONE)


LIBRARY = Library(
    "kyverno.math",
    (
        _extreme("max", 1),
        _extreme("min", -1),
        _of_double("ceil", DOUBLE, _whole(math.ceil)),
        _of_double("floor", DOUBLE, _whole(math.floor)),
        _of_double("trunc", DOUBLE, _whole(math.trunc)),
        Function(
            "math.round",
            (
                Overload("math_round_double", (DOUBLE,), DOUBLE, _rounded),
                Overload("math_round_double_int", (DOUBLE, INT), DOUBLE, _rounded_to),
            ),
            cost=ONE,
        ),
        Function(
            "math.abs",
            (
                Overload("math_abs_double", (DOUBLE,), DOUBLE, abs),
                Overload("math_abs_int", (INT,), INT, _absolute_int),
                Overload("math_abs_uint", (UINT,), UINT, lambda value: value),
            ),
            cost=ONE,
        ),
        Function(
            "math.sign",
            (
                Overload("math_sign_double", (DOUBLE,), DOUBLE, _sign_double),
                Overload("math_sign_int", (INT,), INT, _sign_int),
                Overload("math_sign_uint", (UINT,), UINT, lambda value: UInt(value > 0)),
            ),
            cost=ONE,
        ),
        Function(
            "math.sqrt",
            tuple(
                Overload(f"math_sqrt_{type_.name}", (type_,), DOUBLE, lambda value: _root(float(value)))
                for type_ in _NUMBERS
            ),
            cost=ONE,
        ),
        _of_double("isNaN", BOOL, math.isnan),
        _of_double("isInf", BOOL, math.isinf),
        _of_double("isFinite", BOOL, math.isfinite),
        _bitwise("bitAnd", int.__and__),
        _bitwise("bitOr", int.__or__),
        _bitwise("bitXor", int.__xor__),
        Function(
            "math.bitNot",
            (
                Overload("math_bitNot_int", (INT,), INT, lambda bits: ~bits),
                Overload("math_bitNot_uint", (UINT,), UINT, lambda bits: _unsigned(~bits)),
            ),
            cost=ONE,
        ),
        _shift("bitShiftLeft", int.__lshift__),
        _shift("bitShiftRight", int.__rshift__),
    ),
)
