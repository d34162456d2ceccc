"""`assay db upgrade`."""

from __future__ import annotations

import sys
from shlex import quote
from typing import Annotated

import typer

from scanner.cli.database import DbOption, address

application = typer.Typer(help="Manage the database.", no_args_is_help=True, rich_markup_mode=None)


@application.callback()
def _root() -> None:
    """Manage the database."""


@application.command()
def upgrade(
    db: DbOption = "",
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="Make no copy of a SQLite file before the upgrade.")
    ] = False,
) -> None:
    """Upgrade the database to this version of Assay. A SQLite file is copied first; copy PostgreSQL yourself with pg_dump."""
    from scanner.store import upgrade as run
    from scanner.store.address import address_of

    url = address(db)
    upgraded = run(url, backup=not no_backup)
    place = address_of(url)
    result = "was upgraded to" if upgraded else "already has"
    sys.stderr.write(f"The database {place.shown} {result} the schema of this version.\n")
    if upgraded.backup:
        sys.stderr.write(
            f"A copy from before the upgrade is {upgraded.backup}. "
            "To go back: install the earlier version of Assay, end all scans, and run: "
            f"rm -f {quote(f'{place.shown}-wal')} {quote(f'{place.shown}-shm')} && "
            f"mv {quote(str(upgraded.backup))} {quote(place.shown)}\n"
        )
    elif upgraded.migrated and not place.path:
        sys.stderr.write("To go back: install the earlier version of Assay, and restore the dump of pg_dump.\n")
