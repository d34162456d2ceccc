"""The index of the search keeps up: with scans, upgrades and prunes, and a check finds every difference."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from scanner.errors import StoreError
from scanner.model.outcome import Violated
from scanner.model.scans.scan import ScanState
from scanner.store import SqlStore, open_reader, open_store, prune, upgrade
from scanner.store.database.address import address_of
from scanner.store.database.store_errors import as_store_error
from scanner.store.rows.search_index import PORTION
from scanner.store.upkeep.integrity import check_database
from scanner.store.upkeep.maintenance import reindex, vacuum
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.databases import WITHOUT_SEARCH, closing_connections, count, execute, path_of, rows, without_lists
from tests.store.made import Round, clock, ended, finding
from tests.store.test_integrity import problems_of
from tests.store.test_search_words import only, record

OLD = [Path(__file__).parent / "old" / f"{version}.sql" for version in ("0001", "0026")]
BEFORE = "0026"
QUESTIONS = ("web", "api", "nginx", "paym", "spec", "copies", "deployment", "größe")


def answers(url: str) -> list[tuple[object, ...]]:
    """The answers to some searches."""
    with open_reader(url, clock) as store:
        return [(store.search(asked), store.search_words(1, asked)) for asked in QUESTIONS]


def downgrade(url: str) -> None:
    """Undo the migration that adds the index, and the later ones."""
    without_lists(url)
    others = ("DROP INDEX objects_by_word",) if url.startswith("postgresql") else ()
    for statement in (*others, *WITHOUT_SEARCH, f"UPDATE alembic_version SET version_num = '{BEFORE}'"):
        execute(url, statement)


def test_an_upgrade_makes_the_index(own_url: str) -> None:
    """Searches have the same answers as if the index had been there always."""
    with open_store(own_url, clock) as store:
        record(store)
        Round((finding("größe", kind="Pod"), finding("web-2")), cluster=record(store, 2).cluster).record(store, 3)
    before = answers(own_url)
    downgrade(own_url)
    upgraded = upgrade(own_url, backup=False)

    assert upgraded.migrated
    assert before == answers(own_url)
    assert [] == problems_of(own_url)


def test_an_upgrade_indexes_large_tables(own_url: str) -> None:
    """More rows than are read at a time."""
    with open_store(own_url, clock) as store:
        record(store)
    downgrade(own_url)
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < {1000 + PORTION})"
    values = "i, 1, 1, 'shop', 'many-ß' || i, 'uid-' || i"
    execute(own_url, f"{numbers} INSERT INTO objects (id, cluster, kind, namespace, name, uid) SELECT {values} FROM n")
    execute(own_url, f"UPDATE last_ids SET id = {2000 + PORTION} WHERE name = 'objects'")
    upgrade(own_url, backup=False)
    with open_reader(own_url, clock) as store:
        found = store.search_words(1, "many")[0].objects

    assert frozenset(range(1000, 1001 + PORTION)) == found


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_databases_of_older_versions_are_searched(path: Path, tmp_path: Path) -> None:
    """Their findings, messages and policies are found."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    with closing(sqlite3.connect(path_of(url))) as connection, connection:
        connection.executescript(path.read_text("utf-8"))
    upgrade(url)
    with open_reader(url, clock) as store:
        hits, [word] = store.search("replicas"), store.search_words(1, "replicas")

    assert [("replicas",), (1,)] == [tuple(hit.name for hit in hits.policies.first), tuple(word.verdicts)]
    assert [] == problems_of(url)


def size(url: str) -> object:
    """What the index has: the rows of the table, or the parts of SQLite."""
    if url.startswith("postgresql"):
        return rows(url, "SELECT count(*) FROM words")
    return rows(url, "SELECT count(*), sum(length(block)) FROM words_data")


def test_an_unchanged_scan_writes_nothing_to_the_index(store: SqlStore, url: str) -> None:
    """The index grows with what is new."""
    record(store)
    before = size(url)
    record(store, 2)

    assert before == size(url)


