"""Standard output: it carries the requested document and nothing else, and a reader may close it early.

Lines, sentences and tables keep to the width of a terminal, and are never wrapped elsewhere. Control characters in names are printed
as escapes, so that they cannot steer a terminal.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

import typer

from scanner.errors import AssayError
from scanner.report.text.screen import Color

if TYPE_CHECKING:
    from rich.console import Console


class OutputForm(StrEnum):
    """The forms of a document on standard output, for commands that print no report."""

    TABLE = "table"
    JSON = "json"


FormOption = Annotated[OutputForm, typer.Option("-o", "--output", help="Output format.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress on stderr.")]


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output for writing. A reader that stops early, as in `assay report | head`, is no error.

    Raises AssayError when writing fails, as on a full disk.
    """
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except KeyboardInterrupt:
        # A reader that stopped reading would block the flush at the end of the process.
        _discard(sys.stdout)
        raise
    except SystemExit as end:
        # rich turns a broken pipe into SystemExit.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise AssayError(f"standard output cannot be written ({error.strerror})") from error


def flush_streams() -> None:
    """Flush both streams. A failure here must not replace the exit code, as Python's own flush would."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _discard(stream)


def _discard(stream: TextIO) -> None:
    """Discard the buffered text, so that the flush at the end of the process does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


_GAP: Final = 2
_LEAST_LAST: Final = 20
"""The least width of a last column whose cells are wrapped."""
_EMPTY: Final = "-"
_NUMBER: Final = re.compile(r"-|[\d,.]+(?:/[\d,.]+| %)?")
"""A number, a part of another one, a percentage, or what stands for none."""


class Code(NamedTuple):
    """A line that is never wrapped: a wrapped line of a program is another program."""

    line: str


def visible(line: str, *, lines: bool = False) -> str:
    """The text with control characters as escapes; `lines` keeps line ends and tabs. See `scanner.report.text.safe_text`."""
    from scanner.report.text import safe_text

    return safe_text.visible(line, lines=lines)


def text(lines: Iterable[str]) -> None:
    """Print lines as they are, such as those of a document."""
    with standard_output() as out:
        for line in lines:
            out.write(f"{visible(line)}\n")


def sentences(lines: Iterable[str | Code], *, hang: int = 0) -> None:
    """Print lines, wrapped where the terminal is narrower; what is wrapped begins `hang` columns after the begin of the line."""
    console = _find_console()
    with standard_output() as out:
        for line in lines:
            if isinstance(line, Code):
                out.write(f"{visible(line.line)}\n")
            elif console is None or not line.strip():
                out.write(f"{visible(line)}\n")
            else:
                _print_wrapped(console, visible(line), hang)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a heading, in columns as wide as their widest cell.

    Where a terminal is narrower, the cells of the last column are wrapped; where that is not enough, each row is a list.
    """
    lines = [tuple(head), *(tuple(visible(cell) for cell in row) for row in rows)]
    widths = [max(_measure(line[column]) for line in lines) for column in range(len(head))]
    console = _find_console()
    begin = sum(widths[:-1]) + _GAP * (len(widths) - 1)
    if console is None or begin + widths[-1] <= console.width:
        text((" " * _GAP).join(map(_pad, line, widths)).rstrip() for line in lines)
    elif begin + _LEAST_LAST <= console.width:
        _print_last_wrapped(console, lines, widths)
    else:
        _print_lists(console, lines)


def _find_console() -> Console | None:
    """The console of a narrow terminal; None where no line is wrapped."""
    from scanner.report.text.screen import ANY_WIDTH, width_of

    if width_of(sys.stdout, os.environ) >= ANY_WIDTH:
        return None
    from scanner.report.text.printing import console_of

    return console_of(sys.stdout, os.environ, Color.NEVER)


def _print_wrapped(console: Console, line: str, hang: int) -> None:
    from scanner.report.text.printing import print_hanging, text_of

    words = line.lstrip(" ")
    print_hanging(console, line[: len(line) - len(words)], text_of(console, words, len(words)), hang)


def _print_last_wrapped(console: Console, lines: Iterable[Sequence[str]], widths: Sequence[int]) -> None:
    from scanner.report.text.printing import print_hanging, text_of

    with standard_output():
        for *cells, last in lines:
            begin = "".join(_pad(cell, width) + " " * _GAP for cell, width in zip(cells, widths, strict=False))
            if last:
                print_hanging(console, text_of(console, begin, len(begin)).plain, text_of(console, last, len(last)))
            else:
                console.file.write(f"{begin.rstrip()}\n")


def _print_lists(console: Console, lines: Iterable[Sequence[str]]) -> None:
    """The cells of a row one after the other, those that do not fit on a line of their own below."""
    from rich.text import Text

    from scanner.report.text.printing import print_parts

    head, *rows = lines
    named = (tuple(map(_name_number, range(len(head)), head, cells)) for cells in rows)
    with standard_output():
        for cells in (head, *named):
            print_parts(console, Text(), [cell or _EMPTY for cell in cells], longest=max(map(len, cells)) + 1)


def _name_number(column: int, head: str, cell: str) -> str:
    """A number after the heading of its column, unless it begins the row: without columns, it would have no noun."""
    return f"{head.lower()} {cell}" if column and _NUMBER.fullmatch(cell) else cell


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - _measure(cell))


def _measure(cell: str) -> int:
    """The number of columns of a terminal that a text takes; a wide character takes two."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)
