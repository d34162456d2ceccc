"""Schedules have the times at which the CronJob controller starts Jobs.

`tests/schedules/recorded.json` has the times and errors of the controller's own library; `go run .` in that folder records them again.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.errors import UsageError
from scanner.model.schedule import Schedule, parse_schedule

RECORDED = json.loads((Path(__file__).parents[1] / "schedules" / "recorded.json").read_text("utf-8"))
BERLIN = ZoneInfo("Europe/Berlin")


def times(schedule: Schedule, after: datetime, count: int) -> list[str]:
    """The next times of a schedule, as RFC 3339."""
    found: list[str] = []
    moment: datetime | None = after
    while len(found) < count and moment is not None and (moment := schedule.find_next(moment)):
        found.append(f"{moment:%Y-%m-%dT%H:%M:%SZ}")
    return found


def by_zone() -> dict[str, list[dict[str, Any]]]:
    """The recorded schedules of each time zone."""
    valid = sorted((case for case in RECORDED if "error" not in case), key=lambda case: str(case["zone"]))
    return {zone: list(cases) for zone, cases in groupby(valid, key=lambda case: str(case["zone"]))}


@pytest.mark.parametrize(("zone", "cases"), by_zone().items(), ids=by_zone())
def test_times_are_those_of_the_controller(zone: str, cases: list[dict[str, Any]]) -> None:
    """Also where clocks change at midnight, or by half an hour."""
    expected = {(case["schedule"], case["after"]): case["times"] for case in cases}
    actual = {
        (text, after): times(parse_schedule(text, ZoneInfo(zone)), datetime.fromisoformat(after), 4)
        for text, after in expected
    }
    assert expected == actual


@pytest.mark.parametrize("text", [case["schedule"] for case in RECORDED if "error" in case])
def test_what_a_cronjob_may_not_have_is_an_error(text: str) -> None:
    """The message names the schedule, and shows a valid one."""
    with pytest.raises(UsageError, match=r"^schedule .*Example: '17 2"):
        parse_schedule(text, BERLIN)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("TZ=Europe/Berlin 17 2 * * *", "--time-zone"),
        ("CRON_TZ=UTC 17 2 * * *", "--time-zone"),
        ("@every 1h", "Write five fields"),
    ],
)
def test_a_schedule_without_expected_times_has_a_remedy(text: str, remedy: str) -> None:
    """Kubernetes denies zones in a schedule; @every counts from the creation of the CronJob."""
    with pytest.raises(UsageError, match=remedy):
        parse_schedule(text, BERLIN)


def test_a_skipped_time_does_not_occur() -> None:
    """02:30 does not exist in Berlin on 29 March 2026, and the controller starts no Job."""
    before = datetime(2026, 3, 27, 12, tzinfo=UTC)

    expected = ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]
    assert expected == times(parse_schedule("30 2 * * *", BERLIN), before, 2)


def test_a_repeated_time_occurs_twice() -> None:
    """02:30 exists twice in Berlin on 25 October 2026, and the controller starts two Jobs."""
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)

    expected = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]
    assert expected == times(parse_schedule("30 2 * * *", BERLIN), before, 3)


def test_bounds_are_included() -> None:
    """Times at the start and at the end of a period belong to the period."""
    start = datetime(2026, 11, 1, 2, 17, tzinfo=UTC)
    found = parse_schedule("17 2 * * *", ZoneInfo("UTC")).list_times(start, start + timedelta(days=2))

    assert [start + timedelta(days=day) for day in range(3)] == list(found)


def test_a_day_that_never_comes_has_no_time() -> None:
    """The search ends."""
    assert parse_schedule("0 0 30 2 *", BERLIN).find_next(datetime(2026, 1, 1, tzinfo=UTC)) is None


@given(
    st.sampled_from(["17 2 * * *", "*/15 * * * *", "0 0 1 * *", "30 2 * * sun"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - hypothesis adds the zone
)
def test_times_increase_and_begin_a_minute(text: str, moment: datetime) -> None:
    """Each time is later than the one before, and in Berlin its minute is in the schedule."""
    schedule = parse_schedule(text, BERLIN)
    found = list(islice(schedule.list_times(moment, moment + timedelta(days=70)), 20))

    assert sorted(set(found)) == found
    assert all(
        (time.second, time.microsecond) == (0, 0) and time.astimezone(BERLIN).minute in schedule.minutes
        for time in found
    )


def test_a_day_that_a_zone_left_out_does_not_stop_the_search() -> None:
    """Samoa had no 30 December 2011; the search of the controller's library does not end there."""
    before = datetime(2011, 12, 29, 8, tzinfo=UTC)

    assert ["2011-12-30T10:00:00Z"] == times(parse_schedule("0 0 31 12 *", ZoneInfo("Pacific/Apia")), before, 1)
