"""The flags that choose a database and a cluster in it, and the stores behind them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.completion import complete_clusters
from scanner.cli.flags.flag_group import FlagGroup
from scanner.config.current import get_database_address
from scanner.errors import NoScans

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.model.scans.scan import ClusterIdentity
    from scanner.store import SqlReader, SqlStore
    from scanner.store.database.waiting import DatabaseWait

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
        autocompletion=complete_clusters,
    ),
]


DatabaseTimeoutOption = Annotated[
    str,
    typer.Option(
        "--database-timeout",
        metavar="DURATION",
        help="Time to wait for a PostgreSQL that does not answer, such as 10m; 0 to end at once. Errors that a wait cannot mend, such as a wrong password, end at once.",
    ),
]


@dataclass(frozen=True, slots=True)
class HistoryFlags(FlagGroup):
    """The database that a scan writes to, and the cluster whose history the scan continues."""

    db: DbOption = ""
    database_timeout: DatabaseTimeoutOption = "0"
    cluster_name: Annotated[
        str,
        typer.Option(
            "--cluster-name",
            metavar="NAME",
            help="Name of the cluster: scans with the same name share one history; `assay db rename-cluster` carries a history over to another name. Default: tell clusters apart by the UID of kube-system, folders by their path.",
            show_default=False,
            autocompletion=complete_clusters,
        ),
    ] = ""
    restored_cluster: Annotated[
        bool,
        typer.Option(
            "--restored-cluster",
            help="Continue the history of a cluster that was restored from a backup; with --cluster-name, also of one that was built anew.",
        ),
    ] = False
    accept_damage: Annotated[
        bool,
        typer.Option(
            "--accept-damage",
            help="Go on with the rows of a damaged database as they are. The report of the scan names them.",
        ),
    ] = False

    def register(self, store: SqlStore, cluster: ClusterIdentity) -> None:
        """Find or begin the history of the cluster, and print what becomes of earlier scans, once. Raises UsageError."""
        from scanner.cli.terminal.stdout import visible

        if note := store.register(cluster, restored=self.restored_cluster):
            sys.stderr.write(f"assay: {visible(note)}\n")


def wait_for_database(duration: str, stopped: Callable[[], bool] = lambda: False) -> DatabaseWait:
    """The time to wait for the database, which prints on stderr that it waits. Raises UsageError for an invalid duration."""
    from scanner.cli.terminal.stdout import visible
    from scanner.config.values import parse_seconds
    from scanner.store.database.waiting import DatabaseWait

    def report(sentence: str) -> None:
        sys.stderr.write(f"assay: {visible(sentence)}\n")

    return DatabaseWait(parse_seconds(duration, "--database-timeout") or 0, report=report, stopped=stopped)


def open_store_at(url: str, wait: DatabaseWait) -> SqlStore:
    """The store to write to; a missing database is created. Raises StoreError when it cannot be opened."""
    from scanner.store import open_store

    return open_store(get_database_address(url), wait=wait)


def open_reader_at(url: str) -> SqlReader:
    """The store to read from. Raises NoScans when the file does not exist."""
    from scanner.store import open_reader
    from scanner.store.database.address import address_of

    path = address_of(get_database_address(url)).path
    if path is not None and not path.exists():
        raise NoScans(
            f"The database {path} does not exist. Create it with `assay scan`, or name another one with --db."
        )
    return open_reader(get_database_address(url))
