"""Prints texts, lists, tables and recommended commands on a console. Every text is made safe: control characters become escapes.

Lines end without spaces, and a table that is too wide becomes a line for each row. Escape sequences are only for terminals, and
never for a dumb one or with NO_COLOR (https://no-color.org).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TextIO, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

from scanner.report.text.safe_text import visible
from scanner.report.text.screen import Color, Screen, width_of


def console_of(out: TextIO, environ: Mapping[str, str], color: Color) -> Console:
    """A console on a stream; text is never markup."""
    coloured = has_colours(out, environ, color)
    return Console(
        file=out,
        width=width_of(out, environ),
        color_system="standard" if coloured else None,
        force_terminal=coloured,
        no_color=not coloured,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ=environ,
    )


def has_colours(out: TextIO, environ: Mapping[str, str], color: Color) -> bool:
    """Return whether a stream gets escape sequences."""
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    return out.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


ROWS: Final = 25
"""The most rows of a list in a summary."""
LONGEST_CELL: Final = 120
_LONGEST: Final = 300
_NARROW: Final = 12
_SHORT: Final = 9
_ROOM: Final = 16
_GAP: Final = 2

_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|d|h|min|s)(?!\w))|(?<=\bdocument) (?=\d)")
"""The space between a number and its unit, and between the noun and the number of a document in a file."""
_JOINT: Final = "\ue000"
"""Stands for a space at which no line may end: `visible` leaves it in no text, and rich ends lines at no-break spaces."""
_BREAK: Final = "\ue001 "
"""Stands for a place inside a word at which a line may end: `visible` leaves it in no text."""
_BREAKS: Final = "./,(:"
"""The characters after which a word that is wider than a line is broken, such as the path of a field."""

Style: TypeAlias = Callable[[str], str]
"""The style of a cell by its text, empty for none."""


def text_of(console: Console, text: str, longest: int = _LONGEST, style: str = "") -> Text:
    """Text that is safe to print, cut to the length that a summary has room for."""
    shown = visible(_cut(text, longest))
    return Text(_make_encodable(console, shown), style)


def _cut(text: str, longest: int = LONGEST_CELL) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _make_encodable(console: Console, text: str) -> str:
    return text.encode(console.encoding, "backslashreplace").decode(console.encoding)


def print_line(console: Console, sentence: str, style: str = "") -> None:
    """Print a sentence, wrapped where the console has a width."""
    print_hanging(console, "", text_of(console, sentence, style=style))


def print_hanging(console: Console, begin: str, text: Text, hang: int = 0) -> None:
    """Print text after `begin`; the lines after the first are indented by its width and `hang` columns.

    No line ends between a number and its noun, and a word that is wider than a line is broken after a part of it.
    """
    indent = " " * (cell_len(begin) + hang)
    joined = text.copy()
    joined.plain = _UNIT.sub(_JOINT, text.plain)
    if not text.spans:
        joined.plain = _allow_breaks(joined.plain, max(console.width - cell_len(begin) - hang, _NARROW))
    for number, wrapped in enumerate(_wrap(console, joined, cell_len(begin), hang)):
        wrapped.plain = wrapped.plain.replace(_JOINT, " ").replace(_BREAK, "").replace(_BREAK[0], "")
        wrapped.rstrip()
        print_unwrapped(console, Text.assemble(indent if number else begin, wrapped))


def _allow_breaks(text: str, room: int) -> str:
    """A text whose words have places to break where they are wider than `room`."""
    return " ".join(_BREAK.join(_split_word(word, room)) for word in text.split(" "))


def _split_word(word: str, room: int) -> Iterator[str]:
    while len(word) > room:
        end = max(word.rfind(each, 0, room - 1) for each in _BREAKS) + 1
        if not end:
            break
        yield word[:end]
        word = word[end:]
    yield word


def _wrap(console: Console, text: Text, begin: int, hang: int) -> list[Text]:
    """The lines of a text: the first one after `begin` columns, the others after `hang` more."""
    room = max(console.width - begin, _NARROW)
    lines = list(text.wrap(console, room))
    if len(lines) < 2 or not hang:  # noqa: PLR2004 - the first line and another one
        return lines
    rest = text.plain[len(lines[0].plain) :].lstrip(" ")
    return [lines[0], *text[-len(rest) :].wrap(console, max(room - hang, _NARROW))]


def print_parts(
    console: Console, begin: Text, texts: Sequence[str], between: str = " · ", *, longest: int = _LONGEST
) -> None:
    """Print texts after `begin`, as many on each line as it has room for; only one that is wider than a line is broken.

    The lines after the first are indented by the length of `begin`.
    """
    indent = " " * max(begin.cell_len, 1)
    lead, current = "", begin
    for number, text in enumerate(texts):
        joint = _make_encodable(console, between) if number else " " if begin.plain else ""
        part = text_of(console, text, longest)
        if current.plain and len(lead) + current.cell_len + len(joint) + part.cell_len > console.width:
            print_hanging(console, lead, current)
            lead, current, joint = f"{indent} ", Text(), ""
        current = Text.assemble(current, joint, part)
    print_hanging(console, lead, current)


def print_unwrapped(console: Console, text: Text) -> None:
    """Print a line that is never wrapped."""
    console.print(text, no_wrap=True, overflow="ignore", crop=False)


def print_items(console: Console, texts: Sequence[str]) -> None:
    """Print a list, the first `ROWS` of its items."""
    for text in texts[:ROWS]:
        print_hanging(console, "  - ", text_of(console, text))
    if len(texts) > ROWS:
        print_line(console, f"  {ROWS} of {len(texts):,} shown")


def print_cut_note(console: Console, total: int, noun: str) -> None:
    """Print how many rows of a table are missing."""
    if total > ROWS:
        print_line(console, f"{ROWS} of {total:,} {noun} shown; the HTML and JSON reports show all")


def print_table(
    console: Console,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[str],
    styles: Mapping[str, Style] | None = None,
    gap: bool = True,
) -> None:
    """Print rows as a table, or each as a line where a table is too wide, after an empty line unless `gap` is false; nothing without rows."""
    if not rows:
        return
    if gap:
        console.print()
    rows = [[visible(_cut(cell)) for cell in row] for row in rows]
    if fits(console, heads, rows, numbers):
        print_table_lines(console, _table(console, heads, rows, numbers, styles or {}))
        return
    for row in rows:
        flat = (f"{' '.join(head.split())}: {cell}" for head, cell in zip(heads, row, strict=True) if cell)
        print_line(console, "; ".join(flat))


def fits(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str]) -> bool:
    """Return whether a table fits without breaking its numbers and short words."""
    widths = (
        _least_width(head, [row[column] for row in rows], number=head in numbers) for column, head in enumerate(heads)
    )
    return sum(widths) + _GAP * (len(heads) - 1) <= console.width


def _least_width(head: str, cells: Sequence[str], *, number: bool) -> int:
    longest = max(map(cell_len, cells))
    heading = max(map(cell_len, head.split("\n")))
    return max(heading, longest if number or longest <= _SHORT else min(longest, _ROOM))


def print_table_lines(console: Console, table: Table) -> None:
    """Print a table without spaces at the ends of lines."""
    options: ConsoleOptions = console.options
    for segments in console.render_lines(table, options, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        text.rstrip()
        print_unwrapped(console, text)


def _table(
    console: Console,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[str],
    styles: Mapping[str, Style],
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for column, head in enumerate(heads):
        number = head in numbers
        longest = max(cell_len(row[column]) for row in rows)
        table.add_column(
            head,
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number or longest <= _SHORT,
            min_width=_least_width(head, [row[column] for row in rows], number=number),
        )
    for row in rows:
        table.add_row(
            *(
                text_of(console, cell, style=styles[head](cell) if head in styles else "")
                for head, cell in zip(heads, row, strict=True)
            )
        )
    return table


# Prints the commands that the program recommends. They work as printed: each names the program, the database and what
# it is about.

_CONTINUED: Final = " \\"
_PIPE: Final = "|"


class Command(NamedTuple):
    """A command line, and what it does, as a clause."""

    text: str
    purpose: str


def command_line(screen: Screen, arguments: str, *, rules: bool = False) -> str:
    """A command with the options that it needs; commands that print findings have those of `rules`, too."""
    parts = (screen.command, arguments, screen.rules if rules else "", screen.options)
    return " ".join(part for part in parts if part)


def print_commands(console: Console, commands: Sequence[Command], screen: Screen) -> None:
    """Print what to do next; nothing without commands."""
    if not commands:
        return
    longest = max(len(command.text) for command in commands)
    console.print()
    print_line(console, "Next:", style="bold")
    for command in commands:
        beside = f"  {command.text.ljust(longest)}   # {command.purpose}"
        if len(beside) <= console.width:
            print_unwrapped(console, Text(beside))
        else:
            print_line(console, f"  # {command.purpose}")
            _print_continued(console, command.text)
    if screen.note:
        print_line(console, screen.note)


def _print_continued(console: Console, command: str) -> None:
    """Print a command, which a shell reads across the ends of lines; only an argument that is wider than a line is wider."""
    current = " "
    for argument in shlex.split(command):
        quoted = argument if argument == _PIPE else shlex.quote(argument)
        if len(current) + len(quoted) + len(_CONTINUED) + 1 > console.width and current.strip():
            print_unwrapped(console, Text(f"{current}{_CONTINUED}"))
            current = "   "
        current = f"{current} {quoted}"
    print_unwrapped(console, Text(current))
