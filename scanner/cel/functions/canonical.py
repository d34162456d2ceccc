"""The canonical text of a quantity: a number below a thousand times its unit where possible, in the style of the input.

Mirrors `Quantity.String` of apimachinery: a text that has the canonical unit already, and no fraction, stays unchanged.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

_UNITS = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_UNITS = {0: "", 10: "Ki", 20: "Mi", 30: "Gi", 40: "Ti", 50: "Pi", 60: "Ei"}
_SMALLEST_BINARY = 1024
_GROUP = 3


class Style(Enum):
    """The notation of a quantity: with `k` and `M`, with `e3` and `e6`, or with `Ki` and `Mi`."""

    DECIMAL = "decimal"
    EXPONENT = "exponent"
    BINARY = "binary"


class Canonical(NamedTuple):
    """The text, and the exponent of its unit: of ten or, for a binary unit, of two."""

    text: str
    exponent: int


def canonical(unscaled: int, exponent: int, style: Style) -> Canonical:
    """Return the canonical text of `unscaled` times ten to the power of `exponent`, and the exponent of its unit."""
    if style is Style.BINARY:
        value = unscaled * Fraction(10) ** exponent
        if value.denominator == 1 and abs(value) >= _SMALLEST_BINARY:
            return _binary(value.numerator)
    number, exponent = _grouped(unscaled, exponent)
    if style is Style.EXPONENT:
        return Canonical(f"{_digits(number)}e{exponent}" if exponent else _digits(number), exponent)
    return Canonical(f"{_digits(number)}{_UNITS.get(exponent, '')}", exponent)


def _binary(number: int) -> Canonical:
    exponent = 0
    while number % _SMALLEST_BINARY == 0:
        number //= _SMALLEST_BINARY
        exponent += 10
    return Canonical(f"{number}{_BINARY_UNITS.get(exponent, '')}", exponent)


def _digits(number: int) -> str:
    """Return the digits of a number, of which Python's own conversion prints no more than 4,300."""
    return f"{Decimal(number):f}"


def _grouped(number: int, exponent: int) -> tuple[int, int]:
    """Return the same value with an exponent that is a multiple of three, as large as leaves a whole number."""
    if number == 0:
        return 0, 0
    number *= 10 ** (exponent % _GROUP)
    exponent -= exponent % _GROUP
    while number % 1000 == 0:
        number //= 1000
        exponent += _GROUP
    return number, exponent
