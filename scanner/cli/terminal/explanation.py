"""The parts of an explanation: sentences, lines of programs, tables, and commands to run next, which are printed last."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple, TypeAlias

from scanner.cli.terminal import stdout
from scanner.cli.terminal.stdout import Code, standard_output
from scanner.report.text.printing import Command, console_of, print_commands
from scanner.report.text.screen import Screen


class Table(NamedTuple):
    """Rows under a heading."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


Part: TypeAlias = str | Code | Table | Command


def show(parts: Iterable[Part], screen: Screen) -> None:
    """Print an explanation, and after it what to do next."""
    commands: list[Command] = []
    for _, group in groupby(_collect_commands(parts, commands), lambda part: isinstance(part, Table)):
        own = iter(group)
        for part in own:
            if isinstance(part, Table):
                stdout.table(*part)
            else:
                stdout.sentences(chain((part,), (each for each in own if not isinstance(each, Table))))
    with standard_output() as out:
        print_commands(console_of(out, os.environ, screen.color), commands, screen)


def _collect_commands(parts: Iterable[Part], commands: list[Command]) -> Iterator[str | Code | Table]:
    """The parts to print now; the commands are added to a list."""
    for part in parts:
        if isinstance(part, Command):
            commands.append(part)
        else:
            yield part
