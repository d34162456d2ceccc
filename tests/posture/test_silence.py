"""A cluster is silent when its last complete scan is older than one and a half times the interval of the schedule."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from scanner.model.cron import schedule_of
from scanner.posture.silence import silent_from

FRIDAY = datetime(2026, 3, 27, 2, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "started", "silent"),
    [
        ("", FRIDAY, "2026-03-28T14:00:05+00:00"),
        ("0 2 * * *", FRIDAY, "2026-03-28T14:00:05+00:00"),
        ("0 * * * *", FRIDAY, "2026-03-27T03:30:05+00:00"),
        ("0 2 * * 1-5", FRIDAY, "2026-03-30T14:00:00+00:00"),
        ("0 2 * * *", FRIDAY.replace(hour=1), "2026-03-28T13:00:05+00:00"),
    ],
    ids=["no schedule", "daily", "hourly", "weekdays", "a run by hand before the expected time"],
)
def test_silence_begins_half_an_interval_after_the_next_expected_time(
    schedule: str, started: datetime, silent: str
) -> None:
    """And never sooner than one and a half intervals after the scan: no run is expected at weekends."""
    expected = schedule_of(schedule, ZoneInfo("Etc/UTC")) if schedule else None
    assert datetime.fromisoformat(silent) == silent_from(started, expected)


def test_a_schedule_that_never_comes_again_calls_no_cluster_silent() -> None:
    """The 30th of February is a valid schedule for the API."""
    assert silent_from(FRIDAY, schedule_of("0 0 30 2 *", ZoneInfo("Etc/UTC"))) is None
