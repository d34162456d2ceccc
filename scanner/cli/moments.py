"""Dates and times on the command line. They are UTC: a date means its end, and its beginning where a period begins."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated

import typer

from scanner.errors import UsageError

AtOption = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="DATE",
        help="The newest scan that had ended by this date (its end, in UTC) or by this time in RFC 3339.",
        show_default=False,
    ),
]


def end_of(text: str, flag: str) -> datetime:
    """The end of a date, or the time that an RFC 3339 text names. Raises UsageError."""
    try:
        if len(text) == len("2026-01-31"):
            return datetime.combine(date.fromisoformat(text) + timedelta(days=1), time(), UTC) - timedelta(
                microseconds=1
            )
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{flag} {text}: write a date such as 2026-03-31, or a time such as 2026-03-31T12:00:00Z"
        ) from error
    if moment.tzinfo is None:
        raise UsageError(f"{flag} {text}: a time needs a zone, such as {text}Z for UTC")
    return moment


def beginning_of(text: str, flag: str) -> datetime:
    """The beginning of a date, or the time that an RFC 3339 text names. Raises UsageError."""
    moment = end_of(text, flag).astimezone(UTC)
    return datetime.combine(moment.date(), time(), UTC) if len(text) == len("2026-01-31") else moment
