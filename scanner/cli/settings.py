"""The configuration of the command that runs: its settings of posture, what a scan records of it, and the day of a report."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date
from typing import TYPE_CHECKING, Final

import typer

from scanner.cli.moments import end_of

if TYPE_CHECKING:
    from scanner.config.configuration import Configuration, Value
    from scanner.model.method import UsedConfiguration
    from scanner.posture.settings import Settings

_CONFIGURATION: Final = "assay.configuration"
_USED: Final = "assay.used"


def keep(context: typer.Context, configuration: Configuration, used: Iterable[Value]) -> None:
    """Keep the configuration of the command that runs, and the values that the command uses of it, in its context."""
    context.meta[_CONFIGURATION] = configuration
    context.meta[_USED] = tuple(used)


def settings(context: typer.Context) -> Settings:
    """The settings of posture of this run."""
    configuration: Configuration = context.meta[_CONFIGURATION]
    return configuration.posture


def used_configuration(context: typer.Context) -> UsedConfiguration:
    """The configuration of this run as a scan records it: without secrets."""
    from scanner.config.configuration import shown
    from scanner.model.method import UsedConfiguration, UsedSetting

    configuration: Configuration = context.meta[_CONFIGURATION]
    used: tuple[Value, ...] = context.meta[_USED]
    return UsedConfiguration(
        configuration.path,
        configuration.digest,
        tuple(UsedSetting(value.setting.key, value.place, shown(value)) for value in used),
    )


def day_of(at: str) -> date | None:
    """The day of a report that `--at` names, in UTC; None for the day on which the scan ended. Raises UsageError."""
    return end_of(at, "--at").astimezone(UTC).date() if at else None
