"""Pods that start at once upgrade one database: one of them migrates it, the others wait, and all of them can begin."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Boolean, Column, Connection, MetaData

from scanner.store import open_store, upgrade
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine, writing_shared
from scanner.store.rows.search_index import NAME as WORDS
from scanner.store.rows.tables import HEAD, find_migrations
from tests.store.databases import path_of, rows
from tests.store.made import clock, statuses

OLD = Path(__file__).parent / "old" / "0001.sql"
PROCESSES = 3
"""As many as a scan and two pods of `assay serve`."""
SCRIPT = """
import sys
from scanner.store import upgrade

print("ready", flush=True)
sys.stdin.readline()
print(upgrade(sys.argv[1]).migrated)
"""
KILLED = """
import os, signal, sys
from scanner.store import upgrade
from scanner.store.rows import search_index

search_index.index_all = lambda connection: os.kill(os.getpid(), signal.SIGKILL)
upgrade(sys.argv[1])
"""
"""An upgrade that ends after its last migration, before its transaction is committed."""


@pytest.fixture
def old(fresh: str) -> str:
    """A database of the first version: two scans, of which the first sees `a` and `b`, the second `a` alone."""
    fill(fresh)
    return fresh


def fill(url: str, recording: Path = OLD) -> None:
    """Make a recorded database; in PostgreSQL with the tables of its migration, which names the recording."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(path_of(url))) as connection:
            connection.executescript(recording.read_text("utf-8"))
        return
    engine = make_engine(address_of(url))
    with closing(sqlite3.connect(":memory:")) as recorded, writing_shared(engine) as connection:
        recorded.executescript(recording.read_text("utf-8"))
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(find_migrations()))
        command.upgrade(config, recording.stem)
        copy(recorded, connection)
    engine.dispose()


def copy(recorded: sqlite3.Connection, connection: Connection) -> None:
    """Copy the rows of all tables, in the order of their references."""
    tables = MetaData()
    tables.reflect(connection)
    own = [table for table in tables.sorted_tables if table.name not in {"alembic_version", WORDS}]
    for table in reversed(own):
        connection.execute(table.delete())  # a migration may have filled it
    for table in own:
        copied = recorded.execute(f"SELECT * FROM {table.name}")
        columns = [table.c[column[0]] for column in copied.description]
        values = [
            {column.name: _of_type(column, value) for column, value in zip(columns, row, strict=True)} for row in copied
        ]
        if values:
            connection.execute(table.insert(), values)


def _of_type(column: Column[Any], value: object) -> object:
    return bool(value) if isinstance(column.type, Boolean) else value


def upgraded_at_once(url: str) -> list[str]:
    """The answers of processes that have imported everything, and then begin together."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, url],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=120)[0] for process in processes]


def test_a_database_is_migrated_once(old: str) -> None:
    """One process migrates; the others wait for it, find nothing to do, and print no error."""
    assert [*["False\n"] * (PROCESSES - 1), "True\n"] == sorted(upgraded_at_once(old))
    with open_store(old, clock) as store:
        assert {"a": "new", "b": "new"} == statuses(store.read_scan("scan-1").findings())
        assert {"b": "resolved"} == statuses(store.read_scan("scan-2").resolved_findings())


def test_a_new_database_is_created_once(fresh: str) -> None:
    """The first pods of a release find no database: one of them creates the tables."""
    assert ["False\n"] * PROCESSES == upgraded_at_once(fresh)
    assert [HEAD] == [row["version_num"] for row in rows(fresh, "SELECT version_num FROM alembic_version")]


def test_a_sqlite_file_is_copied_once(old: str) -> None:
    """The copy is the one of the process that migrates."""
    if not old.startswith("sqlite"):
        pytest.skip("PostgreSQL is copied with pg_dump")
    upgraded_at_once(old)
    assert 1 == len(list(path_of(old).parent.glob("*.bak")))


def test_an_upgrade_that_is_killed_is_repeated(old: str) -> None:
    """A pod that ends in the middle of an upgrade leaves the database of an older version, and the next upgrade continues."""
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, old], check=False, capture_output=True, text=True, timeout=120
    )
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    assert ["0033"] == [row["version_num"] for row in rows(old, "SELECT version_num FROM alembic_version")]
    assert upgrade(old).migrated
