"""The copy of a SQLite database that an upgrade makes first."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from scanner.errors import StoreError


def back_up(path: Path, version: str) -> Path:
    """Copy a database beside itself, before an upgrade to a version; return the path of the copy.

    The copy is its owner's alone, and never replaces another file. Raises StoreError, and then leaves no copy.
    """
    try:
        copy = _new_file(path, version)
    except OSError as error:
        raise _failed(path, error.strerror or str(error)) from error
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
        _flush(copy)
    except BaseException as error:
        with suppress(OSError):
            copy.unlink()
        if isinstance(error, sqlite3.Error | OSError):
            raise _failed(path, str(error)) from error
        raise
    return copy


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
