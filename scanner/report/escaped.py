"""JSON with printable characters only: control and bidirectional characters are JSON escapes, and no text is lost."""

from __future__ import annotations

import json

import orjson

_BASIC = 0xFFFF


def dump(value: object) -> bytes:
    """Compact JSON in UTF-8, with printable characters only.

    The standard library writes values that orjson rejects: lone surrogates, integers over 64 bits.
    """
    try:
        encoded = orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":")).replace("\x7f", r"\u007f").encode()
    return escaped(encoded.decode()).encode()


def escaped(text: str) -> str:
    """JSON with escapes for the characters that do not print; compact JSON has these in strings only."""
    return text if text.isprintable() else "".join(map(_character, text))


def _character(character: str) -> str:
    if character.isprintable():
        return character
    if ord(character) <= _BASIC:
        return f"\\u{ord(character):04x}"
    return json.dumps(character)[1:-1]
