"""The flags that choose a database and a cluster in it, and the stores behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.completion import clusters
from scanner.config.current import get_database_address
from scanner.errors import NoScans

if TYPE_CHECKING:
    from scanner.store import SqlReader, SqlStore

DbOption = Annotated[
    str,
    typer.Option(
        "--db",
        envvar="ASSAY_DB",
        metavar="URL",
        help="Database: a path, sqlite:PATH or postgresql://USER@HOST/NAME. Default: a SQLite file in the user's data directory.",
        show_default=False,
        show_envvar=True,
    ),
]
ClusterNameOption = Annotated[
    str,
    typer.Option(
        "--cluster-name",
        metavar="NAME",
        help="Name, UID or path of the cluster whose scans `last` refers to, if the database has scans of several.",
        show_default=False,
        autocompletion=clusters,
    ),
]


def store_at(url: str) -> SqlStore:
    """The store to write to; a missing database is created. Raises StoreError when it cannot be opened."""
    from scanner.store import open_store

    return open_store(get_database_address(url))


def reader_at(url: str) -> SqlReader:
    """The store to read from. Raises NoScans when the file does not exist."""
    from scanner.store import open_reader
    from scanner.store.database.address import address_of

    path = address_of(get_database_address(url)).path
    if path is not None and not path.exists():
        raise NoScans(
            f"The database {path} does not exist. Create it with `assay scan`, or name another one with --db."
        )
    return open_reader(get_database_address(url))
