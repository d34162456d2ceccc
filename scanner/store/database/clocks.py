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


def read_counter() -> float:
    """The seconds since some moment, also those while the machine was suspended. No change of its clock changes them."""
    return time.clock_gettime(_COUNTER)


class SteadyClock:
    """Counts on from a moment."""

    def __init__(self, moment: datetime, count: Callable[[], float] = read_counter) -> None:
        """Begin with a moment, which is now. `count` returns seconds."""
        self._moment = moment
        self._count = count
        self._counted = count()

    def __call__(self) -> datetime:
        """The time."""
        return self._moment + self.elapsed

    @property
    def elapsed(self) -> timedelta:
        """The time since the beginning."""
        return timedelta(seconds=self._count() - self._counted)


class ServerClock:
    """The clock of a database's server, which is asked once a minute."""

    def __init__(self, ask: Callable[[], datetime], count: Callable[[], float] = read_counter) -> None:
        """Ask the server. `ask` raises errors of the driver, which are those of this call; `count` returns seconds."""
        self._ask = ask
        self._count = count
        self._asking = Lock()
        self._answer = SteadyClock(ask(), count)

    def __call__(self) -> datetime:
        """The time. If the server does not answer now, its last answer counts.

        One thread alone asks again: it may have a connection, and needs a second one.
        """
        if self._answer.elapsed > _FRESH and self._asking.acquire(blocking=False):
            try:
                with suppress(SQLAlchemyError):
                    self._answer = SteadyClock(self._ask(), self._count)
            finally:
                self._asking.release()
        return self._answer()


def clock_of(engine: Engine) -> Clock:
    """The clock by which the processes on a database compare their times. Raises errors of the driver."""
    if engine.dialect.name != "postgresql":
        return utc_now

    def ask() -> datetime:
        with engine.connect() as connection:
            moment: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
            return moment.astimezone(UTC)

    return ServerClock(ask)
