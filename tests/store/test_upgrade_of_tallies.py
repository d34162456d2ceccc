"""The rows of gaps, tallies and daily tallies of older versions become lists, and read as before.

`old/` has databases of older versions: scans of two namespaces, some with gaps, and in version 0032 two that were pruned, of which one
keeps what later scans ask.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scanner.store import upgrade
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_engine
from scanner.store.rows.gap_lists import read_gaps
from scanner.store.rows.tally_lists import read_tally_rows
from tests.store.databases import path_of, rows
from tests.store.test_integrity import problems_of
from tests.store.test_upgrade_at_once import fill

OLD = sorted((Path(__file__).parent / "old").glob("*.sql"))
DAILY = """
SELECT clusters.name AS cluster, days.day, scans.id AS scan, language, policy, namespace, outcome,
    daily_keys.requester AS depends_on_requester, count
FROM daily JOIN days ON days.number = daily.day JOIN daily_keys ON daily_keys.id = daily."key"
JOIN clusters ON clusters.id = days.cluster JOIN scans ON scans.number = days.scan
"""
"""The tallies of the view `v_daily`, from the rows of older versions."""
KILLED = """
import os, signal, sys
from scanner.store import upgrade
from scanner.store.upkeep import old_tallies

old_tallies.{step} = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)
upgrade(sys.argv[1])
"""


def of_recording(recording: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query of a recorded database; none if its version does not have the table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(recording.read_text("utf-8"))
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        return sorted(connection.execute(query)) if "daily" in tables or "daily" not in query else []


def recorded(recording: Path) -> tuple[object, ...]:
    """The gaps, tallies and daily tallies of a recorded database."""
    newer = "requester" if "requester" in recording.read_text("utf-8") else "0"
    tallies = f'SELECT scan, "check", kind, namespace, outcome, count, {newer} FROM tallies'
    gaps = 'SELECT scan, position, kind, "where", why FROM gaps'
    return of_recording(recording, gaps), of_recording(recording, tallies), of_recording(recording, DAILY)


def read(url: str) -> tuple[object, ...]:
    """The same of an upgraded database, the daily tallies through the view."""
    engine = make_engine(address_of(url))
    scans = [row["number"] for row in rows(url, "SELECT number FROM scans")]
    with engine.connect() as connection:
        gaps = sorted((scan, *gap) for scan in scans for gap in read_gaps(connection, scan))
        tallies = sorted((scan, *row) for scan in scans for row in read_tally_rows(connection, scan))
    engine.dispose()
    columns = "cluster, day, scan, language, policy, namespace, outcome, depends_on_requester, count"
    daily = sorted(tuple(row.values()) for row in rows(url, f"SELECT {columns} FROM v_daily"))
    return gaps, tallies, daily


@pytest.mark.parametrize("recording", OLD, ids=lambda path: path.stem)
def test_rows_of_older_versions_read_as_before(fresh: str, recording: Path) -> None:
    """Gaps, tallies, and the view of daily tallies; the closing sums of the rows stay true."""
    fill(fresh, recording)

    assert upgrade(fresh).migrated
    assert recorded(recording) == read(fresh)
    assert [] == problems_of(fresh)


@pytest.mark.parametrize("step", ["_write_tallies", "_write_days", "make_last_lists"])
def test_an_upgrade_that_is_killed_between_its_transactions_continues(fresh: str, step: str) -> None:
    """What it made stays, and no row is lost; a SQLite file has been copied before."""
    recording = OLD[-1]
    fill(fresh, recording)
    script = [sys.executable, "-c", KILLED.format(step=step), fresh]
    killed = subprocess.run(script, check=False, capture_output=True, text=True, timeout=120)
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    assert [{"version_num": "0033"}] == rows(fresh, "SELECT version_num FROM alembic_version")

    assert upgrade(fresh).migrated
    assert recorded(recording) == read(fresh)
    assert [] == problems_of(fresh)
    if fresh.startswith("sqlite"):
        assert 1 == len(list(path_of(fresh).parent.glob("*.bak")))


def test_equal_tallies_of_older_versions_share_lists(fresh: str) -> None:
    """Scans 4 and 5 differ in one namespace of two."""
    fill(fresh, OLD[-1])
    upgrade(fresh)
    sets = {json.dumps(row["tallies"]) for row in rows(fresh, "SELECT tallies FROM scans WHERE number IN (4, 5)")}

    assert 2 == len(sets)
    assert 4 == rows(fresh, "SELECT count(*) AS number FROM tally_lists")[0]["number"]
