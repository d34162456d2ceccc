"""The settings of posture for the commands that read a scan, and the day of their reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.moments import end_of

if TYPE_CHECKING:
    from scanner.posture.controls import Framework
    from scanner.posture.settings import Settings

ControlsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--controls",
        metavar="PATH",
        help="Report by control: a file or folder of control mappings (repeatable).",
        show_default=False,
    ),
]


def settings(controls: Sequence[Path] = ()) -> Settings:
    """The settings of this run: the defaults, with the control mappings at some paths. Raises UsageError."""
    from dataclasses import replace

    from scanner.posture.settings import DEFAULT_SETTINGS

    return replace(DEFAULT_SETTINGS, frameworks=_frameworks(controls)) if controls else DEFAULT_SETTINGS


def _frameworks(paths: Sequence[Path]) -> tuple[Framework, ...]:
    from scanner.documents.controls import read_frameworks
    from scanner.policies.language import LANGUAGES

    return read_frameworks(paths, languages=[name for language in LANGUAGES for name in language.names])


def day_of(at: str) -> date | None:
    """The day of a report that `--at` names, in UTC; None for the day on which the scan ended. Raises UsageError."""
    return end_of(at, "--at").astimezone(UTC).date() if at else None
