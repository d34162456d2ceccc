"""Resource quantities (apimachinery's resource.Quantity).

A quantity is `unscaled * 10 ** exponent`. Upstream keeps small ones as an int64 with a scale and others as big decimals, and
only the former with a scale of zero or more count as integers, so the form is part of the value. Results of arithmetic are
of a pointer type, which `==` rejects on its right.

Rules: `docs/semantics/cel-libraries.md#quantities`.
"""

from __future__ import annotations

import re
from copy import copy
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import ClassVar, NamedTuple

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import ONE, READ
from scanner.cel.functions.result_sizes import parts
from scanner.cel.types.type_system import BOOL, DOUBLE, INT, STRING, Type, object_type
from scanner.cel.values.runtime import make_no_overload
from scanner.cel.values.text import count_digits
from scanner.cel.values.text import parse_whole as whole_number
from scanner.cel.values.values import INT_MAX, INT_MIN, Opaque, Value

QUANTITY = object_type("kubernetes.Quantity")
_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"
_SCANNED = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)\Z")
_NANO = -9
_FAST_DIGITS = 18
_FAST_BINARY_DIGITS = 15
_WIDEST_ALIGNMENT = 10_000
_DIGITS_OF_INT64 = 19
_LONGEST_EXPONENT = 1000


class Quantity(Opaque):
    """A number with a decimal exponent; `small` and `computed` distinguish upstream's representations.

    `style` and `written`, the text from which it was parsed, determine its printed form. `sharing` are, until 1.36, the
    quantities that hold the same big decimal, which arithmetic changes in place.
    """

    __slots__ = ("computed", "exponent", "sharing", "small", "style", "unscaled", "written")
    TYPE: ClassVar[Type] = QUANTITY
    GO_TYPE: ClassVar[str] = "cel.Quantity"
    EQUAL_AT_ONCE: ClassVar[bool] = True
    GO_NATIVE: ClassVar[str] = "*resource.Quantity"

    def __init__(self, unscaled: int, exponent: int, *, small: bool, computed: bool = False) -> None:
        self.unscaled = unscaled
        self.exponent = exponent
        self.small = small
        self.computed = computed
        self.sharing: list[Quantity] = []
        self.style = QuantityStyle.DECIMAL
        self.written: tuple[str, int] | None = None

    def __str__(self) -> str:
        printed = format_canonical(self.unscaled, self.exponent, self.style)
        if self.written is not None and self.written[1] == printed.exponent and self.unscaled:
            return self.written[0]
        return printed.text

    def go_type(self) -> str:
        """Return upstream's Go type, a pointer when the value was computed."""
        return f"*{self.GO_TYPE}" if self.computed else self.GO_TYPE

    def equals(self, other: Opaque) -> bool:
        """Return whether the values are equal. Raises EvaluationError for another type, and for a computed right side."""
        if not isinstance(other, Quantity) or other.computed:
            raise make_no_overload()
        return compare(self, other) == 0


def compare(left: Quantity, right: Quantity) -> int:
    """Return -1, 0 or 1, the exact order of two quantities."""
    if left.exponent == right.exponent:
        return (left.unscaled > right.unscaled) - (left.unscaled < right.unscaled)
    if _get_sign(left.unscaled) != _get_sign(right.unscaled) or left.unscaled == 0:
        return _get_sign(_get_sign(left.unscaled) - _get_sign(right.unscaled))
    # Equal exponents would need numbers of more than so many digits.
    if abs(left.exponent - right.exponent) > _WIDEST_ALIGNMENT:
        larger = _measure_magnitude(left) - _measure_magnitude(right)
        return _get_sign(larger) * _get_sign(left.unscaled)
    ours, theirs = _align(left, right)
    return (ours > theirs) - (ours < theirs)


def is_less(left: Quantity, right: Quantity) -> bool:
    """Return whether a quantity is less than another; most have the same exponent."""
    if left.exponent == right.exponent:
        return left.unscaled < right.unscaled
    return compare(left, right) < 0


def _measure_magnitude(quantity: Quantity) -> int:
    return count_digits(abs(quantity.unscaled)) + quantity.exponent


