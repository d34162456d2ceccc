"""Tokens to constants: numbers, and strings and bytes with their escapes.

Rules: `docs/semantics/cel-syntax.md#tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from scanner.cel.values.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SURROGATES = range(0xD800, 0xE000)
_LAST_CODE_POINT = 0x10FFFF
_SIGN_BIT = 0x80000000
_REPLACEMENT = "\ufffd"


class BadLiteral(Exception):
    """A token in the form of a constant that is invalid; the message is upstream's."""


def parse_integer(text: str) -> int:
    """Return the value of an int literal, decimal or `0x…`, with its sign. Raises BadLiteral if it does not fit 64 bits."""
    return _parse_in_range(text, INT_MIN, INT_MAX, "invalid int literal")


def parse_unsigned(text: str) -> UInt:
    """Return the value of an uint literal, which ends in u. Raises BadLiteral if it does not fit 64 bits."""
    return UInt(_parse_in_range(text[:-1], 0, UINT_MAX, "invalid uint literal"))


def _parse_in_range(text: str, low: int, high: int, message: str) -> int:
    magnitude = text.removeprefix("-")
    digits = magnitude.removeprefix("0x").lstrip("0") or "0"
    if len(digits) > _LONGEST_NUMBER:  # Python refuses to read so many decimal digits.
        raise BadLiteral(message)
    value = int(digits, 16 if "x" in magnitude else 10)
    value = -value if text.startswith("-") else value
    if not low <= value <= high:
        raise BadLiteral(message)
    return value


_LONGEST_NUMBER = 4000
"""The longest literal that Python converts; leading zeros beyond it are not worth a special case."""


def parse_double(text: str) -> float:
    """Return the value of a double literal. Raises BadLiteral if it is beyond the range, as Go's `strconv.ParseFloat` does."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadLiteral("invalid double literal")
    return value


def parse_string(text: str) -> str:
    """Return the content of a string token, without quotes and escapes. Raises BadLiteral for an escape of no code point.

    Mirrors `unescape` of cel-go's `parser/unescape.go`.
    """
    return _parse_string_with(text, _decode)


def parse_string_leniently(text: str) -> str:
    """Return the content of a string token as releases before 1.33 read it: escaped surrogates are replaced by U+FFFD.

    Raises BadLiteral for an escape beyond the last code point.
    """
    return _parse_string_with(text, _decode_as_before)


def _parse_string_with(text: str, character: Callable[[int], str]) -> str:
    raw, body = _unquote(text)
    return body if raw or "\\" not in body else _ESCAPE.sub(lambda match: _decode_escape(match, character), body)


def parse_bytes(text: str) -> bytes:
    """Return the content of a bytes token, in which an escape is one byte. Raises BadLiteral for an escape of a code point."""
    raw, body = _unquote(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts += [body[end : match.start()].encode(), _decode_octets(match)]
        end = match.end()
    return b"".join([*parts, body[end:].encode()])


def _unquote(text: str) -> tuple[bool, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1  # noqa: PLR2004 - two times three quotes
    return raw, text[quotes:-quotes]


def _decode_escape(match: re.Match[str], character: Callable[[int], str]) -> str:
    simple = match.group(5)
    if simple is not None:
        return _SIMPLE[simple]
    octal = match.group(4)
    return character(int(octal, 8) if octal else int(match.group(1) or match.group(2) or match.group(3), 16))


def _decode(code: int) -> str:
    if code > _LAST_CODE_POINT or code in _SURROGATES:
        raise BadLiteral("invalid unicode code point")
    return chr(code)


def _decode_as_before(code: int) -> str:
    """Return a character as releases before 1.33 do; the highest bit makes a negative number, which is replaced, too."""
    if _LAST_CODE_POINT < code < _SIGN_BIT:
        raise BadLiteral("unable to unescape string")
    return _REPLACEMENT if code in _SURROGATES or code >= _SIGN_BIT else chr(code)


def _decode_octets(match: re.Match[str]) -> bytes:
    if match.group(2) or match.group(3):
        raise BadLiteral("unable to unescape string")
    simple = match.group(5)
    if simple is not None:
        return _SIMPLE[simple].encode()
    octal = match.group(4)
    return bytes([int(octal, 8) if octal else int(match.group(1), 16)])
