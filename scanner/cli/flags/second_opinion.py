"""The flags of a second opinion: the engine, and the share of the objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.flag_group import FlagGroup

if TYPE_CHECKING:
    from scanner.opinion.comparison import EngineComparison

_PANEL = "Second opinion"
PERCENT = 1.0
"""The default sample."""


class SecondEngine(StrEnum):
    """The engines for a second opinion."""

    CEL_PYTHON = "cel-python"


@dataclass(frozen=True, slots=True)
class SecondOpinionFlags(FlagGroup):
    """The engine, and the share of the objects."""

    engine: Annotated[
        SecondEngine | None,
        typer.Option(
            "--second-opinion",
            help="Also evaluate a sample with this engine and report differences. Verdicts do not change.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    sample: Annotated[
        float | None,
        typer.Option(
            "--second-opinion-sample",
            min=0,
            max=100,
            metavar="PERCENT",
            help="Share of the objects in the sample, chosen by their identity. Default: 1.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    @contextmanager
    def comparison(self) -> Iterator[EngineComparison | None]:
        """The comparison for a scan, or None without an engine; its process ends with the block."""
        if self.engine is None:
            yield None
            return
        from importlib.metadata import version

        from scanner.opinion.comparison import EngineComparison
        from scanner.opinion.process import Process

        engine = f"{self.engine.value} {version(self.engine.value)}"
        with Process() as process:
            yield EngineComparison(process, engine, PERCENT if self.sample is None else self.sample)
