"""Plain lines and columns; control characters in names are printed as escapes, so that they cannot steer a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scanner.cli.output import standard_output


def visible(line: str, *, lines: bool = False) -> str:
    """The text with control characters as escapes; `lines` keeps line ends and tabs. See `scanner.report.words`."""
    from scanner.report import words

    return words.visible(line, lines=lines)


def text(lines: Iterable[str]) -> None:
    """Print lines."""
    with standard_output() as out:
        for line in lines:
            out.write(f"{visible(line)}\n")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a heading, in columns as wide as their widest cell."""
    lines = [tuple(head), *(tuple(visible(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
