"""Reading needs neither free space nor write permission, and changes nothing."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from scanner.errors import StoreError, UsageError
from scanner.store import open_reader, open_store
from tests.store.made import Round, clock, finding

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems: run the tests as root")


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """A small file system of its own."""
    place = folder / "mounted"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def recorded(folder: Path) -> Path:
    """A database with one scan."""
    path = folder / "assay.db"
    with open_store(str(path), clock) as store:
        Round((finding("a"),)).record(store, 1)
    return path


def read(path: Path) -> list[str]:
    """The findings of the last scan."""
    with open_reader(str(path), clock) as reader:
        scan = reader.find_scan("last")
        return [finding.finding.name for finding in reader.read_scan(scan.id).findings()]


@ROOT
def test_a_report_opens_on_a_read_only_file_system(tmp_path: Path) -> None:
    """The database may be on a backup or a read-only volume."""
    with mounted(tmp_path) as place:
        path = recorded(place)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)

        assert [finding("a").name] == read(path)


@ROOT
def test_a_report_opens_on_a_full_disk(tmp_path: Path) -> None:
    """The disk may be full because of the database."""
    with mounted(tmp_path) as place:
        path = recorded(place)
        fill(place)

        assert [finding("a").name] == read(path)


def fill(place: Path) -> None:
    """Use all space of a folder's file system."""
    with (place / "full").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError as error:
            assert errno.ENOSPC == error.errno  # noqa: PT017 - any other error is a broken test


@ROOT
def test_changes_in_the_write_ahead_log_are_read(tmp_path: Path) -> None:
    """A killed scan leaves them beside the file; without them the report would show an earlier time."""
    with mounted(tmp_path) as place:
        path = recorded(place)
        with open_store(str(path), clock) as store:
            store.begin(Round((finding("b"),)).start(2))
            for beside in place.glob("assay.db*"):
                shutil.copy(beside, place / beside.name.replace("assay", "copied"))
        (place / "copied.db-shm").unlink()
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)

        with pytest.raises(StoreError, match=r"copied\.db-wal has changes .*Copy both files to another place"):
            read(place / "copied.db")


def test_a_reader_changes_nothing(url: str) -> None:
    """Read permission is enough."""
    with open_store(url, clock) as store:
        Round((finding("a"),)).record(store, 1)
    with (
        open_reader(url, clock) as reader,
        reader._engine.connect() as connection,
        pytest.raises(DBAPIError, match=r"read-?only"),
    ):
        connection.exec_driver_sql("UPDATE scans SET state = 'failed'")


def test_an_empty_database_is_not_set_up_by_a_reader(fresh: str) -> None:
    """A misspelt path creates no database."""
    with pytest.raises((UsageError, StoreError), match=r"has no scans|cannot be opened"):
        open_reader(fresh)


@pytest.mark.parametrize("state", ["finished", "killed"])
def test_a_reader_leaves_the_files_of_a_database_as_they_are(tmp_path: Path, state: str) -> None:
    """Also the log that a killed scan left: merging it would be a change."""
    with open_store(str(tmp_path / "first.db"), clock) as store:
        Round((finding("a"),)).record(store, 1)
        if state == "killed":
            store.begin(Round().start(2))
        for file in tmp_path.glob("first.db*"):
            shutil.copy(file, tmp_path / file.name.replace("first", "assay"))
    before = contents(tmp_path)
    read(tmp_path / "assay.db")

    assert before == {name: data for name, data in contents(tmp_path).items() if name in before}


def contents(folder: Path) -> dict[str, bytes]:
    """The database and its log; the index of the log is scratch."""
    return {path.name: path.read_bytes() for path in folder.glob("assay.db*") if not path.name.endswith("-shm")}


def test_a_scan_leaves_an_empty_log(tmp_path: Path) -> None:
    """The file alone is the database, while the process that scanned still runs."""
    path = tmp_path / "assay.db"
    with open_store(str(path), clock) as store:
        Round((finding("a"),)).record(store, 1)
        size = (tmp_path / "assay.db-wal").stat().st_size
        shutil.copy(path, tmp_path / "copied.db")

    assert (0, ["a"]) == (size, read(tmp_path / "copied.db"))


def test_a_reader_does_not_keep_a_scan_from_ending(tmp_path: Path) -> None:
    """The log then stays until the next scan."""
    path = tmp_path / "assay.db"
    with open_store(str(path), clock) as store:
        Round((finding("a"),)).record(store, 1)
        with open_reader(str(path), clock) as reader:
            findings = reader.read_scan("scan-1").findings()
            next(findings)
            Round((finding("b"),)).record(store, 2)
            assert [] == list(findings)

    assert ["b"] == read(path)
