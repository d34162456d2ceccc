"""`assay db upgrade`."""

from __future__ import annotations

import typer

from scanner.cli.database import DbOption, address

application = typer.Typer(help="Look after the database.", no_args_is_help=True, rich_markup_mode=None)


@application.callback()
def _root() -> None:
    """Look after the database."""


@application.command()
def upgrade(db: DbOption = "") -> None:
    """Bring the database to the schema of this version; nothing recorded is lost."""
    from scanner.store import upgrade as run  # noqa: PLC0415 - nothing is imported before it is needed

    run(address(db))
    typer.echo("The database has the schema of this version.", err=True)
