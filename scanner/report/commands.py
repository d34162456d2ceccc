"""Prints the commands that the program recommends. They work as printed: each names the program, the database and what it is about."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from scanner.report.printing import line, one_line
from scanner.report.screen import Screen

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
    line(console, "Next:", style="bold")
    for command in commands:
        beside = f"  {command.text.ljust(longest)}   # {command.purpose}"
        if len(beside) <= console.width:
            one_line(console, Text(beside))
        else:
            line(console, f"  # {command.purpose}")
            _continued(console, command.text)
    if screen.note:
        line(console, screen.note)


def _continued(console: Console, command: str) -> None:
    """Print a command, which a shell reads across the ends of lines; only an argument that is wider than a line is wider."""
    current = " "
    for argument in shlex.split(command):
        quoted = argument if argument == _PIPE else shlex.quote(argument)
        if len(current) + len(quoted) + len(_CONTINUED) + 1 > console.width and current.strip():
            one_line(console, Text(f"{current}{_CONTINUED}"))
            current = "   "
        current = f"{current} {quoted}"
    one_line(console, Text(current))
