"""The flags of the summary on a terminal, and the options that its recommended commands need to work as printed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.terminal.program import find_program
from scanner.report.text.screen import Color, Screen

_TYPED: Final = "COMMANDLINE"


@dataclass(frozen=True, slots=True)
class ScreenFlags(FlagGroup):
    """The form of the summary."""

    wide: Annotated[
        bool,
        typer.Option(
            "--wide", help="In the table, also print namespaces, owners, controls, policy health and further columns."
        ),
    ] = False
    color: Annotated[
        Color,
        typer.Option(
            "--color",
            help="Colours in the table: on a terminal without NO_COLOR (auto), always or never.",
        ),
    ] = Color.AUTO


NO_SCREEN_FLAGS: Final = ScreenFlags()


def make_screen(
    context: typer.Context,
    db: str,
    flags: ScreenFlags = NO_SCREEN_FLAGS,
    *,
    pages: bool = False,
    rights: str = "",
) -> Screen:
    """The screen of a command: later commands need the database, the configuration, controls and waivers that the user typed.

    A database URL with a password is not printed. `rights` are the arguments of the command that names missing rights.
    """
    named = _list_database_flags(context, db)
    secret = is_typed(context, "db") and not named
    return Screen(
        wide=flags.wide,
        color=flags.color,
        command=find_program(),
        options=shlex.join([*named, *_list_typed(context, "config")]),
        rules=shlex.join([*_list_typed(context, "controls"), *_list_typed(context, "waivers")]),
        note="Set ASSAY_DB to the value of --db first: a password is not printed." if secret else "",
        pages=pages,
        rights=rights,
    )


def _list_database_flags(context: typer.Context, db: str) -> list[str]:
    """`--db` and its value if the user typed it; nothing for a URL with a password."""
    from scanner.store.database.address import address_of

    if not is_typed(context, "db") or not address_of(db).is_shown_whole:
        return []
    return ["--db", db]


def _list_typed(context: typer.Context, parameter: str) -> list[str]:
    """The flag of a parameter and its value, for each time that the user typed it."""
    if not is_typed(context, parameter):
        return []
    value = context.params[parameter]
    values = value if isinstance(value, list | tuple) else [value]
    flag = f"--{parameter.replace('_', '-')}"
    return [part for each in values for part in (flag, str(each))]


def is_typed(context: typer.Context, parameter: str) -> bool:
    """Return whether the user typed a parameter on the command line."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == _TYPED
