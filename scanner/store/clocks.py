"""Clocks of the processes on a database: the clock of PostgreSQL, which they all share; on a file, that of the machine (ADR 44)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final, TypeAlias

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

Clock: TypeAlias = Callable[[], datetime]

_COUNTER: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux has CLOCK_BOOTTIME: its CLOCK_MONOTONIC stands still while the machine is suspended, and that of macOS does not."""
_FRESH: Final = timedelta(minutes=1)
"""The time after which the server is asked again."""


def utc_now() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


class SteadyClock:
    """Counts on from a moment, also while the machine is suspended. No change of the machine's clock changes it."""

    def __init__(self, moment: datetime) -> None:
        """Begin with a moment, which is now."""
        self._moment = moment
        self._counted = time.clock_gettime(_COUNTER)

    def __call__(self) -> datetime:
        """The time."""
        return self._moment + self.passed

    @property
    def passed(self) -> timedelta:
        """The time since the beginning."""
        return timedelta(seconds=time.clock_gettime(_COUNTER) - self._counted)


class ServerClock:
    """The clock of a PostgreSQL server, which is asked once a minute."""

    def __init__(self, engine: Engine) -> None:
        """Ask the server. Raises errors of the driver."""
        self._engine = engine
        self._asking = Lock()
        self._answer = self._ask()

    def __call__(self) -> datetime:
        """The time. A server that does not answer now leaves its last answer valid.

        One thread alone asks again: it may have a connection, and needs a second one.
        """
        if self._answer.passed > _FRESH and self._asking.acquire(blocking=False):
            try:
                with suppress(SQLAlchemyError):
                    self._answer = self._ask()
            finally:
                self._asking.release()
        return self._answer()

    def _ask(self) -> SteadyClock:
        with self._engine.connect() as connection:
            return SteadyClock(connection.execute(select(func.clock_timestamp())).scalar_one().astimezone(UTC))


def clock_of(engine: Engine) -> Clock:
    """The clock by which the processes on a database compare their times."""
    return ServerClock(engine) if engine.dialect.name == "postgresql" else utc_now
