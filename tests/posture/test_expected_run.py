"""The last expected run of a schedule, and the interval that an alert may wait for the next scan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.schedule import parse_schedule
from scanner.posture.run_register import ExpectedRun, find_expected_run

ZONE = ZoneInfo("Etc/UTC")
DAY = timedelta(days=1)


def moment(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "now", "at", "following", "interval"),
    [
        ("0 2 * * *", "2026-03-04 09:00", "2026-03-04 02:00", "2026-03-05 02:00", DAY),
        ("0 2 * * *", "2026-03-04 02:00", "2026-03-04 02:00", "2026-03-05 02:00", DAY),
        ("*/15 * * * *", "2026-03-04 09:01", "2026-03-04 09:00", "2026-03-04 09:15", timedelta(minutes=15)),
        ("0 2 1 * *", "2026-03-04 09:00", "2026-03-01 02:00", "2026-04-01 02:00", 31 * DAY),
        ("0 2 29 2 *", "2026-03-04 09:00", "2024-02-29 02:00", "2028-02-29 02:00", 1461 * DAY),
    ],
)
def test_the_last_expected_run(cron: str, now: str, at: str, following: str, interval: timedelta) -> None:
    """With the next one, and the time between both."""
    expected = ExpectedRun(moment(at), moment(following), interval)

    assert expected == find_expected_run(parse_schedule(cron, ZONE), moment(now))


@pytest.mark.parametrize(
    ("now", "interval"),
    [
        ("2026-03-06 09:00", 3 * DAY),  # Friday
        ("2026-03-09 09:00", 3 * DAY),  # Monday
        ("2026-03-10 09:00", DAY),
    ],
)
def test_a_weekend_is_longer_than_a_day(now: str, interval: timedelta) -> None:
    """On Monday, too: the run of Monday may still be under way when the next interval has begun."""
    expected = find_expected_run(parse_schedule("0 2 * * 1-5", ZONE), moment(now))

    assert expected is not None
    assert interval == expected.interval


def test_a_schedule_without_a_time_expects_nothing() -> None:
    """The thirtieth of February."""
    assert None is find_expected_run(parse_schedule("0 2 30 2 *", ZONE), moment("2026-03-04 09:00"))


@given(minutes=st.integers(0, 600_000), later=st.integers(0, 3000))
def test_an_expected_run_stays_the_last_one_until_the_next(minutes: int, later: int) -> None:
    """So it need not be searched for again."""
    schedule = parse_schedule("10 2 * * 1,4", ZONE)
    start = moment("2026-01-01 00:00") + timedelta(minutes=minutes)
    expected = find_expected_run(schedule, start)
    assert expected is not None
    now = start + timedelta(minutes=later)

    assert expected.is_last(now) == ([] == list(schedule.list_times(start + timedelta(seconds=1), now)))
