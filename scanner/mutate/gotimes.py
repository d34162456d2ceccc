"""Times as the API server reads and writes them: RFC 3339 in any zone, stored in UTC.

Mirrors `time.Parse` of Go for the two layouts of `metav1.Time` and `metav1.MicroTime`, whose error texts it gives.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, timedelta
from typing import NamedTuple

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


class _Part(NamedTuple):
    """A number of the layout: the separator before it, its format in the layout, and its valid values."""

    before: str
    layout: str
    name: str
    digits: re.Pattern[str]
    values: range


_TWO = re.compile(r"[0-9]{2}")
_ONE_OR_TWO = re.compile(r"[0-9]{1,2}")
_PARTS = (
    _Part("", "2006", "year", re.compile(r"[0-9]{4}"), range(10000)),
    _Part("-", "01", "month", _TWO, range(1, 13)),
    _Part("-", "02", "", _TWO, range(100)),
    _Part("T", "15", "hour", _ONE_OR_TWO, range(24)),
    _Part(":", "04", "minute", _TWO, range(60)),
    _Part(":", "05", "second", _TWO, range(60)),
)


class _Reading:
    """A text during reading from left to right."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.layout = layout
        self.rest = text

    def unreadable(self, wanted: str, rest: str | None = None) -> BadTime:
        shown = _quoted(self.rest if rest is None else rest)
        return BadTime(
            f"parsing time {_quoted(self.text)} as {_quoted(self.layout)}: cannot parse {shown} as {_quoted(wanted)}"
        )

    def wrong(self, message: str) -> BadTime:
        return BadTime(f"parsing time {_quoted(self.text)}: {message}")

    def skip(self, prefix: str) -> None:
        if not self.rest.startswith(prefix):
            raise self.unreadable(prefix)
        self.rest = self.rest[len(prefix) :]

    def number(self, part: _Part) -> int:
        self.skip(part.before)
        match = part.digits.match(self.rest)
        if match is None:
            raise self.unreadable(part.layout)
        number = int(match[0])
        if number not in part.values:
            raise self.wrong(f"{part.name} out of range")
        self.rest = self.rest[match.end() :]
        return number

    def fraction(self) -> int:
        """The microseconds: any number of digits, or exactly six where the layout requires six."""
        if self.layout == SECONDS:
            match = _FRACTION.match(self.rest)
        else:
            match = _MICRO.match(self.rest)
            if match is None:
                raise self.unreadable(".000000")
        if match is None:
            return 0
        self.rest = self.rest[match.end() :]
        return int(match[1][:6].ljust(6, "0"))

    def offset(self) -> int:
        """The zone's distance from UTC in seconds."""
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return 0
        match = _OFFSET.match(self.rest)
        if match is None or len(self.rest) < _ZONE_LENGTH:
            raise self.unreadable(_ZONE)
        hours, minutes = int(match[2]), int(match[3])
        self.rest = self.rest[match.end() :]
        if minutes > _MOST_MINUTES:
            raise self.wrong("time zone offset minute out of range")
        if hours > _MOST_HOURS:
            raise self.wrong("time zone offset hour out of range")
        return (hours * 60 + minutes) * (-60 if match[1] == "-" else 60)


def stored(text: str, layout: str) -> str | None:
    """A time as the server writes it, None for the zero time, which is null.

    `layout` is SECONDS or MICROSECONDS. Raises BadTime.
    """
    reading = _Reading(text, layout)
    year, month, day, hour, minute, second = (reading.number(part) for part in _PARTS)
    micros = reading.fraction()
    offset = reading.offset()
    if reading.rest:
        raise reading.wrong(f"extra text: {_quoted(reading.rest)}")
    if not 1 <= day <= monthrange(year or _LEAP_CYCLE, month)[1]:
        raise reading.wrong("day out of range")
    return _written((year, month, day, hour, minute, second, micros), offset, layout)


def _written(parts: tuple[int, ...], offset: int, layout: str) -> str | None:
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


def _quoted(text: str) -> str:
    """A text as Go's time package quotes it: non-ASCII bytes in hex."""
    shown = "".join(
        (f"\\{character}" if character in '"\\' else character)
        if ord(character) in _PRINTABLE
        else "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogatepass"))
        for character in text
    )
    return f'"{shown}"'
