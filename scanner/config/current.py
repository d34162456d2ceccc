"""The configuration of the command that runs: its settings of posture, what a scan records of it, and the day of a report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scanner.config.values import parse_end

if TYPE_CHECKING:
    from scanner.config.configuration import Configuration, SettingValue
    from scanner.config.setting import Plain
    from scanner.model.access_token import AccessToken
    from scanner.model.scans.method import UsedConfiguration
    from scanner.model.schedule import Schedule
    from scanner.posture.control_checks import Framework
    from scanner.posture.routes import Route
    from scanner.posture.settings import Settings
    from scanner.report.runs.document import RunExpectation, RunExpectations

UTC_ZONE: Final = "Etc/UTC"
"""The time zone of a schedule without one."""
TOLERANCE: Final = "10m"
"""The tolerance of a schedule without one."""


@dataclass(frozen=True, slots=True)
class _RunningCommand:
    """The configuration of a command, and the values that the command uses of it."""

    configuration: Configuration
    used: tuple[SettingValue, ...]


_CURRENT: Final[ContextVar[_RunningCommand | None]] = ContextVar("assay", default=None)
_SCHEDULE: Final[ContextVar[tuple[str, str] | None]] = ContextVar("schedule", default=None)


@contextmanager
def use_configuration(configuration: Configuration, used: Iterable[SettingValue]) -> Iterator[None]:
    """A block in which a command runs with this configuration; `used` are the values that it has from the environment and the file."""
    token = _CURRENT.set(_RunningCommand(configuration, tuple(used)))
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def expect_runs(schedule: str, time_zone: str) -> Iterator[None]:
    """A block in which runs are expected by the schedule of a cluster of a fleet, if it has one, instead of the configuration's."""
    token = _SCHEDULE.set((schedule, time_zone) if schedule else None)
    try:
        yield
    finally:
        _SCHEDULE.reset(token)


def get_settings(controls: Sequence[Path] = ()) -> Settings:
    """The settings of the command that runs, with the control mappings at some paths. Raises UsageError."""
    from dataclasses import replace

    from scanner.posture.settings import DEFAULT_SETTINGS

    running = _CURRENT.get()
    configured = (running.configuration.posture if running else None) or DEFAULT_SETTINGS
    return replace(configured, frameworks=_read_frameworks(controls)) if controls else configured


def get_access_tokens() -> tuple[AccessToken, ...]:
    """The bearer tokens in the configuration of the command that runs."""
    running = _CURRENT.get()
    return running.configuration.tokens if running else ()


def get_routes() -> tuple[Route, ...]:
    """The routes of notifications in the configuration of the command that runs."""
    running = _CURRENT.get()
    return running.configuration.routes if running else ()


def _read_frameworks(paths: Sequence[Path]) -> tuple[Framework, ...]:
    from scanner.documents.controls import read_frameworks
    from scanner.policies.language import LANGUAGES

    return read_frameworks(paths, languages=[name for language in LANGUAGES for name in language.names])


def get_schedule() -> Schedule | None:
    """The schedule at which the cluster of a fleet, or the configuration, expects runs; None without one. Raises UsageError."""
    running = _CURRENT.get()
    configured = tuple(str(_get_value(running, f"schedule.{name}") or "") for name in ("cron", "timeZone"))
    cron, zone = _SCHEDULE.get() or configured
    if not cron:
        return None
    from scanner.config.values import parse_time_zone
    from scanner.model.schedule import parse_schedule

    return parse_schedule(cron, parse_time_zone(zone or UTC_ZONE))


def get_expectation() -> RunExpectation | None:
    """The schedule of the configuration with its tolerance, None without one. Raises UsageError."""
    running = _CURRENT.get()
    cron, zone, tolerance = (
        str(_get_value(running, f"schedule.{name}") or "") for name in ("cron", "timeZone", "tolerance")
    )
    if not cron:
        return None
    from datetime import timedelta

    from scanner.config.values import parse_seconds
    from scanner.report.runs.document import RunExpectation

    allowed = parse_seconds(tolerance or TOLERANCE, "schedule.tolerance") or 0
    return RunExpectation(cron, zone or UTC_ZONE, timedelta(seconds=allowed))


def get_expectations(fleet: Path | None) -> RunExpectations:
    """The schedules of the clusters of a fleet, and that of the configuration for all others. Raises UsageError."""
    from datetime import timedelta

    from scanner.config.values import parse_seconds
    from scanner.report.runs.document import RunExpectation, RunExpectations

    others = get_expectation()
    if others:
        _ = others.times  # an invalid schedule is reported before anything is shown
    if fleet is None:
        return RunExpectations(others)
    from scanner.documents.fleet import read_fleet

    members = read_fleet(fleet)
    tolerance = others.tolerance if others else timedelta(seconds=parse_seconds(TOLERANCE, "schedule.tolerance") or 0)
    own_schedules = {
        member.name: RunExpectation(member.schedule, member.time_zone or UTC_ZONE, tolerance)
        for member in members
        if member.schedule
    }
    return RunExpectations(others, own_schedules, tuple(member.name for member in members))


def _get_value(running: _RunningCommand | None, key: str) -> Plain | None:
    value = running.configuration.values.get(key) if running else None
    return value.value if value else None


def describe_configuration() -> UsedConfiguration:
    """The configuration of the command that runs as a scan records it: without secrets."""
    from scanner.config.configuration import write_value
    from scanner.model.scans.method import UsedConfiguration, UsedSetting

    running = _CURRENT.get()
    if running is None:
        return UsedConfiguration()
    used = tuple(UsedSetting(value.setting.key, value.place, write_value(value)) for value in running.used)
    return UsedConfiguration(running.configuration.path, running.configuration.digest, used)


def parse_day(at: str) -> date | None:
    """The day of a report that `--at` names, in UTC; None for the day on which the scan ended. Raises UsageError."""
    return parse_end(at, "--at").astimezone(UTC).date() if at else None


DEFAULT_DB: Final = "ASSAY_DEFAULT_DB"


def get_database_address(url: str) -> str:
    """The URL or path of the database to use."""
    address = url or os.environ.get(DEFAULT_DB)
    if address:
        return address
    from platformdirs import user_data_path

    return str(user_data_path("assay", appauthor=False) / "assay.db")
