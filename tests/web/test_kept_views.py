"""Which views of scans stay in memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from scanner.web.views.library import KeptViews

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


class Made(NamedTuple):
    """A view of a cluster's scan of a day."""

    cluster: str
    day: int
    size: int = 1

    @property
    def end(self) -> datetime:
        """The end of its scan."""
        return FIRST + timedelta(days=self.day)


def kept(views: KeptViews[Made], *read: Made) -> list[Made]:
    """The views that are kept after some were read."""
    for view in read:
        if views.get(view) is None:
            views[view] = view
    return [view for view in dict.fromkeys(read) if view in views]


def test_the_view_that_was_not_read_for_the_longest_time_goes_first() -> None:
    """Of newest scans."""
    a, b, c = Made("a", 9), Made("b", 9), Made("c", 9)

    assert [a, c] == kept(KeptViews(most_views=2), a, b, a, c)


def test_views_of_earlier_dates_go_before_those_of_newest_scans() -> None:
    """A reader of the past does not slow down those who read the newest scans."""
    a, b = Made("a", 9), Made("b", 9)

    assert [a, b, Made("a", 5)] == kept(KeptViews(most_views=3), a, b, Made("a", 3), Made("b", 4), Made("a", 5))


def test_the_view_of_a_newer_scan_replaces_the_one_before() -> None:
    """The earlier scan is one of an earlier date now."""
    a, b = Made("a", 8), Made("b", 8)

    assert [b, Made("a", 9)] == kept(KeptViews(most_views=2), a, b, Made("a", 9))


def test_a_view_that_is_kept_again_counts_once() -> None:
    """Two threads may have made it."""
    a, b = Made("a", 9, size=400), Made("b", 9, size=400)
    views: KeptViews[Made] = KeptViews(most_problems=1_000)
    for view in (a, b, a, b):
        views[view] = view

    assert [a, b] == list(views)


def test_the_only_view_is_kept_whatever_its_size() -> None:
    """A page of a scan with very many problems is not made anew for each request."""
    small, large = Made("a", 9), Made("b", 9, size=5_000)

    assert [large] == kept(KeptViews(most_problems=1_000), small, large)


def test_the_problems_of_all_views_are_bounded() -> None:
    """Few views of many problems fill the memory as many views of few do."""
    views = [Made(name, 9, size=400) for name in "abc"]

    assert views[1:] == kept(KeptViews(most_problems=1_000), *views)
