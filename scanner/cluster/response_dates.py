"""The `Date` of an HTTP response: RFC 9110, section 6.6.1. The API server writes the dates of Go's net/http, in whole seconds."""

from __future__ import annotations

from datetime import MAXYEAR, UTC, datetime
from email.utils import parsedate_to_datetime


def moment_of(date: str) -> datetime | None:
    """The moment that the text of the header names; None for another text, and for the last year, after which no scan can end."""
    try:
        moment = parsedate_to_datetime(date)
        return moment.astimezone(UTC) if moment.tzinfo and moment.year < MAXYEAR else None
    except (ValueError, OverflowError):
        return None
