"""The text form of protobuf messages in Go: errors show it unchanged.

Source of truth: `prototext` of Go's protobuf on one line. The number of blanks between fields, and the kind of blank after its
name in errors, differ from build to build, on purpose; here they are those of the kube-apiserver that is the source of the other
texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.values.text import write_printed
from scanner.cel.values.values import Message, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "proto:\u00a0"
SEPARATOR = "  "
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_DELETE = 0x7F
_LONE = 0xDC00
"""The error handler with which Python keeps bytes that are not text."""


def quote(value: str | bytes) -> str:
    """Return a text or bytes in quotes, with escapes, as `prototext` prints them."""
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    return f'"{"".join(map(_escape, text))}"'


def _escape(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if code < ord(" ") or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\x{code - _LONE:02x}" if _LONE <= code < _LONE + 256 else character


def print_message(value: Value) -> str:
    """Return the text of a message, or of the list or map that is a message's value, on one line."""
    return SEPARATOR.join(_print_fields(value))


def _print_fields(value: Value) -> Iterator[str]:
    if isinstance(value, list):
        yield from (f"values:{{{_print_kind(item)}}}" for item in value)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield f"fields:{{key:{quote(key)}{SEPARATOR}value:{{{_print_kind(value[key])}}}}}"
    elif isinstance(value, Message):
        for name, item in value.fields.items():
            yield f"{name}:{quote(item) if name == 'key' and isinstance(item, str) else f'{{{_print_kind(item)}}}'}"


def _print_kind(value: Value) -> str:
    """Return a value as the one field that is set in a `google.protobuf.Value`."""
    match value:
        case bool():
            return f"bool_value:{'true' if value else 'false'}"
        case float():
            return f"number_value:{write_printed(value)}"
        case str():
            return f"string_value:{quote(value)}"
        case list():
            return f"list_value:{{{print_message(value)}}}"
        case dict():
            return f"struct_value:{{{print_message(value)}}}"
        case _:
            return "null_value:NULL_VALUE"
