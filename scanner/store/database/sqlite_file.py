"""The file of a SQLite database: its file system, whether it is whole, and its copies."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

from scanner.errors import DatabaseUnusable, StoreError, UsageError
from scanner.store.database.address import Address

# The file system under a path, as far as SQLite is concerned: its write-ahead log needs memory that processes share.
#
# Upstream: sqlite.org, "Write-Ahead Logging", 1: "WAL does not work over a network filesystem";
# proc_pid_mountinfo(5).

_NETWORK: Final = frozenset(
    {
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.ceph",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
    }
)
_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPES: Final = {r"\040": " ", r"\011": "\t", r"\012": "\n", r"\134": "\\"}


def find_network_file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the network file system on which a path is; empty for a local one, and where `mounts` cannot be read."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    place = path.absolute().resolve()
    kind, depth = "", -1
    for line in lines:
        mounted, _, source = line.partition(" - ")
        point = Path(_unescape(mounted.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = source.split(" ")[0], len(point.parts)
    return kind if kind in _NETWORK else ""


def _unescape(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


# Rejects a SQLite file that is cut short: SQLite reads zeros in place of the bytes that are missing in the last page.
#
# Upstream: "The Database Header" of SQLite's file format, https://www.sqlite.org/fileformat2.html.

_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100
_LARGEST_PAGE: Final = 65_536
_ATTEMPTS: Final = 3
_PAUSE: Final = 0.1
"""Seconds between two attempts: a file that another process changes just now has another size in a moment."""


def reject_cut_file(address: Address) -> None:
    """Raise DatabaseUnusable if a file has fewer bytes than its header records."""
    path = address.path
    if path is None:
        return
    for attempt in range(_ATTEMPTS):
        missing = _count_missing_bytes(path)
        if not missing:
            return
        if attempt < _ATTEMPTS - 1:
            time.sleep(_PAUSE)
    raise DatabaseUnusable(
        f"The database {address.text} is damaged: the file is cut short, and at least {missing:,} bytes are missing. "
        "Restore it from a backup, or name another file with --db."
    )


def _count_missing_bytes(path: Path) -> int:
    """The number of bytes that a file lacks. Pages in a write-ahead log are not yet in the file, so then it is not known."""
    try:
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            return 0
        with path.open("rb") as file:
            header = file.read(_HEADER)
            size = file.seek(0, 2)
    except OSError:
        return 0
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        return 0
    page = int.from_bytes(header[16:18])
    page = _LARGEST_PAGE if page == 1 else page
    # The number of pages is valid if the change counter is the one for which it was written.
    recorded = int.from_bytes(header[28:32]) * page if header[24:28] == header[92:96] else 0
    whole = -(-size // page) * page if page else 0
    return max(recorded - size, whole - size, 0)


def back_up(path: Path, version: str) -> Path:
    """Copy a database beside itself, before an upgrade to a version; return the path of the copy.

    The copy is its owner's alone, and never replaces another file. Raises StoreError, and then leaves no copy.
    """
    try:
        copy = _create_copy(path, version)
        _copy(path, copy)
    except (sqlite3.Error, OSError) as error:
        raise _backup_error(path, _describe_error(error)) from error
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
            f"The database {path} cannot be copied to {copy} ({_describe_error(error)}). "
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


def _describe_error(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _create_copy(path: Path, version: str) -> Path:
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


def _backup_error(path: Path, why: str) -> StoreError:
    return StoreError(
        f"The database {path} was not upgraded, and nothing has changed: it cannot be backed up first ({why}). "
        "Free some space, check the permissions of its folder, or back it up yourself and pass --no-backup."
    )
