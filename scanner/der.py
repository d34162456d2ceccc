"""The part of DER that certificates use: tags, lengths, integers, object identifiers, times.

Source of truth: X.690, as strict as Go's encoding/asn1 where certificates need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum

from msgspec import Struct


class Tag(IntEnum):
    """The tags of elements that are read by their type."""

    BOOLEAN = 1
    INTEGER = 2
    OCTET_STRING = 4
    OBJECT_ID = 6
    UTC_TIME = 0x17


_LONG = 0x80
_CONTEXT = 0xA0
_SPLIT = 50
_FORTY = 40


class Malformed(ValueError):
    """Bytes that are not DER."""


class Element(Struct, frozen=True):
    """One element: its tag, its content, and its original bytes."""

    tag: int
    content: bytes
    raw: bytes

    def children(self) -> tuple[Element, ...]:
        """The elements of the content, in order. Raises Malformed."""
        return tuple(elements(self.content))

    def context(self, number: int) -> bool:
        """Return whether the element has a context-specific tag of a number, simple or constructed."""
        return self.tag in (_LONG | number, _CONTEXT | number)

    def integer(self) -> int:
        """The content as an integer."""
        return int.from_bytes(self.content, "big", signed=True)

    def bits(self) -> bytes:
        """The content of a bit string, without the count of its unused bits."""
        return self.content[1:]

    def text(self) -> str:
        """The content as a text."""
        return self.content.decode("utf-8", "replace")

    def object_id(self) -> tuple[int, ...]:
        """The numbers of an object identifier."""
        numbers: list[int] = []
        value = 0
        for byte in self.content:
            value = value << 7 | byte & 0x7F
            if not byte & _LONG:
                numbers.append(value)
                value = 0
        if not numbers:
            raise Malformed("an empty object identifier")
        first = min(numbers[0] // _FORTY, 2)
        return (first, numbers[0] - first * _FORTY, *numbers[1:])

    def moment(self) -> str:
        """The content as a time, in UTC, in the format of RFC 3339."""
        text = self.content.decode("ascii", "replace")
        if self.tag == Tag.UTC_TIME:
            text = ("20" if int(text[:2]) < _SPLIT else "19") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def elements(data: bytes) -> Iterator[Element]:
    """The elements in some bytes, in order. Raises Malformed."""
    at = 0
    while at < len(data):
        element = _element(data, at)
        yield element
        at += len(element.raw)


def only(data: bytes) -> Element:
    """The single element in some bytes. Raises Malformed for no element, or more than one."""
    parts = tuple(elements(data))
    if len(parts) != 1:
        raise Malformed("trailing data")
    return parts[0]


def _element(data: bytes, at: int) -> Element:
    if at + 2 > len(data):
        raise Malformed("truncated tag or length")
    length, start = data[at + 1], at + 2
    if length & _LONG:
        size = length ^ _LONG
        length, start = int.from_bytes(data[start : start + size], "big"), start + size
    end = start + length
    if end > len(data):
        raise Malformed("data truncated")
    return Element(data[at], data[start:end], data[at:end])
