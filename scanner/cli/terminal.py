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
    widths = [max(_width(line[column]) for line in lines) for column in range(len(head))]
    text("  ".join(map(_padded, line, widths)).rstrip() for line in lines)


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - _width(cell))


def _width(cell: str) -> int:
    """The number of columns of a terminal that a text takes; a wide character takes two."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)
