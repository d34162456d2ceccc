"""`assay version`."""

from __future__ import annotations

import typer

from scanner import __version__


def command() -> None:
    """Print the version."""
    typer.echo(f"assay {__version__}")


def flag(show: bool) -> None:
    """`assay --version`."""
    if show:
        command()
        raise typer.Exit
