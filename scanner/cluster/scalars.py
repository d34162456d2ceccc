"""The value of a YAML scalar after kubectl converted it to JSON and the API server decoded that JSON.

Source of truth: `resolve` of go.yaml.in/yaml/v2, the float format of Go's encoding/json, and the number rules of
apimachinery's util/json (an integer that fits int64 is an int, every other number a float).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from datetime import date
from decimal import Decimal
from typing import Final, TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

_TAG: Final = "tag:yaml.org,2002:"
_RESOLVABLE: Final = frozenset({"bool", "int", "float", "null", "timestamp"})
_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC_START: Final = frozenset("+-.0123456789")
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]{0,19}))"
)
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_DIGIT_GROUPS: Final = re.compile(r"(?<=[0-9])_(?=[0-9])")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:[.,][0-9]+)?)?"
)
_INT64: Final = range(-(2**63), 2**63)
_UINT64: Final = range(2**64)
_LARGEST_PLAIN: Final = 1e21
_FLOAT32_DIGITS: Final = 9
_PLAIN_KEY_EXPONENTS: Final = range(-4, 6)


class BadScalar(ValueError):
    """A scalar that is invalid for its tag or in JSON. The message does not quote the value, which may be a secret."""


def resolve(text: str, tag: str | None, *, plain: bool) -> Scalar:
    """The value of a scalar as YAML 1.1 in Go resolves it, before it becomes JSON.

    `tag` is the full explicit tag, or None. Infinities and NaN are returned as such. Raises BadScalar.
    """
    if tag is None:
        return _resolve_implicit(text) if plain else text
    name = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if name == "binary":
        return _decode_binary(text)
    if name in _RESOLVABLE:
        return _resolve_tagged(text, name)
    return text


def convert_to_json(value: Scalar) -> Scalar:
    """The value that the API server reads: whole floats become integers, integers beyond int64 become floats.

    Raises BadScalar for infinities and NaN.
    """
    if isinstance(value, float):
        return _convert_float(value)
    if isinstance(value, int) and value not in _INT64:
        return float(value)
    return value


def write_key(value: Scalar) -> str:
    """The JSON key that a scalar mapping key becomes. Raises BadScalar for keys that JSON cannot have."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() if value in _INT64:
            return str(value)
        case float():
            return _write_float_key(value)
        case None:
            raise BadScalar("a mapping key is null, and JSON has no such keys: quote it")
        case _:
            raise BadScalar("a mapping key is too large for an integer: quote it")


def _resolve_implicit(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMERIC_START:
        return _resolve_number(text)
    return text


def _resolve_number(text: str) -> Scalar:
    if text[0] == ".":
        return _resolve_decimal(_DIGIT_GROUPS.sub("", text), text)
    digits = text.replace("_", "")
    if match := _INTEGER.fullmatch(digits):
        base = next(name for name in _BASES if match[name] is not None)
        value = int(match["sign"] + match[base], _BASES[base])
        if value in _INT64 or (value in _UINT64 and not match["sign"]):
            return value
    return _resolve_decimal(digits, text)


def _resolve_decimal(digits: str, text: str) -> Scalar:
    if not _FLOAT.fullmatch(digits):
        return text
    value = float(digits)
    return text if math.isinf(value) else value


def _resolve_tagged(text: str, name: str) -> Scalar:
    value = _resolve_implicit(text)
    match name, value:
        case "timestamp", str() if _is_timestamp(text):
            return text
        case "null", None:
            return None
        case "bool", bool():
            return value
        case "float", float():
            return value
        case "int", int() if not isinstance(value, bool):
            return value
        case "float", int() if not isinstance(value, bool) and value in _INT64:
            return float(value)
        case _:
            raise BadScalar(f"the value is no !!{name}")


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return False
    try:
        date(max(int(match[1]), 1), int(match[2]), int(match[3]))
    except ValueError:
        return False
    return True


def _decode_binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadScalar("a !!binary value is not base64") from error
    # Go writes one replacement character for each byte that is not UTF-8.
    return re.sub("[\udc80-\udcff]", "\ufffd", data.decode("utf-8", "surrogateescape"))


def _convert_float(value: float) -> int | float:
    if not math.isfinite(value):
        raise BadScalar(f"{_write_float_key(value)} has no form in JSON")
    if not value.is_integer() or abs(value) >= _LARGEST_PLAIN:
        return value
    # Go writes the shortest digits that give the float back, then zeros: not the float's exact integer.
    whole = int(Decimal(repr(value)))
    return whole if whole in _INT64 else value


def _write_float_key(value: float) -> str:
    """Go's shortest text of a 32-bit float in its `g` format."""
    if math.isnan(value):
        return ".nan"
    single = _round_to_single(value)
    if math.isinf(single):
        return ".inf" if value > 0 else "-.inf"
    text = next(t for d in range(_FLOAT32_DIGITS) if _round_to_single(float(t := f"{single:.{d}e}")) == single)
    exponent = int(text.partition("e")[2])
    if exponent not in _PLAIN_KEY_EXPONENTS:
        return text
    digits = text.partition("e")[0].lstrip("-").replace(".", "")
    decimals = max(len(digits) - 1 - exponent, 0)
    return f"{float(text):.{decimals}f}"


def _round_to_single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
