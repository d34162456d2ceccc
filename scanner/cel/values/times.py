"""Timestamps and durations: parsing, printing and parts (Go's time package).

Rules: `docs/semantics/cel-evaluation.md#conversions`, `docs/semantics/cel-evaluation.md#times`.
"""

from __future__ import annotations

import datetime
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError
from scanner.cel.values.runtime import FIRST_SECOND, LAST_SECOND, SECOND
from scanner.cel.values.text import parse_whole as whole_number
from scanner.cel.values.text import quote
from scanner.cel.values.values import INT_MAX, INT_MIN, Duration, Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.cel.values.values import Value

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DURATION = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})([.,][0-9]+)?(Z|([+-])([0-9]{2}):([0-9]{2}))\Z"
)
_STRICT_TIMESTAMP = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])\Z"
)
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 (the date part of arithmetic in seconds)
_DAY = 86_400
_DAY_OF_ZONES = 2 * _DAY
_CENTURIES = 146_097
"""Days in 400 years."""
_SINCE_ABSOLUTE_YEAR = 9_223_372_028_741_760_000
"""Seconds to 1970 from the first of March of the year -292277022400, where Go begins to count."""
_DIGITS_OF_INT64 = 19
_LAST_ZONE_HOUR = 24
_LAST_ZONE_MINUTE = 60


@lru_cache(maxsize=4096)
def parse_duration(text: str) -> int | None:
    """Return the nanoseconds of a duration in Go's syntax, e.g. `-1h30m0.5s`; None when it is malformed or does not fit 64 bits.

    Mirrors `time.ParseDuration` of Go.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total = 0
    position = 0
    while position < len(rest):
        match = _DURATION.match(rest, position)
        if match is None or not (match.group(1) or match.group(2)):
            return None
        total += _count_nanoseconds(match.group(1) or "0", match.group(2) or "", _UNITS[match.group(3)])
        position = match.end()
    return sign * total if rest and INT_MIN <= sign * total <= INT_MAX else None


def _count_nanoseconds(whole: str, fraction: str, unit: int) -> int:
    """Return a number of units.

    Go scales the fraction in floating point and drops fractions of a nanosecond; of the fraction it reads as many digits as fit
    an int64.
    """
    digits = fraction[
        : _DIGITS_OF_INT64 if int(fraction[:_DIGITS_OF_INT64] or "0") <= INT_MAX else _DIGITS_OF_INT64 - 1
    ]
    return whole_number(whole) * unit + (int(int(digits) * (unit / 10 ** len(digits))) if digits else 0)


@lru_cache(maxsize=4096)
def parse_timestamp(text: str) -> Timestamp | None:
    """Return the moment of RFC 3339 text, or None; it may lie outside of CEL's range. Mirrors `time.Parse` of Go."""
    match = _TIMESTAMP.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match.group(group)) for group in range(1, 7))
    seconds = _count_seconds(year, month, day, (hour, minute, second))
    if seconds is None:
        return None
    offset = _read_zone_offset(match)
    if offset is None:
        return None
    fraction = (match.group(7) or ".")[1:10].ljust(9, "0")
    return Timestamp((seconds - offset) * SECOND + int(fraction), offset)


def is_strict_timestamp(text: str) -> bool:
    """Return whether text has the form that RFC 3339 demands: `time.Parse` of Go also takes a comma, one digit and large offsets."""
    return _STRICT_TIMESTAMP.match(text) is not None


def _read_zone_offset(match: re.Match[str]) -> int | None:
    if match.group(8) == "Z":
        return 0
    hours, minutes = int(match.group(10)), int(match.group(11))
    if hours > _LAST_ZONE_HOUR or minutes > _LAST_ZONE_MINUTE:
        return None
    seconds = hours * 3600 + minutes * 60
    return -seconds if match.group(9) == "-" else seconds


def _count_seconds(year: int, month: int, day: int, clock: tuple[int, int, int]) -> int | None:
    """Return seconds since 1970 of a date of the proleptic calendar; the year 0, which Python lacks, is a leap year."""
    shift = 400 if year == 0 else 0
    try:
        moment = datetime.datetime(year + shift, month, day, *clock)  # noqa: DTZ001
    except ValueError:
        return None
    since = moment - _EPOCH
    return since.days * _DAY + since.seconds - (_CENTURIES * _DAY if shift else 0)


def print_timestamp(moment: Timestamp) -> str:
    """Return RFC 3339 text with as many digits of the second as needed, in the zone the timestamp was given in."""
    seconds, rest = divmod(moment.nanoseconds, SECOND)
    shifted, years = _shift_into_python(seconds + moment.offset)
    local = _EPOCH + datetime.timedelta(seconds=shifted)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{_write_year(local.year - years)}{local:-%m-%dT%H:%M:%S}{fraction}{_write_zone(moment.offset)}"