def _get_sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _align(left: Quantity, right: Quantity) -> tuple[int, int]:
    exponent = min(left.exponent, right.exponent)
    ours: int = left.unscaled * 10 ** (left.exponent - exponent)
    theirs: int = right.unscaled * 10 ** (right.exponent - exponent)
    return ours, theirs


@lru_cache(maxsize=16384)
def parse(text: str) -> Quantity:
    """Return the quantity of a text; raise `EvaluationError` with upstream's message for a malformed one. Results are cached.

    Mirrors `ParseQuantity` of apimachinery's `pkg/api/resource`.
    """
    match = _SCANNED.match(text)
    if match is None or not text:
        raise EvaluationError(_WRONG_FORMAT)
    sign, zeros, whole, fraction, suffix = match.groups(default="")
    if not whole and not fraction and not suffix and "." not in text:
        return Quantity(0, 0, small=True)
    base, exponent = _interpret(suffix)
    quantity = _make_parsed(sign, zeros, whole, fraction, base, exponent)
    if suffix not in _DECIMAL:
        quantity.style = QuantityStyle.BINARY if suffix in _BINARY else QuantityStyle.EXPONENT
    if not fraction:
        quantity.written = (text, exponent)
    return quantity


def _make_parsed(sign: str, zeros: str, whole: str, fraction: str, base: int, exponent: int) -> Quantity:
    digits = whole or "0"
    negative = sign == "-"
    fast = _parse_small(digits, fraction, base, exponent)
    if fast is not None:
        return Quantity(-fast[0] if negative else fast[0], fast[1], small=True)
    if not zeros and not whole and not fraction:
        raise EvaluationError(_WRONG_NUMBER)
    return _make_big(whole_number(digits + fraction), -len(fraction), base, exponent, negative=negative)


def make_quantity(text: str) -> Quantity:
    """Return a new quantity of a text: as the key of a map it differs from every other quantity.

    Raises EvaluationError as `parse`.
    """
    return copy(parse(text))


def _interpret(suffix: str) -> tuple[int, int]:
    """Return base and exponent of a suffix."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return 2, _BINARY[suffix]
    match = _EXPONENT.match(suffix)
    if match is None or len(match.group(1)) > _LONGEST_EXPONENT or not INT_MIN <= int(match.group(1)) <= INT_MAX:
        raise EvaluationError(_WRONG_SUFFIX)
    # Upstream converts the exponent to an int32, which wraps around.
    exponent = int(match.group(1)) & 0xFFFFFFFF
    return 10, exponent - (1 << 32) if exponent >= 1 << 31 else exponent


def _parse_small(whole: str, fraction: str, base: int, exponent: int) -> tuple[int, int] | None:
    """Return value and scale of a quantity that upstream keeps in an int64, or None."""
    if base == 10:  # noqa: PLR2004
        precision = _FAST_DIGITS - len(whole) - len(fraction)
        scale, factor = exponent, 1
    elif not fraction:
        precision = _FAST_BINARY_DIGITS - len(whole) - int(exponent * 3 / 10) - 1
        scale, factor = 0, 1 << exponent
    else:
        return None
    scale -= len(fraction)
    if precision < 0 or scale < _NANO:
        return None
    value = int(whole + fraction) * factor
    return (value, scale) if value <= INT_MAX else None


def _make_big(unscaled: int, scale: int, base: int, exponent: int, *, negative: bool) -> Quantity:
    """Return a big quantity: in nanos, rounded away from zero; binary ones capped at the largest int64."""
    if base == 10:  # noqa: PLR2004
        scale += exponent
    else:
        unscaled <<= exponent
    if unscaled and scale < _NANO:
        unscaled = _round_up(unscaled, _NANO - scale)
        scale = _NANO
    elif unscaled and scale < _WIDEST_ALIGNMENT:
        unscaled *= 10 ** (scale - _NANO)
        scale = _NANO
    if base == 2 and _exceeds_int64(unscaled, scale):  # noqa: PLR2004
        unscaled, scale = INT_MAX, 0
    return Quantity(-unscaled if negative else unscaled, scale, small=False)


def _round_up(unscaled: int, digits: int) -> int:
    if digits > count_digits(unscaled):
        return 1
    power: int = 10**digits
    quotient, rest = divmod(unscaled, power)
    return quotient + (rest > 0)


def _exceeds_int64(unscaled: int, scale: int) -> bool:
    limit: int = INT_MAX * 10**-scale
    return unscaled > limit


def add(left: Quantity, right: Quantity) -> Quantity:
    """Return the sum, in upstream's form; zero takes the style of the other operand."""
    small = _add_small(left, right.unscaled, right.exponent) if left.small and right.small else None
    return _set_style(small or _add_exactly(left, right), left, right)


