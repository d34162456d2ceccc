"""Protobuf's wire format, as far as the messages of expressions need it: the content of an `Any`.

Source of truth: the encoding of protobuf as `proto.Unmarshal` of Go reads it. A field of an unknown number or of another wire type
is kept unchanged, and malformed bytes are not a message.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from scanner.cel.protobuf.messages import MESSAGES, PACKAGE
from scanner.cel.values.values import UInt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scanner.cel.protobuf.messages import Field, Kind, MessageType
    from scanner.cel.values.values import Value

_VARINT, _DOUBLE, _BYTES, _GROUP, _END_OF_GROUP, _FLOAT = range(6)
_LONGEST_VARINT = 10
_MOST_FIELDS = 2**29 - 1
_BITS = 2**64
_DEEPEST = 10_000


class MalformedMessage(ValueError):
    """Bytes that are not a message."""


class WireField(NamedTuple):
    """One field in raw form: its number, its wire type, its content as a number or bytes, and all of its bytes."""

    number: int
    wire: int
    content: int | bytes
    whole: bytes


class Decoder:
    """A reader of messages; `unwrap` makes a value of the fields of a message, and of its unknown fields."""

    def __init__(self, unwrap: Callable[[MessageType, dict[str, Value], bytes], Value]) -> None:
        self._unwrap = unwrap

    def decode(self, message: MessageType, data: bytes, depth: int = 0) -> Value:
        """Return the value of a message from its bytes; `depth` counts the messages around it.

        Raises MalformedMessage for bytes that are not a message, and for messages that nest too deeply.
        """
        if depth >= _DEEPEST:
            raise MalformedMessage
        by_number = {field.number: (name, field) for name, field in message.fields.items()}
        fields: dict[str, Value] = {}
        unknown = b""
        for token in read_fields(data):
            name, field = by_number.get(token.number, ("", None))
            if field is None or token.wire != _find_wire_type(field.kind):
                unknown += token.whole
            else:
                self._add(fields, name, field, token.content, depth)
        return self._unwrap(message, fields, unknown)

    def _add(self, fields: dict[str, Value], name: str, field: Field, content: int | bytes, depth: int) -> None:
        """Add a field to the others: of a oneof and of a repeated scalar the last counts."""
        before = fields.pop(name, None)
        if field.is_map and isinstance(content, bytes):
            entries = before if isinstance(before, dict) else {}
            map_entry = self._read_entry(content, depth + 1)
            fields[name] = {**entries, **map_entry}
        elif field.is_list:
            elements = before if isinstance(before, list) else []
            fields[name] = [*elements, self._read_value("value", content, depth + 1)]
        else:
            fields[name] = self._read_value(field.kind, content, depth + 1)

    def _read_entry(self, content: bytes, depth: int) -> dict[str, Value]:
        key, item = "", None
        for token in read_fields(content):
            if token.number == 1 and isinstance(token.content, bytes):
                key = _read_text(token.content)
            elif token.number == 2 and isinstance(token.content, bytes):  # noqa: PLR2004 (the value's number)
                item = self._read_value("value", token.content, depth)
        return {key: item}

    def _read_value(self, kind: Kind, content: int | bytes, depth: int) -> Value:
        if kind in _NAMES and isinstance(content, bytes):
            return self.decode(MESSAGES[_NAMES[kind]], content, depth)
        return _SCALARS[kind](content)


_NAMES: Mapping[Kind, str] = {
    "struct": f"{PACKAGE}.Struct",
    "list": f"{PACKAGE}.ListValue",
    "value": f"{PACKAGE}.Value",
}


def _find_wire_type(kind: Kind) -> int:
    if kind == "double":
        return _DOUBLE
    if kind == "float":
        return _FLOAT
    return _BYTES if kind in ("string", "bytes") or kind in _NAMES else _VARINT


def read_fields(data: bytes) -> Iterator[WireField]:
    """Yield the fields of a message in the order of its bytes. Raises MalformedMessage for bytes that are not a message."""
    at = 0
    while at < len(data):
        tag, after = _read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not 1 <= number <= _MOST_FIELDS:
            raise MalformedMessage
        content, end = _read_content(data, after, number, wire)
        yield WireField(number, wire, content, data[at:end])
        at = end


def _read_content(data: bytes, at: int, number: int, wire: int) -> tuple[int | bytes, int]:
    match wire:
        case _ if wire == _VARINT:
            return _read_varint(data, at)
        case _ if wire == _DOUBLE:
            return _read_slice(data, at, 8)
        case _ if wire == _FLOAT:
            return _read_slice(data, at, 4)
        case _ if wire == _BYTES:
            length, start = _read_varint(data, at)
            return _read_slice(data, start, length)
        case _ if wire == _GROUP:
            return b"", _end_of_group(data, at, number)
        case _:
            raise MalformedMessage


def _end_of_group(data: bytes, at: int, number: int) -> int:
    while True:
        tag, after = _read_varint(data, at)
        if tag & 7 == _END_OF_GROUP:
            if tag >> 3 != number:
                raise MalformedMessage
            return after
        _, at = _read_content(data, after, tag >> 3, tag & 7)


def _read_slice(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise MalformedMessage
    return data[at : at + length], at + length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for position, octet in enumerate(data[at : at + _LONGEST_VARINT]):
        number |= (octet & 0x7F) << (7 * position)
        if octet < 0x80:  # noqa: PLR2004 (the continuation bit)
            if number >= _BITS:
                raise MalformedMessage
            return number, at + position + 1
    raise MalformedMessage


def _read_text(content: int | bytes) -> str:
    try:
        return bytes(content).decode() if isinstance(content, bytes) else ""
    except UnicodeDecodeError:
        raise MalformedMessage from None


def _read_signed(number: int | bytes, bits: int) -> int:
    rest = int(number) & ((1 << bits) - 1) if isinstance(number, int) else 0
    return rest - (1 << bits) if rest >> (bits - 1) else rest


def _read_unsigned(number: int | bytes, bits: int) -> UInt:
    return UInt(number & ((1 << bits) - 1)) if isinstance(number, int) else UInt(0)


def _read_real(content: int | bytes, form: str) -> float:
    return float(struct.unpack(form, content)[0]) if isinstance(content, bytes) else 0.0


_SCALARS: Mapping[Kind, Callable[[int | bytes], Value]] = {
    "bool": bool,
    "bytes": lambda content: content,
    "double": lambda content: _read_real(content, "<d"),
    "enum": lambda content: _read_signed(content, 32),
    "float": lambda content: _read_real(content, "<f"),
    "int32": lambda content: _read_signed(content, 32),
    "int64": lambda content: _read_signed(content, 64),
    "string": _read_text,
    "uint32": lambda content: _read_unsigned(content, 32),
    "uint64": lambda content: _read_unsigned(content, 64),
}
