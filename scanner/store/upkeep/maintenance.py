"""Backups and vacuums of a database."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

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


class BackupResult(NamedTuple):
    """The copy of a database, and the number of older copies that were deleted."""

    copy: Path
    deleted: int = 0


_COPY: Final = re.compile(r"assay-\d{8}T\d{6}Z\.db")
"""The names of copies in a folder of copies. They sort by their time."""
_UNFINISHED: Final = ".unfinished"


def backup(url: str, copy: Path, *, keep: int | None = None, now: datetime) -> BackupResult:
    """Copy a SQLite database of any version to a new file; with `keep`, into a folder that keeps so many copies.

    A copy gets its name in the folder when it is whole, and older ones are deleted after that: a failure deletes none. Raises
    UsageError if the file exists, the folder does not, or the database is none of SQLite; StoreError if the copy cannot be made.
    """
    address = find_database(url)
    if address.path is None:
        raise UsageError(f"The database {address.text} is none of SQLite. Back it up with pg_dump.")
    reject_cut_file(address)
    if keep is None:
        copy_to(address.path, copy)
        return BackupResult(copy)
    if not copy.is_dir():
        raise UsageError(f"--keep needs a folder, and {copy} is none. Create it, or leave out --keep.")
    return _back_up_into(address.path, copy, keep, now)


def _back_up_into(path: Path, folder: Path, keep: int, now: datetime) -> BackupResult:
    named = folder / f"assay-{now:%Y%m%dT%H%M%SZ}.db"
    if named.exists():
        raise UsageError(f"{named} exists, and a backup replaces no file. Try again in a second.")
    unfinished = folder / f"{named.name}{_UNFINISHED}"
    try:
        for left in folder.glob(f"assay-*{_UNFINISHED}"):
            left.unlink()
        copy_to(path, unfinished)
        unfinished.rename(named)
        copies = sorted(each for each in folder.iterdir() if _COPY.fullmatch(each.name))
        old = copies[:-keep]
        for each in old:
            each.unlink()
    except OSError as error:
        raise StoreError(f"The folder {folder} cannot be changed ({error.strerror}). Check its permissions.") from error
    return BackupResult(named, len(old))


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
