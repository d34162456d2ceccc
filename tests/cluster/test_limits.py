"""Facts about the request rate, retries and the time limit of a kind."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.cluster.limits import ATTEMPTS, Deadline, RateLimiter, TimeLimit, after_failure, pause_before, retries


class Clock:
    """Time that passes when somebody sleeps, or is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(st.floats(0.5, 200), st.integers(1, 50), st.lists(st.floats(0, 2), max_size=200))
def test_no_more_requests_than_the_pace_allows(qps: float, burst: int, pauses: list[float]) -> None:
    """In any stretch of time there are at most the burst, and as many more as the rate gives for that time."""
    clock = Clock()
    pace = RateLimiter(qps, burst, sleep=clock.sleep, clock=clock)
    sent = []
    for pause in pauses:
        clock.sleep(pause)
        pace.wait()
        sent.append(clock.now)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            assert last - first + 1 <= burst + qps * (sent[last] - sent[first]) + 1e-6 * (last + 2) * qps


def test_a_burst_does_not_wait() -> None:
    """The first requests go out at once, the next as far apart as the rate says."""
    clock = Clock()
    pace = RateLimiter(10, 3, sleep=clock.sleep, clock=clock)
    moments = []
    for _ in range(6):
        pace.wait()
        moments.append(clock.now)
    assert [0, 0, 0, 0.1, 0.2, 0.3] == pytest.approx(moments)


def test_without_a_rate_nobody_waits() -> None:
    """--qps 0 is no limit."""
    clock = Clock()
    pace = RateLimiter(0, 1, sleep=clock.sleep, clock=clock)
    for _ in range(1000):
        pace.wait()
    assert 0 == clock.now


def test_pauses_grow_and_end() -> None:
    """At once, then after growing pauses with a little chance in them, and a bounded number of times."""
    retry, pauses = retries(), []
    while (more := after_failure(retry)) is not None:
        retry = more
        pauses.append(pause_before(retry))
    assert ATTEMPTS - 1 == len(pauses)
    assert 0 == pauses[0]
    assert all(later > earlier for earlier, later in pairwise(pauses))
    assert sum(pauses) < 20


def test_jitter_keeps_many_clients_apart() -> None:
    """Two that fail at the same moment do not come again at the same moment."""
    retry = after_failure(retries())
    assert retry is not None
    retry = after_failure(retry)
    assert retry is not None
    assert len({pause_before(retry) for _ in range(20)}) > 15


def test_a_late_answer_costs_more_patience() -> None:
    """Two in all: each may take as long as the user grants."""
    retry = after_failure(retries(), late=True)
    assert retry is not None
    assert after_failure(retry, late=True) is None
    assert after_failure(retry) is not None


JUNK = [
    (text, 0, 0)
    for text in (
        "7" * 5000,
        "\u0663",
        "1e9",
        "7.5",
        "Sun, 99 Foo 99999999999 0:0:0",
        "Wed, 21 Oct 99999 07:28:00 GMT",
        "7,8",
    )
]


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [("7", 7, 7), (" 7 ", 7, 7), ("9000", 30, 30), ("0", 0, 0), ("", 0, 0), ("soon", 0, 0), ("-5", 0, 0), *JUNK],
)
def test_the_server_may_say_how_long(header: str, low: float, high: float) -> None:
    """Within reason; what it does not say in numbers is as if it had said nothing."""
    retry = after_failure(retries())
    assert retry is not None
    assert low <= pause_before(retry, header) <= high


def test_a_deadline_does_not_wait() -> None:
    """It comes nearer whatever happens, and is then past."""
    clock = Clock()
    deadline = Deadline(10, clock=clock)
    clock.sleep(4)
    assert 6 == deadline.left
    clock.sleep(100)
    assert (0, math.inf) == (deadline.left, Deadline(clock=clock).left)


def test_a_watch_only_runs_while_somebody_waits() -> None:
    """What happens between two requests costs nothing."""
    clock = Clock()
    time_limit = TimeLimit(10, clock=clock)
    with time_limit.running():
        clock.sleep(4)
        assert 6 == time_limit.left
    clock.sleep(100)
    assert 6 == time_limit.left
    with time_limit.running():
        clock.sleep(100)
        assert 0 == time_limit.left
    assert 0 == time_limit.left


def test_a_watch_without_limit_never_ends() -> None:
    """--kind-timeout 0."""
    clock = Clock()
    time_limit = TimeLimit(clock=clock)
    with time_limit.running():
        clock.sleep(1e9)
    assert math.inf == time_limit.left
