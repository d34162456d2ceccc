"""The sizes of values and objects, as limits of the work of a mutation.

Mirrors the limits of apiserver 1.36: `MaxRequestBodyBytes`, beyond which no client can send an object, and the size of a value as
`encoding/json` writes it. An expression can use a variable twice, and that variable another one twice: its value is small in
memory, and its JSON doubles with every variable.
"""

from __future__ import annotations

import json
from typing import Final

import orjson

from scanner import cel
from scanner.model.json import JsonObject

LARGEST: Final = 3 * 1024 * 1024
"""The bytes of the largest object that a client can send, and that the copies of one JSON patch may add."""
TOO_LARGE: Final = f"what it would change is larger than {LARGEST // 1024 // 1024} MiB, and cannot be stored"
_ESCAPED: Final = {"<": 5, ">": 5, "&": 5, "\u2028": 3, "\u2029": 3}
"""The characters that Go escapes beside those that every JSON escapes, and the bytes that an escape takes more."""


def json_size(value: object) -> int:
    """The bytes of a JSON value as Go writes it: without blanks, and with escapes for what HTML reserves."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "surrogatepass")) + sum(
        growth * text.count(character) for character, growth in _ESCAPED.items()
    )


def is_large(body: JsonObject) -> bool:
    """Return whether an object is larger than a client could send."""
    try:
        return len(orjson.dumps(body)) > LARGEST
    except TypeError:  # a number or a nesting beyond what orjson writes
        return json_size(body) > LARGEST


def is_large_value(value: cel.Value) -> bool:
    """Return whether the JSON of an expression's value is certainly larger than an object may be.

    The work is bounded by the memory that the value takes: a part that occurs often is measured once.
    """
    sizes: dict[int, int] = {}
    return _size(value, sizes) > LARGEST


def _size(value: object, sizes: dict[int, int]) -> int:
    """The least number of bytes of a value as JSON."""
    if isinstance(value, str | bytes):
        return len(value) + 2
    parts = _parts(value)
    if not parts:
        return 1
    if id(value) not in sizes:
        sizes[id(value)] = 2 + sum(_size(part, sizes) for part in parts)
    return sizes[id(value)]


def _parts(value: object) -> list[object]:
    match value:
        case list():
            return value
        case dict():
            return [part for pair in value.items() for part in pair]
        case cel.KeyedMap():
            return [part for pair in value.items() for part in pair]
        case cel.Struct() | cel.Message():
            return [part for pair in value.fields.items() for part in pair]
        case cel.Optional() if value.present:
            return [value.value]
        case _:
            return []
