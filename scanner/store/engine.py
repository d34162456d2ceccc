"""Connections: short transactions that never corrupt, block for ever or start reading before they know they will write.

SQLite: write-ahead logging lets reports be read while a scan writes; a transaction that will write says so at once
(BEGIN IMMEDIATE), because one that turns from reading to writing cannot wait for another writer. PostgreSQL: history
is written under one advisory lock, so both databases know a single writer of history.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, func, select

from scanner.errors import StoreError
from scanner.store.address import Address
from scanner.store.trouble import told

_WAIT = 60
"""Seconds that a writer waits for another one."""

_HISTORY_LOCK = 0x617373617931
_PRAGMAS = (
    f"PRAGMA busy_timeout = {_WAIT * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA cache_size = -16384",
)


def engine_for(address: Address) -> Engine:
    """An engine that has not connected yet. Raises StoreError when the driver is missing."""
    with told(address):
        if address.path is None:
            engine = create_engine(address.url, hide_parameters=True, pool_pre_ping=True)
            engine.dialect.use_insertmanyvalues_wo_returning = True
            return engine
        arguments = {"timeout": _WAIT, "isolation_level": None}
        engine = create_engine(address.url, hide_parameters=True, connect_args=arguments)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def create_file(path: Path) -> None:
    """Make the file of a SQLite database and its folder, for its owner alone. Raises StoreError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(
            f"The database {path} cannot be created or written ({error.strerror}). "
            "Check the permissions of its folder, or name another file with --db."
        ) from error


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes."""
    with engine.connect().execution_options(assay_writes=True) as connection, connection.begin():
        yield connection


@contextmanager
def writing_history(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes what other scans write too; there is only one at a time."""
    with writing(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_HISTORY_LOCK)))
        yield connection


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("assay_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
