"""`assay version`."""

from __future__ import annotations

import typer

from scanner import __version__
from scanner.cli.output import standard_output


def command() -> None:
    """Print the version."""
    with standard_output() as out:
        out.write(f"assay {__version__}\n")


def flag(show: bool) -> None:
    """`assay --version`."""
    if show:
        command()
        raise typer.Exit
