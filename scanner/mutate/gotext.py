"""Non-JSON values of expressions as Go's fmt prints them: with `%v`, and with `%#v`, as source.

Mirrors the `String` and `GoString` of the time package, and the output of fmt for bytes and unsigned numbers.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scanner import cel
from scanner.cel.values.runtime import printed
from scanner.cel.values.text import quoted

_SECOND = 10**9
_UNITS = ((1, "ns"), (10**3, "µs"), (10**6, "ms"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def text(value: object) -> str:
    """A value as `%v` prints it inside a list or map."""
    match value:
        case None:
            return "NULL_VALUE"
        case cel.Timestamp():
            return _time(value)
        case cel.Duration():
            return _duration(value.nanoseconds)
        case _:
            return printed(value)


def source(value: object) -> str:
    """A value as `%#v` prints it inside a list or map."""
    match value:
        case None:
            return "0"
        case bytes():
            return f"[]uint8{{{', '.join(f'0x{byte:x}' for byte in value)}}}"
        case cel.UInt():
            return f"0x{int(value):x}"
        case cel.Timestamp():
            return _time_source(value)
        case cel.Duration():
            return str(value.nanoseconds)
        case str():
            return quoted(value)
        case _:
            return printed(value)


def _duration(nanoseconds: int) -> str:
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if rest == 0:
        return "0s"
    if rest < _SECOND:
        scale, unit = next(unit_scale for unit_scale in reversed(_UNITS) if rest >= unit_scale[0])
        return f"{sign}{_decimal(rest, scale)}{unit}"
    minutes, below = divmod(rest, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    shown = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{shown}{_decimal(below, _SECOND)}s"


def _decimal(number: int, scale: int) -> str:
    whole, rest = divmod(number, scale)
    digits = str(rest).zfill(len(str(scale)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def _local(value: cel.Timestamp) -> tuple[datetime, int]:
    seconds, nanoseconds = divmod(value.nanoseconds, _SECOND)
    return _EPOCH + timedelta(seconds=seconds + value.offset), nanoseconds


def _time(value: cel.Timestamp) -> str:
    moment, nanoseconds = _local(value)
    fraction = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
    minutes = abs(value.offset) // 60
    zone = f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}{minutes % 60:02d}"
    name = "UTC" if value.offset == 0 else zone
    return f"{moment.year:04d}-{moment:%m-%d %H:%M:%S}{fraction} {zone} {name}"


def _time_source(value: cel.Timestamp) -> str:
    moment, nanoseconds = _local(value)
    place = "time.UTC" if value.offset == 0 else 'time.Location("")'
    parts = (moment.day, moment.hour, moment.minute, moment.second, nanoseconds)
    return f"time.Date({moment.year}, time.{moment:%B}, {', '.join(map(str, parts))}, {place})"
