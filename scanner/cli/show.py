"""Plain columns for people and pipes: hostile names cannot steer a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer

from scanner.report.words import visible


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a heading, in columns as wide as their widest cell."""
    lines = [tuple(head), *(tuple(visible(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
