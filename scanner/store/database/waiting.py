"""Waits for a database that does not answer: a call is repeated until it answers, or a time has passed (ADR 79).

Only calls of which nothing has happened are repeated (`DatabaseUnreachable`); an error that a later try cannot mend ends at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from scanner.errors import DatabaseUnreachable
from scanner.store.database.clocks import read_counter

AnswerT = TypeVar("AnswerT")
_FIRST: Final = 1.0
_LONGEST: Final = 15.0
"""Seconds between two tries, which double from the first one on."""


class DatabaseWait:
    """The time to wait for a database, from the first try that fails. `waited` is the time of all waits so far."""

    def __init__(
        self,
        seconds: float = 0,
        *,
        report: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
        count: Callable[[], float] = read_counter,
    ) -> None:
        """Wait `seconds` at most, until `stopped`. `report` gets a sentence when a wait begins and when it ends."""
        self.waited = timedelta()
        self._seconds = seconds
        self._report = report
        self._stopped = stopped
        self._sleep = sleep
        self._count = count

    def until_answered(self, call: Callable[[], AnswerT]) -> AnswerT:
        """The result of a call. Raises its error, and DatabaseUnreachable of the last try."""
        try:
            return call()
        except DatabaseUnreachable as error:
            return self._repeat(call, error)

    def _repeat(self, call: Callable[[], AnswerT], error: DatabaseUnreachable) -> AnswerT:
        begun, before, pause = self._count(), self.waited, _FIRST
        if self._seconds:
            self._report(f"{error} Waiting for the database, {self._seconds:g} seconds at most")
        while (left := self._seconds - (self._count() - begun)) > 0 and not self._stopped():
            self._sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST)
            self.waited = before + timedelta(seconds=self._count() - begun)
            try:
                answer = call()
            except DatabaseUnreachable as again:
                error = again
                continue
            self._report(f"The database answers after {self._count() - begun:.0f} seconds")
            return answer
        raise error
