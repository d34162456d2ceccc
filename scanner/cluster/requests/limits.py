"""Limits of requests: their rate, their retries and their time.

Source of truth: client-go. Its rate limiter is a token bucket (`--qps`, `--burst`), its retries honour Retry-After. The
arithmetic of retries is urllib3's. The time limit for a whole kind is ours, because a slow server can stay within all others.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from urllib3.exceptions import InvalidHeader, MaxRetryError
from urllib3.util import Retry

ATTEMPTS: Final = 6
_BACKOFF: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
# A timeout uses all the time that the user allows, so it is retried once only.
_LATE_AGAIN: Final = 1
# Seconds of a Retry-After header. A value with more digits, or much longer than a date, is ignored.
_SECONDS: Final = re.compile(r"\s*([0-9]{1,9})\s*")
_LONGEST_DATE: Final = 64


class RateLimiter:
    """Admits on average `qps` requests per second, and `burst` at once; no limit if `qps` is not positive.

    Threads may share it.
    """

    def __init__(
        self,
        qps: float,
        burst: int,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` and `sleep` use seconds."""
        self._interval = 1 / qps if qps > 0 else 0.0
        self._head_start = max(burst, 1) * self._interval
        self._sleep = sleep
        self._clock = clock
        self._due = -math.inf
        self._lock = Lock()

    def wait(self) -> None:
        """Wait until another request may be sent."""
        if not self._interval:
            return
        with self._lock:
            now = self._clock()
            self._due = max(self._due, now - self._head_start) + self._interval
            pause = self._due - now
        if pause > 0:
            self._sleep(pause)


class Deadline:
    """The moment at which a request ends; never, without `seconds`."""

    def __init__(self, seconds: float = math.inf, *, clock: Callable[[], float] = time.monotonic) -> None:
        """The moment `seconds` from now; without `seconds`, no deadline."""
        self._clock = clock
        self._moment = math.inf if seconds == math.inf else clock() + seconds

    @property
    def seconds_left(self) -> float:
        """The seconds until the deadline; infinite without a deadline, never negative."""
        return math.inf if self._moment == math.inf else max(self._moment - self._clock(), 0.0)


class TimeLimit:
    """A limit for the time of all requests for one kind. Time between the requests does not count."""

    def __init__(self, seconds: float | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """A limit of `seconds`; without `seconds`, no limit."""
        self.seconds = seconds
        self._clock = clock
        self._spent = 0.0
        self._since: float | None = None

    @property
    def seconds_left(self) -> float:
        """The seconds that remain; infinite without a limit, never negative."""
        running = 0.0 if self._since is None else self._clock() - self._since
        return math.inf if self.seconds is None else max(self.seconds - self._spent - running, 0.0)

    @contextmanager
    def count_time(self) -> Iterator[None]:
        """Count the time of this block."""
        self._since = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - self._since
            self._since = None


def make_retry(attempts: int = ATTEMPTS) -> Retry:
    """The number of attempts, and the pauses between them, which grow and are jittered, in seconds."""
    return Retry(
        total=attempts - 1,
        other=_LATE_AGAIN,
        backoff_factor=_BACKOFF,
        backoff_jitter=_BACKOFF,
        backoff_max=_LONGEST_PAUSE,
    )


def count_failure(retry: Retry, *, late: bool = False) -> Retry | None:
    """The retries that are left after a failed attempt, or None.

    A timeout (`late`) uses up more of them.
    """
    try:
        return retry.increment(error=TimeoutError() if late else None)
    except MaxRetryError:
        return None


def compute_pause(retry: Retry, retry_after: str = "") -> float:
    """Seconds to wait before the next attempt: the server's Retry-After, up to a limit, or our own pause."""
    return min(_parse_retry_after(retry, retry_after), _LONGEST_PAUSE) or retry.get_backoff_time()


def _parse_retry_after(retry: Retry, retry_after: str) -> float:
    """The seconds of a Retry-After header, or those until the date in it; 0 without either."""
    if seconds := _SECONDS.fullmatch(retry_after):
        return float(seconds[1])
    if not retry_after or len(retry_after) > _LONGEST_DATE or retry_after.strip().isdigit():
        return 0.0
    try:
        return retry.parse_retry_after(retry_after)
    except (InvalidHeader, ValueError, OverflowError, TypeError):
        return 0.0
