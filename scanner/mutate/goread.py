"""Single values as the API server's Go types read them, and as it writes them afterwards.

Mirrors `literalStore` of sigs.k8s.io/json, `fromUnstructured` of apimachinery, and the `UnmarshalJSON` of `Time`, `MicroTime`,
`Quantity` and `IntOrString`.
"""

from __future__ import annotations

import base64
import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.quantity import compare, parse
from scanner.cel.values.text import write_printed
from scanner.model.json import Json
from scanner.mutate.gotypes import Plain, Special

_RANGES: dict[Plain, int] = {"int32": 31, "int64": 63}
_LARGEST_BYTE = 255
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LINE_ENDS = b"\r\n"
_QUANTUM = 4
_INT64 = 1 << 63
ZEROS: dict[Plain, Json] = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0, "uint8": 0}
SPECIAL_ZEROS: dict[Special, Json] = {"Quantity": "0", "IntOrString": 0}


class Mismatch(ValueError):
    """A JSON value that does not fit a Go type."""

    def __init__(self, word: str, type_: str) -> None:
        super().__init__(f"json: cannot unmarshal {word} into Go value of type {type_}")
        self.word = word
        self.type = type_


class MalformedText(ValueError):
    """A text that the decoder of its type rejects; the message is that decoder's."""


class BadBytes(ValueError):
    """A text that is not base64; the message is Go's."""