def _write_year(year: int) -> str:
    return f"{'-' if year < 0 else ''}{abs(year):04d}"


def _write_zone(offset: int) -> str:
    if offset == 0:
        return "Z"
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def get_part(moment: Value, name: str, zone: Value) -> int:
    """Return a part of a timestamp in a zone: `name` is a key of `_PARTS`, `year` or `milliseconds`.

    A zone is `[+-]HH:MM` or a name of the time zone database. Raises EvaluationError if there is no such zone.
    """
    if not isinstance(moment, Timestamp) or not isinstance(zone, str):
        raise EvaluationError("no such overload")
    if name == "milliseconds":
        _find_offset(zone, moment)
        return moment.nanoseconds % SECOND // 10**6
    seconds = moment.nanoseconds // SECOND + _find_offset(zone, moment)
    shifted, years = _shift_into_python(seconds)
    local = _EPOCH + datetime.timedelta(seconds=shifted)
    return local.year - years if name == "year" else _PARTS[name](local)


def _shift_into_python(seconds: int) -> tuple[int, int]:
    """Return seconds moved by so many years that a zone cannot push them out of the years 1 to 9999.

    The calendar and its days of the week repeat every 400 years. Go counts the seconds since a year long gone, in 64 bits.
    """
    if FIRST_SECOND + _DAY_OF_ZONES <= seconds <= LAST_SECOND - _DAY_OF_ZONES:
        return seconds, 0
    seconds = (seconds + _SINCE_ABSOLUTE_YEAR) % 2**64 - _SINCE_ABSOLUTE_YEAR
    near = FIRST_SECOND if seconds < FIRST_SECOND + _DAY_OF_ZONES else LAST_SECOND - 2 * _CENTURIES * _DAY
    times = (seconds - near) // (_CENTURIES * _DAY) - 1
    return seconds - times * _CENTURIES * _DAY, -400 * times


def wrap_to_64_bits(seconds: int) -> int:
    """Return a number of seconds as Go's int64 holds it: it wraps around."""
    return (seconds - INT_MIN) % 2**64 + INT_MIN


def make_unix_time(seconds: int, nanoseconds: int) -> Timestamp:
    """Return the moment of so many seconds since 1970, and nanoseconds; Go counts seconds from the year 1 on, in 64 bits."""
    return Timestamp((wrap_to_64_bits(seconds - FIRST_SECOND) + FIRST_SECOND) * SECOND + nanoseconds)


_PARTS: dict[str, Callable[[datetime.datetime], int]] = {
    "month": lambda local: local.month - 1,
    "day_of_year": lambda local: local.timetuple().tm_yday - 1,
    "day_of_month": lambda local: local.day - 1,
    "day_of_month_1_based": lambda local: local.day,
    "day_of_week": lambda local: local.isoweekday() % 7,
    "hours": lambda local: local.hour,
    "minutes": lambda local: local.minute,
    "seconds": lambda local: local.second,
}


def _find_offset(zone: str, moment: Timestamp) -> int:
    """Return seconds east of UTC: of `[+-]HH:MM`, or of a named zone at that moment."""
    if ":" in zone:
        return _parse_offset(zone)
    if zone in ("", "UTC"):
        return 0
    seconds, _ = _shift_into_python(moment.nanoseconds // SECOND)
    local = datetime.datetime.fromtimestamp(seconds, tz=_load_zone(zone))
    shift = local.utcoffset()
    return 0 if shift is None else int(shift.total_seconds())


def _parse_offset(zone: str) -> int:
    hours, _, minutes = zone.partition(":")
    east = _parse_number(hours) * 60
    return (east - _parse_number(minutes) if zone.startswith("-") else east + _parse_number(minutes)) * 60


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise EvaluationError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    number = whole_number(text.lstrip("+-")) * (-1 if text.startswith("-") else 1)
    if not INT_MIN <= number <= INT_MAX:
        raise EvaluationError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return number


@cache
def _load_zone(name: str) -> datetime.tzinfo:
    """Return a zone of the database; `Local` is that of the API server, which runs in UTC."""
    if name == "Local":
        return datetime.UTC
    if ".." in name or name.startswith(("/", "\\")):
        raise EvaluationError("time: invalid location name")
    import zoneinfo  # noqa: PLC0415 - a hundredth of the start of a command, and few expressions name a zone

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def count_whole_units(span: Value, unit: int) -> int:
    """Return a duration in whole units of `unit` nanoseconds, truncated towards zero.

    Raises EvaluationError for a value that is not a duration.
    """
    if not isinstance(span, Duration):
        raise EvaluationError("no such overload")
    units = abs(span.nanoseconds) // unit
    return -units if span.nanoseconds < 0 else units
