"""`assay db`: prune, check, stats, vacuum and backup."""

from __future__ import annotations

import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from scanner.store import SqlStore, open_store
from tests.cli.conftest import Assay
from tests.store.databases import database, execute
from tests.store.made import Round, finding


def record(
    store: SqlStore, number: int, days_ago: int, each: Round | None = None, *, now: datetime | None = None
) -> None:
    """Store a scan that ended some days before `now`, which is the present moment by default."""
    each = each or Round((finding("web"), finding(f"pod-{number}", kind="Pod")))
    finished_at = (now or datetime.now(UTC)) - timedelta(days=days_ago)
    store.begin(replace(each.start(number), started_at=finished_at - timedelta(minutes=5)))
    for page in each.pages():
        store.write_page(f"scan-{number}", page)
    store.finish(f"scan-{number}", replace(each.end(number), finished_at=finished_at))


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A database with three scans, of which two are older than a week."""
    path = tmp_path / "history.db"
    with open_store(str(path)) as store:
        for number, days_ago in ((1, 20), (2, 10), (3, 1)):
            record(store, number, days_ago)
    return path


def test_prune_deletes_the_bodies_of_old_scans(assay: Assay, db: Path) -> None:
    """They are listed as pruned, and have no report; the others are as before."""
    before = assay("report", "scan-3", "-o", "json", "--db", db).stdout
    pruned = assay("db", "prune", "--keep-days", "7", "--db", db)
    states = [line.split()[4] for line in assay("scans", "--db", db).stdout.decode().splitlines()[1:]]
    report = assay("report", "scan-1", "--db", db)

    assert (0, "") == (pruned.code, pruned.stderr)
    assert re.match(rb"Pruned 2 scans: \d+ rows", pruned.stdout)
    assert ["complete", "pruned", "pruned"] == states
    assert (2, b"") == (report.code, report.stdout)
    assert re.fullmatch(
        r"assay: Scan scan-1 was pruned on \d{4}-\d\d-\d\d and has no report any more\. .*\n", report.stderr
    )
    assert before == assay("report", "scan-3", "-o", "json", "--db", db).stdout


def test_a_dry_run_names_the_scans_and_changes_nothing(assay: Assay, db: Path) -> None:
    """With the number of rows and about how many bytes."""
    before = db.read_bytes()
    ran = assay("db", "prune", "--keep-days", "7", "--dry-run", "--db", db)

    *scans, summary = ran.stdout.decode().splitlines()
    assert ["SCAN", "scan-1", "scan-2"] == [line.split()[0] for line in scans]
    assert re.fullmatch(r"Would prune 2 scans: \d+ rows, about .*", summary)
    assert before == db.read_bytes()


def test_monthly_scans_are_kept(assay: Assay, tmp_path: Path) -> None:
    """The last complete scan of a month stays."""
    path = tmp_path / "months.db"
    with open_store(str(path)) as store:
        for number, days_ago in ((1, 90), (2, 50), (3, 1)):
            record(store, number, days_ago)
    ran = assay("db", "prune", "--keep-days", "7", "--keep-monthly", "1", "--db", path)

    assert re.match(rb"Pruned 1 scan: ", ran.stdout)
    assert 0 == assay("report", "scan-2", "--db", path).code


@pytest.mark.parametrize("flags", [(), ("--keep-monthly", "3"), ("--dry-run",)])
def test_prune_needs_a_number_of_days(assay: Assay, db: Path, flags: tuple[str, ...]) -> None:
    """Without it every scan would be too old."""
    ran = assay("db", "prune", *flags, "--db", db)

    assert 2 == ran.code
    assert "--keep-days is missing. Pass the number of days whose scans stay, such as --keep-days 90." in ran.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("prune", "--keep-days", "1"),
        ("check",),
        ("reindex",),
        ("stats",),
        ("vacuum",),
        ("backup", "x"),
        ("delete-cluster", "x"),
    ],
)
def test_a_missing_database_is_not_created(assay: Assay, home: Path, command: tuple[str, ...]) -> None:
    """The message of each command is that the database does not exist."""
    ran = assay("db", *command, "--db", home / "none.db")

    assert (2, b"") == (ran.code, ran.stdout)
    assert "none.db does not exist." in ran.stderr
    assert [] == list(home.glob("*.db"))


@pytest.mark.parametrize("command", [("prune", "--keep-days", "1"), ("check",), ("reindex",), ("stats",), ("vacuum",)])
def test_another_schema_is_named(assay: Assay, db: Path, command: tuple[str, ...]) -> None:
    """A database of a newer version is not touched."""
    execute(f"sqlite:///{db}", "UPDATE alembic_version SET version_num = '9999'")
    ran = assay("db", *command, "--db", db)

    assert (4, b"") == (ran.code, ran.stdout)
    assert "was created by a newer version of Assay" in ran.stderr


def test_check_finds_no_problem_in_a_sound_database(assay: Assay, db: Path) -> None:
    """Also with the words of all rows."""
    ran = [assay("db", "check", *flags, "--db", db) for flags in ((), ("--all",))]

    assert [(0, b"The database has no problem.\n", "")] * 2 == [(each.code, each.stdout, each.stderr) for each in ran]


def test_check_prints_each_problem_with_its_remedy(assay: Assay, db: Path) -> None:
    """The exit code is 4: what is read from such a database is not certain."""
    execute(f"sqlite:///{db}", "UPDATE findings SET until = since WHERE id = 1")
    ran = assay("db", "check", "--db", db)

    assert (4, "assay: the database has 2 problems; see above for what to do\n") == (ran.code, ran.stderr)
    assert re.match(rb"findings 1: rows end before they begin\. Restore the database from a backup", ran.stdout)


def test_stats_print_rows_and_bytes(assay: Assay, db: Path) -> None:
    """As a table and as JSON."""
    shown, document = assay("db", "stats", "--db", db), assay("db", "stats", "-o", "json", "--db", db).report

    assert 0 == shown.code
    assert re.search(r"^scans +3 +\d+\.\d KiB$", shown.stdout.decode(), re.MULTILINE)
    assert re.search(r"^prod +3 +0 +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d$", shown.stdout.decode(), re.MULTILINE)
    assert db.stat().st_size == document["bytes"]
    assert {"bytes", "freeBytes", "bytesPerDay", "tables", "clusters", "deletedClusters"} == set(document)


def test_reindex_repairs_what_a_check_found(assay: Assay, db: Path) -> None:
    """The remedy of the check works as printed."""
    execute(f"sqlite:///{db}", "INSERT INTO words (words) VALUES ('delete-all')")
    before = assay("db", "check", "--db", db)
    ran = assay("db", "reindex", "--db", db)

    assert (4, True) == (before.code, b"Run: assay db reindex." in before.stdout)
    assert (0, b"Made the index of the search anew.\n") == (ran.code, ran.stdout)
    assert 0 == assay("db", "check", "--db", db).code


def test_vacuum_gives_space_back(assay: Assay, db: Path) -> None:
    """The file is smaller, and reads as before."""
    with open_store(str(db)) as store:
        record(store, 4, 9, Round(tuple(finding(f"web-{number}") for number in range(2000))))
        record(store, 5, 1)
    assay("db", "prune", "--keep-days", "7", "--db", db)
    before = db.stat().st_size
    ran = assay("db", "vacuum", "--db", db)

    assert 0 == ran.code
    assert before > db.stat().st_size
    assert 0 == assay("db", "check", "--all", "--db", db).code


def test_backup_copies_the_database(assay: Assay, db: Path, tmp_path: Path) -> None:
    """The copy is its owner's alone, and has the same content."""
    copy = tmp_path / "copy.db"
    ran = assay("db", "backup", copy, "--db", db)

    assert (0, f"The copy of the database is {copy}.\n".encode()) == (ran.code, ran.stdout)
    assert 0o600 == stat.S_IMODE(copy.stat().st_mode)
    assert (
        assay("report", "last", "-o", "json", "--db", db).stdout == assay("report", "-o", "json", "--db", copy).stdout
    )


