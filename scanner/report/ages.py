"""The time for which a finding is open, as of the end of its scan, in one unit."""

from __future__ import annotations

from datetime import datetime, timedelta

from scanner.report.words import utc

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


def age_text(since: datetime, end: datetime) -> str:
    """`12 d`, `3 h`, `40 min`; `0 min` for what the scan itself found."""
    age = max(utc(end) - utc(since), timedelta())
    if age >= _DAY:
        return f"{age // _DAY:,} d"
    return f"{age // _HOUR} h" if age >= _HOUR else f"{age // timedelta(minutes=1)} min"
