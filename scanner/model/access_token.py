"""A bearer token that `assay serve` accepts, as the configuration has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The form of the names of tokens."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token without the token itself: `digest` is its SHA-256 in hexadecimal digits.

    `expires` is the last day on which the token is valid, in UTC; None for no end.
    """

    name: str
    digest: str
    expires: date | None = None

    @property
    def end(self) -> datetime | None:
        """The moment after the last day; None for no end."""
        return None if self.expires is None else datetime.combine(self.expires, time.min, UTC) + timedelta(days=1)

    def is_valid_on(self, day: date) -> bool:
        """Return whether the token is valid on a day of UTC."""
        return self.expires is None or day <= self.expires