def test_backup_works_while_a_scan_writes(assay: Assay, db: Path, tmp_path: Path) -> None:
    """The copy has what was committed."""
    with closing(sqlite3.connect(db, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM coverage")
        ran = assay("db", "backup", tmp_path / "copy.db", "--db", db)
        writer.execute("ROLLBACK")

    assert 0 == ran.code
    assert 0 == assay("db", "check", "--db", tmp_path / "copy.db").code


def test_backup_replaces_no_file(assay: Assay, db: Path, tmp_path: Path) -> None:
    """The other file stays as it is."""
    copy = tmp_path / "notes.txt"
    copy.write_text("remember the milk")
    ran = assay("db", "backup", copy, "--db", db)

    assert (2, f"assay: {copy} exists, and a backup replaces no file. Name another file.\n") == (ran.code, ran.stderr)
    assert "remember the milk" == copy.read_text()


def test_backup_without_a_folder_says_what_to_do(assay: Assay, db: Path, tmp_path: Path) -> None:
    """No copy is left."""
    ran = assay("db", "backup", tmp_path / "none" / "copy.db", "--db", db)

    assert 4 == ran.code
    assert "cannot be copied to" in ran.stderr
    assert "Check that the folder exists, its permissions and its free space" in ran.stderr


def test_backup_of_something_else_fails(assay: Assay, tmp_path: Path) -> None:
    """A file that is no database is not copied."""
    (tmp_path / "notes.db").write_text("remember the milk " * 100)
    ran = assay("db", "backup", tmp_path / "copy.db", "--db", tmp_path / "notes.db")

    assert (4, False) == (ran.code, (tmp_path / "copy.db").exists())


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[str]:
    """A PostgreSQL database with two scans."""
    with database("postgresql", tmp_path) as url:
        with open_store(url) as store:
            record(store, 1, 20)
            record(store, 2, 1)
        yield url


def test_postgresql_has_the_same_commands(assay: Assay, postgres: str) -> None:
    """Only a backup is left to pg_dump."""
    codes = [
        assay("db", *command, "--db", postgres).code
        for command in (("prune", "--keep-days", "7"), ("check", "--all"), ("stats",), ("vacuum",))
    ]
    backup = assay("db", "backup", "copy", "--db", postgres)
    tables = orjson.loads(assay("db", "stats", "-o", "json", "--db", postgres).stdout)["tables"]

    assert [0, 0, 0, 0] == codes
    assert 2 == backup.code
    assert "Back it up with pg_dump." in backup.stderr
    assert all(table["bytes"] for table in tables)
