"""How fast to ask, how often to ask again, and when to stop waiting.

Source of truth: client-go. Its rate limiter is a token bucket (`--qps`, `--burst`), its retries honour Retry-After. The
arithmetic of retries is urllib3's; the watch over a whole kind is ours, because a server that drips keeps every other
clock from running out.
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
# A server that did not answer in time has had all the time that the user grants; once more may be bad luck.
_LATE_AGAIN: Final = 1
# Seconds of a Retry-After header. What has more digits, or is much longer than a date, means nothing.
_SECONDS: Final = re.compile(r"\s*([0-9]{1,9})\s*")
_LONGEST_DATE: Final = 64


class RateLimiter:
    """At most `qps` requests per second on the average, after `burst` at once; any number when `qps` is not positive.

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
        """`clock` counts seconds."""
        self._interval = 1 / qps if qps > 0 else 0.0
        self._head_start = max(burst, 1) * self._interval
        self._sleep = sleep
        self._clock = clock
        self._due = -math.inf
        self._lock = Lock()

    def wait(self) -> None:
        """Return when one more request may be sent."""
        if not self._interval:
            return
        with self._lock:
            now = self._clock()
            self._due = max(self._due, now - self._head_start) + self._interval
            pause = self._due - now
        if pause > 0:
            self._sleep(pause)


class Deadline:
    """The moment at which a request ends, whatever has come of the answer; never, without `seconds`."""

    def __init__(self, seconds: float = math.inf, *, clock: Callable[[], float] = time.monotonic) -> None:
        """It is so many seconds away."""
        self._clock = clock
        self._moment = math.inf if seconds == math.inf else clock() + seconds

    @property
    def left(self) -> float:
        """The seconds until then; infinite without a deadline, never negative."""
        return math.inf if self._moment == math.inf else max(self._moment - self._clock(), 0.0)


class Watch:
    """How long the server may take over one kind, in seconds; what the caller does between two requests is free."""

    def __init__(self, seconds: float | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Without `seconds`, for ever."""
        self.seconds = seconds
        self._clock = clock
        self._spent = 0.0
        self._since: float | None = None

    @property
    def left(self) -> float:
        """The seconds that remain; infinite without a limit, never negative."""
        running = 0.0 if self._since is None else self._clock() - self._since
        return math.inf if self.seconds is None else max(self.seconds - self._spent - running, 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time goes by in this block alone."""
        self._since = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - self._since
            self._since = None


def patience(attempts: int = ATTEMPTS) -> Retry:
    """How often to ask, and how long to wait before each time but the second."""
    return Retry(
        total=attempts - 1,
        other=_LATE_AGAIN,
        backoff_factor=_BACKOFF,
        backoff_jitter=_BACKOFF,
        backoff_max=_LONGEST_PAUSE,
    )


def another(retry: Retry, *, late: bool = False) -> Retry | None:
    """What patience is left after an answer that says "later", or none at all; None when there is none.

    An answer that did not come in time (`late`) costs more of it.
    """
    try:
        return retry.increment(error=TimeoutError() if late else None)
    except MaxRetryError:
        return None


def pause_before(retry: Retry, retry_after: str = "") -> float:
    """Seconds to wait before the next attempt: as long as the server asks for, within reason, or by our own count."""
    return min(_asked_for(retry, retry_after), _LONGEST_PAUSE) or retry.get_backoff_time()


def _asked_for(retry: Retry, retry_after: str) -> float:
    """The seconds of a Retry-After header, or those until the date in it; 0 where it holds neither."""
    if seconds := _SECONDS.fullmatch(retry_after):
        return float(seconds[1])
    if not retry_after or len(retry_after) > _LONGEST_DATE or retry_after.strip().isdigit():
        return 0.0
    try:
        return retry.parse_retry_after(retry_after)
    except (InvalidHeader, ValueError, OverflowError, TypeError):
        return 0.0
