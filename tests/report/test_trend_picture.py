"""The small line of a trend in the list of clusters."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from scanner.model.scans.register import DayCounts
from scanner.report.runs.trend import HEIGHT, WIDTH, trend_of

FIRST = date(2026, 3, 1)


def days(*findings: int, every: int = 1) -> tuple[DayCounts, ...]:
    """Days with these numbers of findings."""
    return tuple(
        DayCounts(FIRST + timedelta(days=every * place), number, 1, 0) for place, number in enumerate(findings)
    )


@pytest.mark.parametrize("findings", [(), (7,)])
def test_one_day_is_no_trend(findings: tuple[int, ...]) -> None:
    """A line needs two points."""
    assert trend_of(days(*findings)) is None


def test_a_line_goes_from_the_first_day_to_the_last() -> None:
    """The highest number touches the top, and 0 the bottom."""
    trend = trend_of(days(4, 0, 8))

    assert trend is not None
    assert f"0.0,{HEIGHT / 2} {WIDTH / 2},{HEIGHT}.0 {WIDTH}.0,0.0" == trend.points


def test_days_without_findings_are_a_line_at_the_bottom() -> None:
    """Nothing divides by the highest number, which is 0."""
    trend = trend_of(days(0, 0))

    assert trend is not None
    assert f"0.0,{HEIGHT}.0 {WIDTH}.0,{HEIGHT}.0" == trend.points
