"""A prune that is killed leaves a whole database, and prunes wait for scans where they must."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from scanner.errors import StoreError
from scanner.store import SqlStore, open_store, prune
from scanner.store.database.address import address_of
from scanner.store.database.engine import lock_bodies, make_engine, share_bodies, share_texts, writing
from scanner.store.rows.references import delete_unreferenced
from scanner.store.upkeep.retention import PORTION
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.databases import count as rows_of
from tests.store.databases import execute, prepared_database
from tests.store.made import Round, clock, ended, finding, snapshot
from tests.store.test_integrity import problems_of
from tests.store.test_reading import ROOT, fill, mounted

PRUNE = """
import sys
from scanner.store import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.made import ended
prune(sys.argv[1], RetentionRule(1), ended(90))
"""
WEB = finding("web")


MOMENTS = (0.0, 0.02, 0.06)
"""Seconds after a transaction of a prune at which the prune is killed."""
SCANS = PORTION + 5
"""More than a transaction of a prune deletes."""


def test_a_killed_prune_is_continued(store: SqlStore, url: str) -> None:
    """After its first transaction and later, the database has no problem; the last prune ends as one that was not killed."""
    for number in range(1, SCANS + 1):
        Round(tuple(finding(f"{number % 7}-{each}") for each in range(5))).record(store, number)
    kept = snapshot(store, SCANS)
    problems = []
    for moment in MOMENTS:
        kill_a_prune(url, moment)
        problems += problems_of(url)
    prune(url, RetentionRule(1), ended(90))

    assert [] == [*problems, *problems_of(url)]
    assert kept == snapshot(store, SCANS)
    assert SCANS - 1 == len(store.find_pruned_scans(store.scans(100)))
    assert (0, 0) == (rows_of(url, f"coverage WHERE scan < {SCANS}"), prune(url, RetentionRule(1), ended(90)).rows)


def kill_a_prune(url: str, moment: float) -> None:
    """Run a prune, and kill it some seconds after its first transaction, unless it ends before."""
    before = pruned(url)
    with subprocess.Popen([sys.executable, "-c", PRUNE, url]) as process:
        while process.poll() is None and pruned(url) == before:
            time.sleep(0.005)
        time.sleep(moment)
        process.kill()
        process.wait()


def pruned(url: str) -> int:
    """The number of pruned scans."""
    return rows_of(url, "scans WHERE pruned_at IS NOT NULL")


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL database with three scans, and a message without a reference."""
    with prepared_database("postgresql", tmp_path_factory.mktemp("prune")) as url:
        with open_store(url, clock) as store:
            for number in (1, 2, 3):
                Round((WEB,)).record(store, number)
        execute(url, "INSERT INTO evidence (id, digest, reasons) VALUES (99, 'x', 'y')")
        yield url


def test_shared_rows_stay_while_a_scan_ends(postgres: str) -> None:
    """The scan may refer to them; the prune stops waiting, and the next one deletes them."""
    engine = make_engine(address_of(postgres))
    seconds = count(step=30)
    with writing(engine) as scan:
        share_texts(scan)
        waited = delete_unreferenced(engine, lambda: float(next(seconds)))
    later = delete_unreferenced(engine)
    engine.dispose()

    assert (0, False) == waited
    assert (1, True) == later


@pytest.mark.parametrize("lock", [share_bodies, lock_bodies])
def test_a_prune_waits_for_scans_of_its_cluster(postgres: str, lock: object) -> None:
    """While a scan begins it refers to earlier scans; while it ends, it writes history."""
    engine = make_engine(address_of(postgres))
    thread = threading.Thread(target=prune, args=(postgres, RetentionRule(1), ended(90)))
    with writing(engine) as scan:
        lock(scan, 1)  # type: ignore[operator]
        thread.start()
        time.sleep(0.7)
        during = pruned(postgres)
    thread.join(30)
    engine.dispose()

    assert (0, 2) == (during, pruned(postgres))


@ROOT
def test_a_full_disk_stops_a_prune_without_damage(tmp_path: Path) -> None:
    """The error is that the disk is full; with space, the prune is continued."""
    with mounted(tmp_path) as place:
        url = str(place / "assay.db")
        with open_store(url, clock) as store:
            for number in range(1, 31):
                Round(tuple(finding(f"{number}-{each}") for each in range(100))).record(store, number)
        fill(place)
        with pytest.raises(StoreError, match=r"disk is full|cannot be read or written"):
            prune(url, RetentionRule(1), ended(90))
        (place / "full").unlink()

        assert [] == problems_of(url)
        assert prune(url, RetentionRule(1), ended(90)).finished
        assert [] == problems_of(url)
