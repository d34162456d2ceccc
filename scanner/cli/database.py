"""Which database a command works on: the flag, then `ASSAY_DB`, then a file in the user's data directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.store import SqlReader, SqlStore

DbOption = Annotated[
    str,
    typer.Option(
        "--db",
        envvar="ASSAY_DB",
        metavar="URL",
        help="sqlite:///PATH, a plain path, or postgresql://USER@HOST/NAME. Default: a SQLite file in the user's data directory.",
        show_default=False,
        show_envvar=True,
    ),
]
ClusterNameOption = Annotated[
    str,
    typer.Option(
        "--cluster-name",
        metavar="NAME",
        help="Which cluster's scans `last` means, where the database knows several.",
        show_default=False,
    ),
]


def address(url: str) -> str:
    """The database to use."""
    if url:
        return url
    from platformdirs import user_data_path

    return str(user_data_path("assay", appauthor=False) / "assay.db")


def opened(url: str) -> SqlStore:
    """The store to write to, made if need be. Raises StoreError when it cannot be opened."""
    from scanner.store import open_store

    return open_store(address(url))


def existing(url: str) -> SqlReader:
    """The store to read from. Raises UsageError rather than making the file that a misspelt path names."""
    from scanner.store import open_reader
    from scanner.store.address import address_of

    path = address_of(address(url)).path
    if path is not None and not path.exists():
        raise UsageError(f"There is no database {path} yet: `assay scan` makes it, or name another one with --db.")
    return open_reader(address(url))
