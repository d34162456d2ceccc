"""JSON in which every character prints: what would steer a terminal, or turn the direction of text, is escaped, and nothing is lost."""

from __future__ import annotations

import json

import orjson

_BASIC = 0xFFFF


def dump(value: object) -> bytes:
    """Compact JSON. What orjson refuses (lone surrogates, integers over 64 bits) is written by the standard library."""
    try:
        found = orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":")).replace("\x7f", r"\u007f").encode()
    return escaped(found.decode()).encode()


def escaped(text: str) -> str:
    """JSON with characters that do not print escaped; outside of strings, compact JSON has none."""
    return text if text.isprintable() else "".join(map(_character, text))


def _character(mark: str) -> str:
    if mark.isprintable():
        return mark
    if ord(mark) <= _BASIC:
        return f"\\u{ord(mark):04x}"
    return json.dumps(mark)[1:-1]
