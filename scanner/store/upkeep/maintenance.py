"""Backups and vacuums of a database."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine, text

from scanner.errors import StoreError, UsageError
from scanner.store.database.engine import (
    make_autocommit_engine,
    make_engine,
    merge_log,
    try_lock_texts,
    writing_shared,
)
from scanner.store.database.sqlite_file import copy_to, reject_cut_file
from scanner.store.database.store_errors import as_store_error
from scanner.store.rows import search_index
from scanner.store.rows.search_index import rebuild_uses
from scanner.store.rows.sizes import read_total_bytes
from scanner.store.rows.tables import METADATA
from scanner.store.upkeep.retention import find_database
from scanner.store.upkeep.schema import check_schema


class VacuumResult(NamedTuple):
    """The bytes of a database before and after a vacuum."""

    before: int
    after: int


def backup(url: str, copy: Path) -> None:
    """Copy a SQLite database of any version to a new file.

    Raises UsageError if the file exists or the database is none of SQLite, StoreError if the copy cannot be made.
    """
    address = find_database(url)
    if address.path is None:
        raise UsageError(f"The database {address.text} is none of SQLite. Back it up with pg_dump.")
    reject_cut_file(address)
    copy_to(address.path, copy)


def vacuum(url: str) -> VacuumResult:
    """Give the free space of a database back to the disk; PostgreSQL keeps it for later rows, and gets new statistics.

    Raises UsageError if the database is missing or empty, StoreError when it cannot be used.
    """
    address = find_database(url)
    # A vacuum cannot be part of a transaction.
    engine, alone = make_engine(address), make_autocommit_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            before = _measure(engine)
            with alone.connect() as connection:
                for statement in _list_statements(connection.dialect.name):
                    connection.execute(text(statement))
            merge_log(engine)
            return VacuumResult(before, _measure(engine))
    finally:
        engine.dispose()
        alone.dispose()


def reindex(url: str) -> None:
    """Make the index of the search anew, in one transaction.

    Raises UsageError if the database is missing or empty, StoreError when it cannot be used, and while a scan begins or ends.
    """
    address = find_database(url)
    engine = make_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            with writing_shared(engine) as connection:
                if not try_lock_texts(connection):
                    raise StoreError(
                        "A scan begins or ends in this database. Run `assay db reindex` again in a minute."
                    )
                search_index.rebuild(connection)
                rebuild_uses(connection)
            merge_log(engine)
    finally:
        engine.dispose()


def _measure(engine: Engine) -> int:
    with engine.connect() as connection:
        return read_total_bytes(connection)


def _list_statements(dialect: str) -> list[str]:
    if dialect == "sqlite":
        return [search_index.OPTIMIZE, "VACUUM"]
    return [f"VACUUM (ANALYZE) {name}" for name in sorted((*METADATA.tables, search_index.NAME))]
