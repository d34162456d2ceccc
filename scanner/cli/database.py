"""Which database a command works on: the flag, then `ASSAY_DB`, then a file in the user's data directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scanner.store import SqlStore

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


def address(url: str) -> str:
    """The database to use."""
    if url:
        return url
    from platformdirs import user_data_path  # noqa: PLC0415 - nothing is imported before it is needed

    return str(user_data_path("assay", appauthor=False) / "assay.db")


def opened(url: str) -> SqlStore:
    """The store. Raises StoreError when it cannot be opened."""
    from scanner.store import open_store  # noqa: PLC0415 - nothing is imported before it is needed

    return open_store(address(url))
