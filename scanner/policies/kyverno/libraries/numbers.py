"""cel-go's math extension, which Kubernetes does not have, and Kyverno's rounding to decimals.

Source of truth: ext.Math of cel-go 0.30. Doubles are rounded half away from zero, as Go's math.Round does.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Run
from scanner.cel.values import arithmetic, equality
from scanner.cel.values.values import UINT_MAX, UInt, Value
from scanner.policies.kyverno.libraries.declared import Implementation

_NUMBERS = ("double", "int", "uint")
_BITS = 64
_LARGEST_SHIFT = 1 << 12


def _extreme(name: str, wanted: int) -> dict[str, Run]:
    """Return the overloads of `math.greatest` or `math.least`: an argument replaces the kept one if the comparison is `wanted`."""

    def of_list(values: list[Value]) -> Value:
        if not values:
            raise EvaluationError(f"math.@{name}(list) argument must not be empty")
        kept = values[0]
        for value in values[1:]:
            kept = value if equality.order(value, kept) == wanted else kept
        return kept

    def of_two(left: Value, right: Value) -> Value:
        return of_list([left, right])

    return {
        **{f"math_@{name}_{type_}": _itself for type_ in _NUMBERS},
        **{f"math_@{name}_{left}_{right}": of_two for left, right in product(_NUMBERS, repeat=2)},
        **{f"math_@{name}_list_{type_}": of_list for type_ in _NUMBERS},
    }


def _itself(value: Value) -> Value:
    return value


def _rounded(value: float) -> float:
    if not math.isfinite(value):
        return value
    whole = math.trunc(value)
    away = math.copysign(1.0, value) if abs(value - whole) >= 0.5 else 0.0  # noqa: PLR2004
    return math.copysign(float(whole) + away, value)


def _rounded_to(value: float, places: int) -> float:
    scale = _power_of_ten(places)
    scaled = value * scale
    return _rounded(scaled) / scale if scale else math.nan


def _power_of_ten(exponent: int) -> float:
    """Return Go's `math.Pow(10, exponent)`, which differs from the nearest double in the last bit of some powers."""
    fraction, power = 1.0, 0
    base, shift = math.frexp(10.0)
    rest = abs(exponent)
    while rest:
        if abs(shift) > _LARGEST_SHIFT:
            return 0.0 if exponent < 0 else math.inf
        if rest & 1:
            fraction, power = fraction * base, power + shift
        base, shift = base * base, shift << 1
        if base < 0.5:  # noqa: PLR2004
            base, shift = base + base, shift - 1
        rest >>= 1
    if exponent < 0:
        fraction, power = 1 / fraction, -power
    try:
        return math.ldexp(fraction, power)
    except OverflowError:
        return math.inf


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


def _bitwise(name: str, rule: Callable[[int, int], int]) -> dict[str, Run]:
    return {
        f"math_{name}_int_int": lambda left, right: _signed(rule(left, right)),
        f"math_{name}_uint_uint": lambda left, right: _unsigned(rule(left, right)),
    }


def _shift(name: str, rule: Callable[[int, int], int]) -> dict[str, Run]:
    def shifted(bits: int, places: int) -> int:
        if places < 0:
            raise EvaluationError(f"math.{name}() negative offset: {places}")
        return 0 if places >= _BITS else rule(bits & UINT_MAX, places)

    return {
        f"math_{name}_int_int": lambda bits, by: _signed(shifted(bits, by)),
        f"math_{name}_uint_int": lambda bits, by: _unsigned(shifted(bits, by)),
    }


IMPLEMENTATION = Implementation(
    {
        **_extreme("max", 1),
        **_extreme("min", -1),
        "math_ceil_double": _whole(math.ceil),
        "math_floor_double": _whole(math.floor),
        "math_trunc_double": _whole(math.trunc),
        "math_round_double": _rounded,
        "math_round_float_int": _rounded_to,
        "math_abs_double": abs,
        "math_abs_int": _absolute_int,
        "math_abs_uint": _itself,
        "math_sign_double": _sign_double,
        "math_sign_int": _sign_int,
        "math_sign_uint": lambda value: UInt(value > 0),
        **{f"math_sqrt_{type_}": lambda value: _root(float(value)) for type_ in _NUMBERS},
        "math_isNaN_double": math.isnan,
        "math_isInf_double": math.isinf,
        "math_isFinite_double": math.isfinite,
        **_bitwise("bitAnd", int.__and__),
        **_bitwise("bitOr", int.__or__),
        **_bitwise("bitXor", int.__xor__),
        "math_bitNot_int_int": lambda bits: ~bits,
        "math_bitNot_uint_uint": lambda bits: _unsigned(~bits),
        **_shift("bitShiftLeft", int.__lshift__),
        **_shift("bitShiftRight", int.__rshift__),
    }
)
