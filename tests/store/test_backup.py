"""An upgrade copies a SQLite file first, so that there is a way back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scanner.errors import StoreError, UsageError
from scanner.store import open_store, upgrade
from scanner.store.database.sqlite_file import back_up
from scanner.store.rows.tables import HEAD
from scanner.store.upkeep.maintenance import backup
from tests.store.made import Round, clock, finding, statuses
from tests.store.test_reading import ROOT, fill, mounted

OLD = Path(__file__).parent / "old" / "0001.sql"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database as an older version left it."""
    path = tmp_path / "assay.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD.read_text("utf-8"))
    return path


def dump(path: Path) -> list[str]:
    """The content of a database."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_an_upgrade_copies_the_file_first(old: Path) -> None:
    """The copy has the old content, and is its owner's alone."""
    before = dump(old)
    copy = upgrade(str(old)).backup

    assert old.with_name(f"assay.db.before-{HEAD}.bak") == copy
    assert (before, 0o600) == (dump(copy), stat.S_IMODE(copy.stat().st_mode))


def test_a_copy_replaces_no_earlier_one(old: Path) -> None:
    """Each upgrade has a copy of its own."""
    earlier = old.with_name(f"assay.db.before-{HEAD}.bak")
    earlier.write_text("an earlier copy")

    assert earlier.with_name(f"assay.db.before-{HEAD}-2.bak") == upgrade(str(old)).backup
    assert "an earlier copy" == earlier.read_text()


def test_the_copy_brings_the_database_back(old: Path) -> None:
    """Put in its place, it can be upgraded again."""
    copy = upgrade(str(old)).backup
    assert copy is not None
    with open_store(str(old), clock) as store:
        Round((finding("c"),)).record(store, 3)
    copy.replace(old)
    upgrade(str(old))

    with open_store(str(old), clock) as store:
        assert {"a": "open"} == statuses(store.read_scan(store.find_scan("last").id).findings())


def test_a_database_without_data_is_not_copied(tmp_path: Path) -> None:
    """Nor one that is current."""
    path = tmp_path / "assay.db"

    assert [None, None] == [upgrade(str(path)).backup for _ in range(2)]


def test_the_copy_can_be_left_out(old: Path) -> None:
    """For those who made one themselves."""
    assert upgrade(str(old), backup=False).backup is None
    assert [old.name] == [path.name for path in old.parent.iterdir()]


def test_without_a_copy_nothing_changes(old: Path) -> None:
    """A folder in which no file can be made: the message names the remedy."""
    before = dump(old)
    name = "n" * 240
    long = old.rename(old.with_name(name))

    with pytest.raises(StoreError, match=r"was not upgraded, and nothing has changed: .*pass --no-backup"):
        upgrade(str(long))
    assert before == dump(long)


@ROOT
def test_a_full_disk_changes_nothing(old: Path, tmp_path: Path) -> None:
    """Neither the database nor its folder."""
    with mounted(tmp_path) as place:
        path = Path(shutil.copy(old, place / "assay.db"))
        fill(place)
        os.truncate(place / "full", (place / "full").stat().st_size - 65_536)
        before = dump(path)

        with pytest.raises(StoreError, match="disk is full"):
            upgrade(str(path))
        (place / "full").unlink()
        assert before == dump(path)
        assert [] == list(place.glob("*.bak"))


def test_a_copy_that_fails_is_removed(tmp_path: Path) -> None:
    """Half a copy would be taken for a whole one."""
    path = tmp_path / "notes.db"
    path.write_text("remember the milk " * 1000)

    with pytest.raises(StoreError, match="nothing has changed: it cannot be backed up first"):
        back_up(path, "9999")
    assert [path] == list(tmp_path.iterdir())


def copies(folder: Path) -> list[str]:
    """The names of the files in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_keeps_the_newest_copies(tmp_path: Path) -> None:
    """Named by their time; other files in the folder stay, and what a killed backup left is removed."""
    path, folder = tmp_path / "assay.db", tmp_path / "copies"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "assay-20260301T000000Z.db.unfinished").write_text("half")
    with open_store(str(path), clock) as store:
        Round((finding("a"),)).record(store, 1)
    made = [backup(str(path), folder, keep=2, now=datetime(2026, 3, day, 5, 47, tzinfo=UTC)) for day in (1, 2, 3)]

    assert [0, 0, 1] == [each.deleted for each in made]
    assert ["assay-20260302T054700Z.db", "assay-20260303T054700Z.db", "notes.txt"] == copies(folder)
    with open_store(str(made[-1].copy), clock) as store:
        assert "scan-1" == store.scans()[0].id


def test_a_backup_that_fails_deletes_no_copy(tmp_path: Path) -> None:
    """The database is damaged: the last good copies stay."""
    path, folder = tmp_path / "assay.db", tmp_path / "copies"
    folder.mkdir()
    open_store(str(path), clock).close()
    backup(str(path), folder, keep=1, now=datetime(2026, 3, 1, tzinfo=UTC))
    path.write_bytes(b"damaged" * 10_000)

    with pytest.raises(StoreError):
        backup(str(path), folder, keep=1, now=datetime(2026, 3, 2, tzinfo=UTC))
    assert ["assay-20260301T000000Z.db"] == copies(folder)


@pytest.mark.parametrize("name", ["none", "file"])
def test_copies_are_kept_in_a_folder(tmp_path: Path, name: str) -> None:
    """A misspelt folder is an error, and is not created."""
    path = tmp_path / "assay.db"
    open_store(str(path), clock).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--keep needs a folder, and .* is none"):
        backup(str(path), tmp_path / name, keep=1, now=datetime(2026, 3, 1, tzinfo=UTC))
    assert not (tmp_path / "none").exists()
