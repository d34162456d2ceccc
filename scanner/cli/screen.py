"""The flags of the summary on a terminal, and the options that its recommended commands need to work as printed."""

from __future__ import annotations

import shlex
from typing import Annotated, Final

import typer

from scanner.report.screen import Color, Screen

ColorOption = Annotated[
    Color,
    typer.Option(
        "--color",
        help="Colours in the table: on a terminal without NO_COLOR (auto), always or never.",
    ),
]
WideOption = Annotated[
    bool,
    typer.Option(
        "--wide", help="In the table, also print namespaces, owners, controls, policy health and further columns."
    ),
]
_TYPED: Final = "COMMANDLINE"


def screen_of(context: typer.Context, db: str, *, wide: bool, color: Color, pages: bool = False) -> Screen:
    """The screen of a command: later commands need the database and the configuration that the user typed.

    A database URL with a password is not printed.
    """
    from scanner.store.address import address_of

    options: list[str] = []
    note = ""
    if _is_typed(context, "db"):
        secret = db != address_of(db).masked(db)
        note = "Set ASSAY_DB to the value of --db first: a password is not printed." if secret else ""
        options = [] if secret else ["--db", db]
    if _is_typed(context, "config"):
        options += ["--config", str(context.params["config"])]
    command = context.find_root().info_name or "assay"
    return Screen(
        wide=wide, color=color, command=command.replace("-", " "), options=shlex.join(options), note=note, pages=pages
    )


def _is_typed(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == _TYPED
