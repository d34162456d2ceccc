"""Another engine's opinion: which engine, and on how many of the objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.opinion.comparison import Comparison

_PANEL = "Second opinion"
PERCENT = 1.0
"""The sample, unless the user says otherwise."""


class SecondEngine(StrEnum):
    """Who can be asked."""

    CEL_PYTHON = "cel-python"


SecondOpinionOption = Annotated[
    SecondEngine | None,
    typer.Option(
        "--second-opinion",
        help="Evaluate a sample with this engine too, and report where it differs. Verdicts do not change.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SampleOption = Annotated[
    float | None,
    typer.Option(
        "--second-opinion-sample",
        min=0,
        max=100,
        metavar="PERCENT",
        help="Objects to ask it about, chosen by their identity. Default: 1.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]


@contextmanager
def second_opinion(engine: SecondEngine | None, percent: float | None) -> Iterator[Comparison | None]:
    """The comparison that a scan is to make, if any; its process ends with it. Raises UsageError."""
    if engine is None and percent is not None:
        raise UsageError("--second-opinion-sample is the sample of a second opinion: add --second-opinion cel-python")
    if engine is None:
        yield None
        return
    from importlib.metadata import version

    from scanner.opinion.comparison import Comparison
    from scanner.opinion.process import Process

    with Process() as process:
        yield Comparison(process, f"{engine.value} {version(engine.value)}", PERCENT if percent is None else percent)