def name_type(value: Json) -> str:
    """The name of a JSON value's type in error texts."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case None:
            return "null"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def read_plain(kind: Plain, name: str, value: Json) -> Json:
    """A text, number or boolean of a Go kind. Raises Mismatch for a value that does not fit it."""
    match kind:
        case "string":
            suits = isinstance(value, str)
        case "bool":
            suits = isinstance(value, bool)
        case "float64":
            suits = isinstance(value, int | float) and not isinstance(value, bool)
        case "int32" | "int64" | "uint8":
            return _read_integer(kind, name, value)
    if not suits:
        raise Mismatch(name_type(value), name)
    return value


def _read_integer(kind: Plain, name: str, value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Mismatch(name_type(value), name)
    lowest, highest = (0, _LARGEST_BYTE) if kind == "uint8" else (-(1 << _RANGES[kind]), (1 << _RANGES[kind]) - 1)
    if isinstance(value, float) or not lowest <= value <= highest:
        raise Mismatch(f"number {write_number(value)}", name)
    return value


def write_number(value: float) -> str:
    """A number as JSON has it."""
    return write_printed(value) if isinstance(value, float) else str(value)


def wrap_integer(kind: Plain, value: float) -> int | None:
    """An integer as reflection converts a number, without the bits beyond its width; None for a number with a fraction."""
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value) if -_INT64 <= value < _INT64 else -_INT64
    width = 1 << (_RANGES.get(kind, 7) + 1)
    low = int(value) % width
    return low - width if low >= width // 2 else low


def normalize_bytes(text: str) -> str:
    """Bytes, from their base64, as base64 again. Raises BadBytes."""
    data = text.encode(errors="surrogatepass")
    fault = _find_bad_byte(data)
    if fault is not None:
        raise BadBytes(f"illegal base64 data at input byte {fault}")
    return base64.b64encode(base64.b64decode(data.translate(None, _LINE_ENDS))).decode()


def encode_numbers(numbers: list[int]) -> str:
    """The base64 of bytes that the document gave as numbers."""
    return base64.b64encode(bytes(numbers)).decode()


def _find_bad_byte(data: bytes) -> int | None:
    """The offset of the first byte that is not valid base64, as `decodeQuantum` of Go counts."""
    place = 0
    for at, byte in enumerate(data):
        if byte in _LINE_ENDS:
            continue
        if byte not in _ALPHABET:
            return _find_bad_ending(data, at, place)
        place = (place + 1) % _QUANTUM
    return len(data) - place if place else None


def _find_bad_ending(data: bytes, at: int, place: int) -> int | None:
    """The offset of the error in the ending from the first non-digit byte on, or None when that is correct padding."""
    if data[at : at + 1] != b"=" or place < _QUANTUM // 2:
        return at
    rest = _skip_line_ends(data, at + 1)
    if place == _QUANTUM // 2:
        if rest == len(data):
            return rest
        if data[rest : rest + 1] != b"=":
            return rest - 1
        rest = _skip_line_ends(data, rest + 1)
    return rest if rest < len(data) else None


def _skip_line_ends(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _LINE_ENDS:
        at += 1
    return at


def read_special(kind: Special, value: Json) -> Json:
    """A value of a type with its own decoder. Raises Mismatch and MalformedText."""
    match kind:
        case "Time":
            return _read_time(value, SECONDS)
        case "MicroTime":
            return _read_time(value, MICROSECONDS)
        case "Quantity":
            return read_quantity(value)
        case "IntOrString":
            return value if isinstance(value, str) else 0 if value is None else _read_integer("int32", "int32", value)
        case "JSONSchemaPropsOrBool" if not isinstance(value, bool):
            raise MalformedText("boolean or JSON schema expected")
        case _:
            return value


def _read_time(value: Json, layout: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Mismatch(name_type(value), "string")
    try:
        return read_time(value, layout)
    except BadTime as error:
        raise MalformedText(str(error)) from None


def read_quantity(value: Json) -> str:
    """A quantity in its canonical form, as the server writes it; null is `0`. Raises MalformedText."""
    try:
        return "0" if value is None else str(parse(_write_quantity_text(value)))
    except EvaluationError as error:
        raise MalformedText(str(error)) from None


def is_same_quantity(left: Json, right: Json) -> bool:
    """Return whether two quantities are the same number; a value that is not a quantity equals nothing else."""
    try:
        return compare(parse(_write_quantity_text(left)), parse(_write_quantity_text(right))) == 0
    except EvaluationError:
        return False


def _write_quantity_text(value: Json) -> str:
    match value:
        case str():
            return value.strip()
        case bool() | list() | dict():
            return orjson.dumps(value).decode()
        case int() | float():
            return write_number(value)
        case _:
            return str(value)


# Times as the API server reads and writes them: RFC 3339 in any zone, stored in UTC.
#
# Mirrors `time.Parse` of Go for the two layouts of `metav1.Time` and `metav1.MicroTime`, whose error texts it gives.

SECONDS = "2006-01-02T15:04:05Z07:00"
MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"
_ZONE = "Z07:00"
_OFFSET = re.compile(r"([+-])([0-9]{2}):([0-9]{2})")
_FRACTION = re.compile(r"[.,]([0-9]+)")
_MICRO = re.compile(r"[.,]([0-9]{6})")
_ZERO = (1, 1, 1, 0, 0, 0, 0)
_PRINTABLE = range(0x20, 0x80)
_MOST_HOURS = 24
_MOST_MINUTES = 60
_ZONE_LENGTH = 6
_LEAP_CYCLE = 400


class BadTime(ValueError):
    """A text that is not a time; the message is Go's."""


class _TimePart(NamedTuple):
    """A number of the layout: the separator before it, its format in the layout, and its valid values."""

    before: str
    layout: str
    name: str
    digits: re.Pattern[str]
    values: range


_TWO = re.compile(r"[0-9]{2}")
_ONE_OR_TWO = re.compile(r"[0-9]{1,2}")
_PARTS = (
    _TimePart("", "2006", "year", re.compile(r"[0-9]{4}"), range(10000)),
    _TimePart("-", "01", "month", _TWO, range(1, 13)),
    _TimePart("-", "02", "", _TWO, range(100)),
    _TimePart("T", "15", "hour", _ONE_OR_TWO, range(24)),
    _TimePart(":", "04", "minute", _TWO, range(60)),
    _TimePart(":", "05", "second", _TWO, range(60)),
)