def _set_style(result: Quantity, left: Quantity, right: Quantity) -> Quantity:
    result.style = left.style if left.unscaled else right.style
    return result


def _add_exactly(left: Quantity, right: Quantity) -> Quantity:
    ours, theirs = _align(left, right)
    return Quantity(ours + theirs, min(left.exponent, right.exponent), small=False, computed=True)


def _add_small(left: Quantity, unscaled: int, exponent: int) -> Quantity | None:
    if unscaled == 0:
        return Quantity(left.unscaled, left.exponent, small=True, computed=True)
    if left.unscaled == 0:
        return Quantity(unscaled, exponent, small=True, computed=True)
    if abs(left.exponent - exponent) > _DIGITS_OF_INT64:
        return None
    right = Quantity(unscaled, exponent, small=True)
    ours, theirs = _align(left, right)
    if not all(INT_MIN <= number <= INT_MAX for number in (ours, theirs, ours + theirs)):
        return None
    return Quantity(ours + theirs, min(left.exponent, right.exponent), small=True, computed=True)


def subtract(left: Quantity, right: Quantity) -> Quantity:
    """Return the difference, in upstream's form.

    Of the smallest int64 upstream subtracts the negative, which is the same number in 64 bits.
    """
    negative = right.unscaled if right.unscaled == INT_MIN else -right.unscaled
    small = _add_small(left, negative, right.exponent) if left.small and right.small else None
    exact = Quantity(-right.unscaled, right.exponent, small=False)
    return _set_style(small or _add_exactly(left, exact), left, right)


def make_from_int(number: int) -> Quantity:
    """Return the quantity of a whole number."""
    return Quantity(number, 0, small=True)


