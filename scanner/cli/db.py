"""`assay db upgrade`."""

from __future__ import annotations

import sys

import typer

from scanner.cli.database import DbOption, address

application = typer.Typer(help="Look after the database.", no_args_is_help=True, rich_markup_mode=None)


@application.callback()
def _root() -> None:
    """Look after the database."""


@application.command()
def upgrade(db: DbOption = "") -> None:
    """Bring the database to the schema of this version; nothing recorded is lost."""
    from scanner.store import upgrade as run
    from scanner.store.address import address_of

    url = address(db)
    changed = run(url)
    shown = address_of(url).shown
    done = "has now" if changed else "has already"
    sys.stderr.write(f"The database {shown} {done} the schema of this version.\n")
