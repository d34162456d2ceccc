"""The settings of posture for the commands that read a scan, and the day of their reports."""

from __future__ import annotations

from datetime import UTC, date
from typing import TYPE_CHECKING

from scanner.cli.moments import end_of

if TYPE_CHECKING:
    from scanner.posture.settings import Settings


def settings() -> Settings:
    """The settings of this run: the defaults."""
    from scanner.posture.settings import DEFAULT_SETTINGS

    return DEFAULT_SETTINGS


def day_of(at: str) -> date | None:
    """The day of a report that `--at` names, in UTC; None for the day on which the scan ended. Raises UsageError."""
    return end_of(at, "--at").astimezone(UTC).date() if at else None