class _TimeReader:
    """A text during reading from left to right."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.layout = layout
        self.rest = text

    def make_unreadable(self, expected: str, rest: str | None = None) -> BadTime:
        shown = _quote(self.rest if rest is None else rest)
        return BadTime(
            f"parsing time {_quote(self.text)} as {_quote(self.layout)}: cannot parse {shown} as {_quote(expected)}"
        )

    def make_wrong(self, message: str) -> BadTime:
        return BadTime(f"parsing time {_quote(self.text)}: {message}")

    def skip(self, prefix: str) -> None:
        if not self.rest.startswith(prefix):
            raise self.make_unreadable(prefix)
        self.rest = self.rest[len(prefix) :]

    def read_number(self, part: _TimePart) -> int:
        self.skip(part.before)
        match = part.digits.match(self.rest)
        if match is None:
            raise self.make_unreadable(part.layout)
        number = int(match[0])
        if number not in part.values:
            raise self.make_wrong(f"{part.name} out of range")
        self.rest = self.rest[match.end() :]
        return number

    def read_fraction(self) -> int:
        """The microseconds: any number of digits, or exactly six where the layout requires six."""
        if self.layout == SECONDS:
            match = _FRACTION.match(self.rest)
        else:
            match = _MICRO.match(self.rest)
            if match is None:
                raise self.make_unreadable(".000000")
        if match is None:
            return 0
        self.rest = self.rest[match.end() :]
        return int(match[1][:6].ljust(6, "0"))

    def read_offset(self) -> int:
        """The zone's distance from UTC in seconds."""
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return 0
        match = _OFFSET.match(self.rest)
        if match is None or len(self.rest) < _ZONE_LENGTH:
            raise self.make_unreadable(_ZONE)
        hours, minutes = int(match[2]), int(match[3])
        self.rest = self.rest[match.end() :]
        if minutes > _MOST_MINUTES:
            raise self.make_wrong("time zone offset minute out of range")
        if hours > _MOST_HOURS:
            raise self.make_wrong("time zone offset hour out of range")
        return (hours * 60 + minutes) * (-60 if match[1] == "-" else 60)


def read_time(text: str, layout: str) -> str | None:
    """A time as the server writes it, None for the zero time, which is null.

    `layout` is SECONDS or MICROSECONDS. Raises BadTime.
    """
    reading = _TimeReader(text, layout)
    year, month, day, hour, minute, second = (reading.read_number(part) for part in _PARTS)
    micros = reading.read_fraction()
    offset = reading.read_offset()
    if reading.rest:
        raise reading.make_wrong(f"extra text: {_quote(reading.rest)}")
    if not 1 <= day <= monthrange(year or _LEAP_CYCLE, month)[1]:
        raise reading.make_wrong("day out of range")
    return _write_time((year, month, day, hour, minute, second, micros), offset, layout)


def _write_time(parts: tuple[int, ...], offset: int, layout: str) -> str | None:
    year, *others = parts
    try:
        moment = datetime(year or _LEAP_CYCLE, *others) - timedelta(seconds=offset)  # type: ignore[arg-type]  # noqa: DTZ001 - Go's UTC
    except OverflowError:
        moment = datetime.min  # noqa: DTZ901 - before the first year only the zero time is left
    shown = (year + moment.year - (year or _LEAP_CYCLE), *moment.timetuple()[1:6], moment.microsecond)
    if shown == _ZERO:
        return None
    fraction = f".{moment.microsecond:06d}" if layout == MICROSECONDS else ""
    return f"{shown[0]:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


def _quote(text: str) -> str:
    """A text as Go's time package quotes it: non-ASCII bytes in hex."""
    shown = "".join(
        (f"\\{character}" if character in '"\\' else character)
        if ord(character) in _PRINTABLE
        else "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogatepass"))
        for character in text
    )
    return f'"{shown}"'
