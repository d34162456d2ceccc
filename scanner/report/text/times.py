"""Moments and durations as text, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_MINUTE = 60


def utc(moment: datetime) -> datetime:
    """The moment in UTC; a moment without a zone, as some databases return it, is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def iso(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return utc(moment).isoformat().replace("+00:00", "Z")


def stamp(moment: datetime | None) -> str:
    """`2026-01-31 09:05:00 UTC`, or `not finished`."""
    return "not finished" if moment is None else f"{utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def minute(moment: datetime) -> str:
    """`2026-01-31 09:05`, in UTC, for narrow columns."""
    return f"{utc(moment):%Y-%m-%d %H:%M}"


def duration(start: datetime, end: datetime) -> str:
    """The time between two moments, as text in seconds, minutes or hours."""
    seconds = (utc(end) - utc(start)).total_seconds()
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


def age_text(since: datetime, end: datetime) -> str:
    """`12 d`, `3 h`, `40 min`; `0 min` for what the scan itself found."""
    age = max(utc(end) - utc(since), timedelta())
    if age >= _DAY:
        return f"{age // _DAY:,} d"
    return f"{age // _HOUR} h" if age >= _HOUR else f"{age // timedelta(minutes=1)} min"
