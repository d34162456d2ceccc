"""The configuration of the command that runs: its settings of posture, what a scan records of it, and the day of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date
from typing import TYPE_CHECKING, Final

from scanner.cli.moments import end_of

if TYPE_CHECKING:
    from scanner.config.configuration import Configuration, Value
    from scanner.model.method import UsedConfiguration
    from scanner.posture.settings import Settings


@dataclass(frozen=True, slots=True)
class _Current:
    """The configuration of a command, and the values that the command uses of it."""

    configuration: Configuration
    used: tuple[Value, ...]


_CURRENT: Final[ContextVar[_Current | None]] = ContextVar("assay", default=None)


@contextmanager
def current(configuration: Configuration, used: Iterable[Value]) -> Iterator[None]:
    """A block in which a command runs with this configuration; `used` are the values that it has from the environment and the file."""
    token = _CURRENT.set(_Current(configuration, tuple(used)))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def settings() -> Settings:
    """The settings of posture of the command that runs."""
    from scanner.posture.settings import DEFAULT_SETTINGS

    running = _CURRENT.get()
    return running.configuration.posture if running else DEFAULT_SETTINGS


def used_configuration() -> UsedConfiguration:
    """The configuration of the command that runs as a scan records it: without secrets."""
    from scanner.config.configuration import shown
    from scanner.model.method import UsedConfiguration, UsedSetting

    running = _CURRENT.get()
    if running is None:
        return UsedConfiguration()
    used = tuple(UsedSetting(value.setting.key, value.place, shown(value)) for value in running.used)
    return UsedConfiguration(running.configuration.path, running.configuration.digest, used)


def day_of(at: str) -> date | None:
    """The day of a report that `--at` names, in UTC; None for the day on which the scan ended. Raises UsageError."""
    return end_of(at, "--at").astimezone(UTC).date() if at else None
