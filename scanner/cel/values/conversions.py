"""CEL's type conversions: Go's strconv and time grammars, not Python's.

Rules: `docs/semantics/cel-evaluation.md#conversions`.
"""

from __future__ import annotations

import math
import re

from scanner.cel.errors import EvaluationError
from scanner.cel.types.type_system import BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT, Type
from scanner.cel.values import times
from scanner.cel.values.arithmetic import check_int, check_uint
from scanner.cel.values.runtime import FIRST_SECOND, LAST_SECOND, SECOND
from scanner.cel.values.text import parse_whole, quote, write_converted, write_fixed
from scanner.cel.values.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, UInt, Value, type_of

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INT = re.compile(r"[+-]?[0-9]+\Z")
_UINT = re.compile(r"[0-9]+\Z")
_DIGITS = r"[0-9](?:_?[0-9])*"
_DECIMAL = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?\Z")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+\Z")
_NAMED = re.compile(r"([+-]?)(inf|infinity)\Z", re.IGNORECASE)


def make_conversion_error(value: Value, target: Type) -> EvaluationError:
    """Return the error of a value whose type allows the conversion and whose content does not."""
    return EvaluationError(f"type conversion error from '{type_of(value).name}' to '{target.name}'")


def to_bool(value: Value) -> Value:
    """Return a bool for a bool or a string. Raises EvaluationError if it cannot be converted."""
    if type(value) is bool:
        return value
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise make_conversion_error(value, BOOL)


def to_bytes(value: Value) -> Value:
    """Return the UTF-8 of a string; bytes stay unchanged."""
    return value.encode() if type(value) is str else value


def to_int(value: Value) -> Value:
    """Return an int for a number, a string, a timestamp (seconds since 1970) or a duration (nanoseconds).

    Raises EvaluationError if it cannot be converted, or does not fit 64 bits.
    """
    if type(value) is int:
        return value
    if type(value) is UInt:
        return check_int(int(value))
    if type(value) is float:
        return _convert_double_to_int(value)
    if type(value) is Timestamp:
        return times.wrap_to_64_bits(value.nanoseconds // SECOND)
    if type(value) is Duration:
        return value.nanoseconds
    number = _parse_whole(value) if type(value) is str and _INT.match(value) else INT_MAX + 1
    if INT_MIN <= number <= INT_MAX:
        return number
    raise make_conversion_error(value, INT)


def _convert_double_to_int(value: float) -> int:
    if math.isnan(value) or not float(INT_MIN) < value < float(INT_MAX):
        raise EvaluationError("integer overflow")
    return int(value)


def to_uint(value: Value) -> Value:
    """Return an uint for a number or a string.

    Raises EvaluationError if it cannot be converted, or does not fit 64 bits without a sign.
    """
    if type(value) is UInt:
        return value
    if type(value) is int:
        return check_uint(value)
    if type(value) is float:
        if math.isnan(value) or not 0 <= value < float(UINT_MAX):
            raise EvaluationError("unsigned integer overflow")
        return UInt(int(value))
    number = _parse_whole(value) if type(value) is str and _UINT.match(value) else UINT_MAX + 1
    if number <= UINT_MAX:
        return UInt(number)
    raise make_conversion_error(value, UINT)


def _parse_whole(digits: str) -> int:
    """Return the number of a sign and any number of digits, most of which may be zeros."""
    number = parse_whole(digits.lstrip("+-"))
    return -number if digits.startswith("-") else number


def to_double(value: Value) -> Value:
    """Return a double for a number or a string in Go's syntax of floats. Raises EvaluationError if it cannot be converted."""
    if type(value) is float:
        return value
    if type(value) is int or type(value) is UInt:
        return float(value)
    number = _parse_double(value) if type(value) is str else None
    if number is None:
        raise make_conversion_error(value, DOUBLE)
    return number


def _parse_double(text: str) -> float | None:
    if text.lower() == "nan":
        return math.nan
    special = _NAMED.match(text)
    if special:
        return -math.inf if special.group(1) == "-" else math.inf
    if _HEXADECIMAL.match(text):
        return _parse_hexadecimal(text)
    number = float(text) if _DECIMAL.match(text) else math.inf
    return None if math.isinf(number) else number


def _parse_hexadecimal(text: str) -> float | None:
    """Return the number, or None beyond the range, which Go rejects."""
    try:
        return float.fromhex(text)
    except OverflowError:
        return None


def to_string(value: Value) -> Value:
    """Return a text for a plain value, a timestamp (RFC 3339) or a duration (seconds). Raises EvaluationError for another value."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or type(value) is UInt:
        return str(int(value))
    if type(value) is float:
        return write_converted(value)
    if type(value) is bytes:
        return _convert_bytes_to_text(value)
    if type(value) is Timestamp:
        return times.print_timestamp(value)
    if type(value) is Duration:
        return write_duration(value)
    raise make_conversion_error(value, Type("primitive", "string"))


def _convert_bytes_to_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def write_duration(value: Duration) -> str:
    """Return a duration as a decimal number of seconds and an s; in doubles, as Go computes it."""
    whole, rest = divmod(abs(value.nanoseconds), SECOND)
    seconds = whole + rest / 1e9
    return f"{write_fixed(-seconds if value.nanoseconds < 0 else seconds)}s"


def to_duration(value: Value) -> Value:
    """Return a duration for a duration or a string in Go's syntax. Raises EvaluationError if it cannot be converted."""
    if type(value) is Duration:
        return value
    nanoseconds = times.parse_duration(value) if type(value) is str else None
    if nanoseconds is None:
        raise make_conversion_error(value, DURATION)
    return Duration(nanoseconds)


def to_timestamp(value: Value) -> Value:
    """Return a timestamp for a timestamp, seconds since 1970 or RFC 3339 text.

    Raises EvaluationError if it cannot be converted, or is not between the years 1 and 9999.
    """
    if type(value) is Timestamp:
        return value
    if type(value) is int:
        if not FIRST_SECOND <= value <= LAST_SECOND:
            raise EvaluationError("timestamp overflow")
        return Timestamp(value * SECOND)
    moment = times.parse_timestamp(value) if type(value) is str else None
    if moment is None:
        raise make_conversion_error(value, TIMESTAMP)
    if not FIRST_SECOND <= moment.nanoseconds // SECOND <= LAST_SECOND:
        raise EvaluationError("timestamp overflow")
    return moment


def to_timestamp_strictly(value: Value) -> Value:
    """Return a timestamp as `to_timestamp` does, but of RFC 3339 text alone. Raises EvaluationError."""
    if type(value) is str and not times.is_strict_timestamp(value):
        raise EvaluationError(f"invalid RFC 3339 timestamp {quote(value)}")
    return to_timestamp(value)