@pytest.mark.parametrize("state", [ScanState.FAILED, ScanState.INCOMPLETE])
def test_every_end_of_a_scan_indexes_its_rows(store: SqlStore, url: str, state: ScanState) -> None:
    """Also of a scan that failed: its checks and policies stay."""
    Round((finding("web"),), state=state).record(store, 1)

    assert [] == problems_of(url)
    assert only(store, "replicas").checks


def test_a_prune_deletes_words(store: SqlStore, url: str) -> None:
    """The words of deleted messages find nothing, not even ids of rows that are gone."""
    for number, message in enumerate(("gone reason", "good reason", "good reason")):
        Round((finding("web", outcome=Violated(message)),)).record(store, number)
    prune(url, RetentionRule(1), ended(9))
    gone, reason = store.search_words(1, "gone reason")

    assert (frozenset(), 1) == (gone.verdicts, len(reason.verdicts))
    assert [] == problems_of(url)


def test_a_vacuum_keeps_the_index(store: SqlStore, url: str) -> None:
    """Its parts are joined."""
    record(store)
    store.close()
    before = answers(url)
    vacuum(url)

    assert before == answers(url)
    assert [] == problems_of(url)


DAMAGE = {
    "sqlite": (
        "INSERT INTO words (words) VALUES ('delete-all')",
        "UPDATE last_ids SET id = 0 WHERE name = 'words of checks'",
        "INSERT INTO words (rowid, entries) VALUES (72, 'zebra')",
        "DELETE FROM verdict_uses",
    ),
    "postgresql": (
        "DELETE FROM words",
        "UPDATE words SET entries = 'zebra' WHERE rowid & 7 = 2",
        "INSERT INTO words VALUES (73, 'zebra')",
        "DELETE FROM verdict_uses",
    ),
}


@pytest.mark.parametrize("place", range(4))
def test_a_check_finds_differences_and_reindex_removes_them(store: SqlStore, url: str, place: int) -> None:
    """Missing rows, other words, words of rows that do not exist, and messages without their clusters."""
    record(store)
    record(store, 2, title="Other title")
    store.close()
    before = answers(url)
    execute(url, DAMAGE["postgresql" if url.startswith("postgresql") else "sqlite"][place])
    found = problems_of(url)
    reindex(url)

    assert {"Run: assay db reindex."} == {problem.remedy for problem in found}
    assert [] == problems_of(url)
    assert before == answers(url)


def test_a_sample_finds_lost_words(store: SqlStore, url: str) -> None:
    """Without `--all` the newest rows are looked for."""
    record(store)
    execute(url, DAMAGE["postgresql" if url.startswith("postgresql") else "sqlite"][0])

    assert "rows have other words in the index of the search" in {problem.what for problem in check_database(url)}


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    """A search and a check read a SQLite file that nothing may write."""
    url = f"sqlite:///{tmp_path / 'assay.db'}"
    with open_store(url, clock) as store:
        record(store)
    before = path_of(url).read_bytes()
    found = answers(url)

    assert [] == problems_of(url)
    assert any(words[0].objects for _, words in found)  # type: ignore[index]
    assert before == path_of(url).read_bytes()


def test_without_fts5_the_remedy_is_named(tmp_path: Path) -> None:
    """The library of SQLite says that a module is missing, and the message what to use."""
    with (
        pytest.raises(StoreError, match="whose SQLite library has the module FTS5"),
        as_store_error(address_of(str(tmp_path / "assay.db"))),
        closing_connections(create_engine("sqlite://")) as engine,
        engine.connect() as connection,
    ):
        connection.exec_driver_sql("CREATE VIRTUAL TABLE words USING fts5_missing(entries)")


def test_the_size_of_the_index_is_shown(store: SqlStore, url: str) -> None:
    """With the number of rows that it finds."""
    record(store)
    sizes = {table.name: table for table in store.stats().tables}
    indexed: Sequence[str] = ("objects", "checks", "verdicts", "workloads", "kept", "policies")

    assert sum(count(url, table) for table in indexed) == sizes["words"].rows
    assert (sizes["words"].bytes or 0) > 0
