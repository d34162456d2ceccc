"""`assay db upgrade`."""

from __future__ import annotations

import sys

import typer

from scanner.cli.database import DbOption, address

application = typer.Typer(help="Manage the database.", no_args_is_help=True, rich_markup_mode=None)


@application.callback()
def _root() -> None:
    """Manage the database."""


@application.command()
def upgrade(db: DbOption = "") -> None:
    """Upgrade the database to this version of Assay."""
    from scanner.store import upgrade as run
    from scanner.store.address import address_of

    url = address(db)
    changed = run(url)
    shown = address_of(url).shown
    result = "was upgraded to" if changed else "already has"
    sys.stderr.write(f"The database {shown} {result} the schema of this version.\n")
