"""The text of values in Go: numbers in error texts and in `string()`.

The source of truth is Go's strconv and fmt: the shortest digits that read back the same, with an exponent from 1e+06 on (`%v` and
`%g`: CEL's string() and error texts) or from 1e+21 on (JSON).
"""

from __future__ import annotations

import math
from typing import Final

_STRING_THRESHOLD = 21
_CONVERSION_THRESHOLD = 6
_SMALLEST_EXPONENT = -4


_EASY_DIGITS = 1000
"""A number of digits below the limit of a few thousand above which Python rejects a conversion."""
_DIGITS_PER_BIT = math.log10(2)


def parse_whole(digits: str) -> int:
    """Return the number of decimal digits of any length; Python's own conversion has a limit."""
    if len(digits) <= _EASY_DIGITS:
        return int(digits or "0")
    middle = len(digits) // 2
    tail: int = 10 ** (len(digits) - middle)
    return parse_whole(digits[:middle]) * tail + parse_whole(digits[middle:])


def count_digits(number: int) -> int:
    """Return how many decimal digits a positive number has."""
    guess = max(int(number.bit_length() * _DIGITS_PER_BIT), 1)
    least: int = 10**guess
    return guess + (number >= least)


def write_converted(value: float) -> str:
    """Return a double as `string()` and error texts do, with an exponent from 1e+06 on: Go's `%g`."""
    return _write_general(value, _CONVERSION_THRESHOLD)


def write_printed(value: float) -> str:
    """Return a double as Go's JSON does, with an exponent from 1e21 on."""
    return _write_general(value, _STRING_THRESHOLD)


def _write_general(value: float, threshold: int) -> str:
    special = _write_special(value)
    if special is not None:
        return special
    sign, digits, exponent = _split_digits(value)
    if not _SMALLEST_EXPONENT <= exponent < threshold:
        return f"{sign}{_write_scientific(digits, exponent)}"
    return f"{sign}{_write_positional(digits, exponent)}"


def write_fixed(value: float) -> str:
    """Return the shortest digits without an exponent, as `strconv.FormatFloat(v, 'f', -1, 64)`."""
    special = _write_special(value)
    if special is not None:
        return special
    sign, digits, exponent = _split_digits(value)
    return f"{sign}{_write_positional(digits, exponent)}"


def _write_special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return None


def _split_digits(value: float) -> tuple[str, str, int]:
    """Return sign, shortest digits and the power of ten of the first digit."""
    text = repr(value)
    sign = "-" if text.startswith("-") else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    every = whole + fraction
    significant = every.lstrip("0")
    exponent = len(whole) - 1 + int(power or 0) - (len(every) - len(significant))
    significant = significant.rstrip("0")
    return (sign, significant, exponent) if significant else (sign, "0", 0)


def _write_scientific(digits: str, exponent: int) -> str:
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _write_positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


GO_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
"""The characters that Go writes with a letter or themselves after a backslash."""
_LAST_CONTROL = 0x1F
_DELETE = 0x7F
_LAST_SHORT = 0xFFFF
_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""Python's surrogates for bytes that are not UTF-8."""


def quote(text: str) -> str:
    """Return a text as Go's `%q` prints it."""
    return f'"{"".join(map(_escape, text))}"'


def _escape(character: str) -> str:
    escape = GO_ESCAPES.get(character)
    if escape is not None:
        return escape
    if character.isprintable():
        return character
    code = ord(character)
    if code in _ESCAPED_BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code <= _LAST_CONTROL or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_SHORT else f"\\U{code:08x}"
