"""`assay db delete-cluster` and `assay db copy`."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from scanner.store import open_store
from tests.cli.conftest import Assay
from tests.cli.test_db import db, record
from tests.store.databases import database
from tests.store.made import Round, finding

__all__ = ["db"]
_WIDTH = 80


def test_a_deletion_prints_its_tombstone(assay: Assay, db: Path) -> None:
    """`assay db stats` shows the tombstone later, without the name of the cluster."""
    ran = assay("db", "delete-cluster", "prod", "--db", db)
    stats, document = assay("db", "stats", "--db", db), assay("db", "stats", "-o", "json", "--db", db).stdout

    lines = ran.stdout.decode().splitlines()
    assert (0, "") == (ran.code, ran.stderr)
    assert "Deleted prod: 3 scans and 0 runs. Its tombstone is number 1." == lines[0]
    assert re.fullmatch(r"[\d,]+ rows are gone, and no other cluster has changed\.", lines[1])
    assert re.search(
        r"^1 +\d{4}-\d\d-\d\d +3 +0 +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d$", stats.stdout.decode(), re.MULTILINE
    )
    assert [(1, 3)] == [(each["number"], each["scans"]) for each in orjson.loads(document)["deletedClusters"]]
    assert b"prod" not in stats.stdout
    assert b"prod" not in document


def test_a_dry_run_prints_the_rows_of_each_table(assay: Assay, db: Path) -> None:
    """And changes nothing."""
    before = db.read_bytes()
    ran = assay("db", "delete-cluster", "prod", "--dry-run", "--db", db)

    *rows, _, sentence, rest = ran.stdout.decode().splitlines()
    assert ["TABLE", "ROWS"] == rows[0].split()
    assert ["scans", "3"] in [row.split() for row in rows]
    assert re.fullmatch(r"Would delete prod: [\d,]+ rows,", sentence)
    assert "and the texts that no other cluster has." == rest
    assert before == db.read_bytes()


def test_an_unknown_cluster_ends_with_2(assay: Assay, db: Path) -> None:
    """The message suggests a name."""
    ran = assay("db", "delete-cluster", "prdo", "--db", db)

    assert (2, b"") == (ran.code, ran.stdout)
    assert "assay: There is no cluster 'prdo' in this database. Did you mean prod?\n" == ran.stderr


def test_a_copy_reads_as_its_source(assay: Assay, db: Path, tmp_path: Path) -> None:
    """The last report is the same, byte by byte."""
    copy = tmp_path / "copy.db"
    ran = assay("db", "copy", db, copy)
    reports = [assay("report", "last", "-o", "json", "--db", path).stdout for path in (db, copy)]

    first, second = ran.stdout.decode().splitlines()
    assert (0, "") == (ran.code, ran.stderr)
    assert f"Copied 3 scans to {copy}:" == first
    assert re.fullmatch(r"[\d,]+ rows of \d+ tables, equal in number and content\.", second)
    assert reports[0] == reports[1]


def test_a_copy_to_a_server_hides_its_password(assay: Assay, db: Path, tmp_path: Path) -> None:
    """In what it prints, and in messages."""
    with database("postgresql", tmp_path) as url:
        with_password = url.replace("//assay@", "//assay:hidden-word@")
        ran = [assay("db", "copy", db, with_password) for _ in range(2)]

    assert [0, 2] == [each.code for each in ran]
    assert b"to postgresql://assay:***@" in ran[0].stdout
    assert "is not empty" in ran[1].stderr
    assert "hidden-word" not in f"{ran[0].stdout.decode()}{ran[0].stderr}{ran[1].stderr}"


@pytest.mark.parametrize("form", ["sqlite:{}", "sqlite:///{}", "{}"])
def test_a_database_is_not_copied_onto_itself(assay: Assay, db: Path, form: str) -> None:
    """In any form of its address."""
    ran = assay("db", "copy", db, form.format(db))

    assert (2, b"") == (ran.code, ran.stdout)
    assert "are the same database. Name another target." in ran.stderr


def test_the_results_fit_a_terminal(assay: Assay, db: Path, tmp_path: Path) -> None:
    """Of 80 columns, but for addresses."""
    (tmp_path / "c").mkdir()
    with open_store(str(db)) as store:
        record(store, 4, 0, Round(tuple(finding(f"web-{number}") for number in range(300))))
    ran = [
        assay("db", "copy", db, "c/copy.db"),
        assay("db", "delete-cluster", "prod", "--dry-run", "--db", "c/copy.db"),
        assay("db", "delete-cluster", "prod", "--db", "c/copy.db"),
        assay("db", "stats", "--db", "c/copy.db"),
    ]

    assert b"are free for later scans.\nTo give them back to the disk, run: assay db vacuum\n" in ran[2].stdout
    lines = [line for each in ran for line in each.stdout.decode().splitlines()]
    assert [] == [line for line in lines if len(line) > _WIDTH]