def _is_quantity(text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def _get_int64(quantity: Quantity) -> int | None:
    """Return the value as an int64, or None when upstream's form does not give one."""
    if not quantity.small or quantity.exponent < 0:
        return None
    if quantity.unscaled == 0:
        return 0
    if quantity.exponent > _DIGITS_OF_INT64:
        return None
    value: int = quantity.unscaled * 10**quantity.exponent
    return value if INT_MIN <= value <= INT_MAX else None


def _convert_to_int(quantity: Quantity) -> Value:
    value = _get_int64(quantity)
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


def _convert_to_float(quantity: Quantity) -> float:
    try:
        base = float(quantity.unscaled)
    except OverflowError:
        base = float("inf") * _get_sign(quantity.unscaled)
    return base if quantity.exponent == 0 else base * _compute_power_of_ten(quantity.exponent)


def _compute_power_of_ten(exponent: int) -> float:
    """Return Go's `math.Pow10`, which multiplies two table entries."""
    if exponent > 308:  # noqa: PLR2004
        return float("inf")
    if exponent < -323:  # noqa: PLR2004
        return 0.0
    coarse, fine = divmod(abs(exponent), 32)
    if exponent >= 0:
        return float(f"1e{coarse * 32}") * float(f"1e{fine}")
    return float(f"1e-{coarse * 32}") / float(f"1e{fine}")


LIBRARY = Library(
    "kubernetes.quantity",
    (
        Function(
            "quantity",
            (Overload("string_to_quantity", (STRING,), QUANTITY, make_quantity),),
            cost=READ,
            result=parts,
            parses=True,
        ),
        Function("isQuantity", (Overload("is_quantity_string", (STRING,), BOOL, _is_quantity),), cost=READ),
        Function(
            "sign",
            (Overload("quantity_sign", (QUANTITY,), INT, lambda quantity: _get_sign(quantity.unscaled)),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "isGreaterThan",
            (
                declare_member(
                    "quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, lambda left, right: is_less(right, left)
                ),
            ),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "isLessThan",
            (declare_member("quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, is_less),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "compareTo",
            (declare_member("quantity_compare_to", (QUANTITY, QUANTITY), INT, compare),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "asApproximateFloat",
            (declare_member("quantity_get_float", (QUANTITY,), DOUBLE, _convert_to_float),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "asInteger",
            (declare_member("quantity_get_int", (QUANTITY,), INT, _convert_to_int),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "isInteger",
            (
                declare_member(
                    "quantity_is_integer", (QUANTITY,), BOOL, lambda quantity: _get_int64(quantity) is not None
                ),
            ),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "add",
            (
                declare_member("quantity_add", (QUANTITY, QUANTITY), QUANTITY, add),
                declare_member(
                    "quantity_add_int", (QUANTITY, INT), QUANTITY, lambda left, right: add(left, make_from_int(right))
                ),
            ),
            cost=ONE,
            result=parts,
        ),
        Function(
            "sub",
            (
                declare_member("quantity_sub", (QUANTITY, QUANTITY), QUANTITY, subtract),
                declare_member(
                    "quantity_sub_int",
                    (QUANTITY, INT),
                    QUANTITY,
                    lambda left, right: subtract(left, make_from_int(right)),
                ),
            ),
            cost=ONE,
            result=parts,
        ),
    ),
)


# The canonical text of a quantity: a number below a thousand times its unit where possible, in the style of the
# input.
#
# Mirrors `Quantity.String` of apimachinery: a text that has the canonical unit already, and no fraction, stays
# unchanged.

_UNITS = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_UNITS = {0: "", 10: "Ki", 20: "Mi", 30: "Gi", 40: "Ti", 50: "Pi", 60: "Ei"}
_SMALLEST_BINARY = 1024
_GROUP = 3


class QuantityStyle(Enum):
    """The notation of a quantity: with `k` and `M`, with `e3` and `e6`, or with `Ki` and `Mi`."""

    DECIMAL = "decimal"
    EXPONENT = "exponent"
    BINARY = "binary"


class CanonicalText(NamedTuple):
    """The text, and the exponent of its unit: of ten or, for a binary unit, of two."""

    text: str
    exponent: int


def format_canonical(unscaled: int, exponent: int, style: QuantityStyle) -> CanonicalText:
    """Return the canonical text of `unscaled` times ten to the power of `exponent`, and the exponent of its unit."""
    if style is QuantityStyle.BINARY:
        value, rest = divmod(unscaled * 10 ** max(0, exponent), 10 ** max(0, -exponent))
        if not rest and abs(value) >= _SMALLEST_BINARY:
            return _format_binary(value)
    number, exponent = _group(unscaled, exponent)
    if style is QuantityStyle.EXPONENT:
        return CanonicalText(f"{_write_digits(number)}e{exponent}" if exponent else _write_digits(number), exponent)
    return CanonicalText(f"{_write_digits(number)}{_UNITS.get(exponent, '')}", exponent)


def _format_binary(number: int) -> CanonicalText:
    exponent = 0
    while number % _SMALLEST_BINARY == 0:
        number //= _SMALLEST_BINARY
        exponent += 10
    return CanonicalText(f"{number}{_BINARY_UNITS.get(exponent, '')}", exponent)


def _write_digits(number: int) -> str:
    """Return the digits of a number, of which Python's own conversion prints no more than 4,300."""
    return f"{Decimal(number):f}"


def _group(number: int, exponent: int) -> tuple[int, int]:
    """Return the same value with an exponent that is a multiple of three, as large as leaves a whole number."""
    if number == 0:
        return 0, 0
    number *= 10 ** (exponent % _GROUP)
    exponent -= exponent % _GROUP
    while number % 1000 == 0:
        number //= 1000
        exponent += _GROUP
    return number, exponent
