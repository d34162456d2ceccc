"""Copies of a SQLite database: the one that an upgrade makes first, and those of `assay db backup`."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from scanner.errors import StoreError, UsageError


def back_up(path: Path, version: str) -> Path:
    """Copy a database beside itself, before an upgrade to a version; return the path of the copy.

    The copy is its owner's alone, and never replaces another file. Raises StoreError, and then leaves no copy.
    """
    try:
        copy = _new_file(path, version)
        _copy(path, copy)
    except (sqlite3.Error, OSError) as error:
        raise _failed(path, _why(error)) from error
    return copy


def copy_to(path: Path, copy: Path) -> None:
    """Copy a database to a new file while scans may write to it; the copy is its owner's alone, and is checked.

    Raises UsageError if the file exists, StoreError if the copy cannot be made; then no copy is left.
    """
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _copy(path, copy)
    except FileExistsError:
        raise UsageError(f"{copy} exists, and a backup replaces no file. Name another file.") from None
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"The database {path} cannot be copied to {copy} ({_why(error)}). "
            "Check that the folder exists, its permissions and its free space, or name another place."
        ) from error


def _copy(path: Path, copy: Path) -> None:
    """Copy a database into an empty file, which is removed if the copy fails."""
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            # In one step: with a write-ahead log scans can write meanwhile, and each write would restart a copy in portions.
            source.backup(target)
            _reject_damaged(target)
        _flush(copy)
    except BaseException:
        with suppress(OSError):
            copy.unlink()
        raise


def _reject_damaged(copy: sqlite3.Connection) -> None:
    [(result,)] = copy.execute("PRAGMA quick_check(1)").fetchall()
    if result != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged: {result}")


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _new_file(path: Path, version: str) -> Path:
    """An empty file that did not exist before."""
    for number in count(1):
        copy = path.with_name(f"{path.name}.before-{version}{f'-{number}' if number > 1 else ''}.bak")
        with suppress(FileExistsError):
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            return copy
    raise AssertionError("unreachable")


def _flush(path: Path) -> None:
    """Wait until the file is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed(path: Path, why: str) -> StoreError:
    return StoreError(
        f"The database {path} was not upgraded, and nothing has changed: it cannot be backed up first ({why}). "
        "Free some space, check the permissions of its folder, or back it up yourself and pass --no-backup."
    )
