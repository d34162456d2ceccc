"""A cluster is silent when its last run is older than one and a half times the interval of the schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from scanner.model.schedule import parse_schedule
from scanner.posture.run_register import ClusterState, cluster_states, find_silence

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
    expected = parse_schedule(schedule, ZoneInfo("Etc/UTC")) if schedule else None
    assert datetime.fromisoformat(silent) == find_silence(started, expected)


def test_a_schedule_that_never_comes_again_calls_no_cluster_silent() -> None:
    """The 30th of February is a valid schedule for the API."""
    assert find_silence(FRIDAY, parse_schedule("0 0 30 2 *", ZoneInfo("Etc/UTC"))) is None


SILENT, NEVER = ClusterState.SILENT, ClusterState.NEVER_COMPLETE


@pytest.mark.parametrize(
    ("hours", "has_complete_scan", "states"),
    [(35, True, []), (37, True, [SILENT]), (35, False, [NEVER]), (37, False, [SILENT, NEVER])],
)
def test_silence_is_about_runs_and_never_complete_about_scans(
    hours: int, states: list[ClusterState], *, has_complete_scan: bool
) -> None:
    """A cluster whose scans are all incomplete is not silent, and one without a run is, however complete its scans were."""
    now = FRIDAY + timedelta(hours=hours)
    assert states == list(cluster_states(FRIDAY, now, None, has_complete_scan=has_complete_scan))


def test_a_cluster_without_any_recorded_run_is_silent() -> None:
    """Nothing is known of it."""
    assert [SILENT, NEVER] == list(cluster_states(None, FRIDAY, None, has_complete_scan=False))
