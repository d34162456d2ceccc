"""The request rate, the retries and the time limit of a kind."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.cluster.requests.limits import (
    ATTEMPTS,
    Deadline,
    RateLimiter,
    TimeLimit,
    compute_pause,
    count_failure,
    make_retry,
)


class Clock:
    """Time that passes with each pause, or when a test advances it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(st.floats(0.5, 200), st.integers(1, 50), st.lists(st.floats(0, 2), max_size=200))
def test_no_more_requests_than_the_pace_allows(qps: float, burst: int, pauses: list[float]) -> None:
    """Any period has at most the burst, and the requests of the rate for that time."""
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
    """The first requests are sent at once, the next with the interval of the rate."""
    clock = Clock()
    pace = RateLimiter(10, 3, sleep=clock.sleep, clock=clock)
    moments = []
    for _ in range(6):
        pace.wait()
        moments.append(clock.now)
    assert [0, 0, 0, 0.1, 0.2, 0.3] == pytest.approx(moments)


def test_without_a_rate_there_is_no_wait() -> None:
    """--qps 0 sets no limit."""
    clock = Clock()
    pace = RateLimiter(0, 1, sleep=clock.sleep, clock=clock)
    for _ in range(1000):
        pace.wait()
    assert 0 == clock.now


def test_pauses_grow_and_end() -> None:
    """The first retry is immediate, the next follow after growing, jittered pauses, and their number is limited."""
    retry, pauses = make_retry(), []
    while (more := count_failure(retry)) is not None:
        retry = more
        pauses.append(compute_pause(retry))
    assert ATTEMPTS - 1 == len(pauses)
    assert 0 == pauses[0]
    assert all(later > earlier for earlier, later in pairwise(pauses))
    assert sum(pauses) < 20


def test_jitter_keeps_many_clients_apart() -> None:
    """Two clients that fail at one moment retry at different moments."""
    retry = count_failure(make_retry())
    assert retry is not None
    retry = count_failure(retry)
    assert retry is not None
    assert len({compute_pause(retry) for _ in range(20)}) > 15


def test_a_timeout_uses_more_attempts() -> None:
    """Two attempts may time out, because each may take the user's whole timeout."""
    retry = count_failure(make_retry(), late=True)
    assert retry is not None
    assert count_failure(retry, late=True) is None
    assert count_failure(retry) is not None


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
def test_the_server_may_set_the_pause(header: str, low: float, high: float) -> None:
    """Retry-After is limited; an invalid value counts as absent."""
    retry = count_failure(make_retry())
    assert retry is not None
    assert low <= compute_pause(retry, header) <= high


def test_a_deadline_does_not_wait() -> None:
    """The time until the deadline always decreases, down to zero."""
    clock = Clock()
    deadline = Deadline(10, clock=clock)
    clock.sleep(4)
    assert 6 == deadline.seconds_left
    clock.sleep(100)
    assert (0, math.inf) == (deadline.seconds_left, Deadline(clock=clock).seconds_left)


def test_a_time_limit_runs_only_during_requests() -> None:
    """The time between two requests does not count."""
    clock = Clock()
    time_limit = TimeLimit(10, clock=clock)
    with time_limit.count_time():
        clock.sleep(4)
        assert 6 == time_limit.seconds_left
    clock.sleep(100)
    assert 6 == time_limit.seconds_left
    with time_limit.count_time():
        clock.sleep(100)
        assert 0 == time_limit.seconds_left
    assert 0 == time_limit.seconds_left


def test_a_time_limit_of_zero_never_ends() -> None:
    """--kind-timeout 0 sets no limit."""
    clock = Clock()
    time_limit = TimeLimit(clock=clock)
    with time_limit.count_time():
        clock.sleep(1e9)
    assert math.inf == time_limit.seconds_left
