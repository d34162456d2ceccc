"""Scans whose process ended, and scans whose process only seems to have ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from operator import add

import pytest
from sqlalchemy import create_engine, select

from scanner.errors import StoreError, UsageError
from scanner.model.scans.run import KILLED
from scanner.model.scans.scan import ScanState
from scanner.store import SqlStore, open_reader, open_store
from scanner.store.catalog.runs import ScanProcess, get_current_process
from scanner.store.rows.tables import SCANS
from scanner.store.upkeep.integrity import check_database
from tests.store.databases import count, execute, rows
from tests.store.made import DAWN, Round, clock, finding

ELSEWHERE = ScanProcess("another-host", 1, "")


@contextmanager
def victim(url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that scans."""
    command = [sys.executable, "-m", "tests.store.victim", url, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("stage", ["begun", "paged"])
def test_a_killed_scan_is_failed(url: str, stage: str) -> None:
    """A reader sees it as failed at its last heartbeat; the next scan records this, and deletes its pages."""
    with victim(url, "prod", stage) as process:
        assert process.stdout is not None
        assert f"{stage}\n" == process.stdout.readline()
        process.kill()
        process.wait()
        with open_reader(url, clock) as reader:
            [scan] = reader.scans()
        assert 1 == count(url, "scans WHERE state = 'running'")
        with open_store(url, clock) as store:
            store.begin(Round().start(2))

    assert (ScanState.FAILED, DAWN) == (scan.state, scan.finished_at)
    assert (1, 0) == (count(url, "scans WHERE state = 'failed'"), count(url, "staged_pages"))


def test_a_killed_scan_leaves_no_findings(url: str) -> None:
    """Its staged pages are not in history, and its record states only that it failed."""
    with victim(url, "prod", "paged") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.wait()
        with open_store(url, clock) as store:
            record = store.read_scan("prod-0")
            findings = list(record.findings())

    assert ([], {}, ScanState.FAILED) == (findings, record.tallies, record.scan.state)
    assert 0 == count(url, "findings")


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_killed_at_any_moment_no_half_scan_is_called_complete(url: str, moment: float) -> None:
    """Every scan in the database is either complete or failed."""
    open_store(url).close()
    with victim(url, "prod", "done") as process:
        wait_for_scan(url)
        time.sleep(moment)
        process.kill()
        process.wait()
    with open_store(url, clock) as store:
        counts = {scan.id: len(list(store.read_scan(scan.id).findings())) for scan in store.scans()}
        complete = {scan.id for scan in store.scans() if scan.state is ScanState.COMPLETE}

    assert counts == {scan_id: 16 if scan_id in complete else 0 for scan_id in counts}


def wait_for_scan(url: str) -> None:
    """Wait until a scan has begun."""
    deadline = time.monotonic() + 60
    while not count(url, "scans"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_running_scan_is_left_alone(store: SqlStore, url: str) -> None:
    """A reader sees it as running, and only finished scans count as the latest."""
    Round((finding("a"),)).record(store, 1)
    store.begin(Round().start(2))
    with open_store(url, clock) as reader:
        states = [scan.state for scan in reader.scans()]
        latest = reader.latest_scan()

    assert [ScanState.RUNNING, ScanState.COMPLETE] == states
    assert latest is not None
    assert "scan-1" == latest.id


def test_a_running_scan_cannot_be_reported(store: SqlStore) -> None:
    """The error asks the user to wait."""
    store.begin(Round().start(1))

    with pytest.raises(UsageError, match="still running"):
        store.read_scan("scan-1")


@pytest.mark.parametrize(
    ("owner", "silence", "state"),
    [
        pytest.param(ELSEWHERE, timedelta(minutes=5), ScanState.RUNNING, id="another host, silent for a while"),
        pytest.param(ELSEWHERE, timedelta(minutes=6), ScanState.FAILED, id="another host, silent for too long"),
        pytest.param(
            get_current_process(), timedelta(days=1), ScanState.RUNNING, id="this host, alive, however silent"
        ),
        pytest.param(
            replace(get_current_process(), started="1"),
            timedelta(0),
            ScanState.FAILED,
            id="the number of a newer process",
        ),
        pytest.param(
            replace(get_current_process(), started=""), timedelta(0), ScanState.RUNNING, id="alive, start not known"
        ),
        pytest.param(
            ScanProcess(socket.gethostname(), 2**22 + 1, "1"), timedelta(0), ScanState.FAILED, id="no such process"
        ),
    ],
)
def test_the_owner_of_a_scan_is_alive_or_dead(
    url: str, owner: ScanProcess, silence: timedelta, state: ScanState
) -> None:
    """On the same host the process decides; on another host the age of the heartbeat does."""
    with open_store(url, clock) as store:
        store.begin(Round().start(1))
    change = "UPDATE scans SET host = :host, process = :process, process_started = :started"
    execute(url, change, **asdict(owner))
    with open_store(url, lambda: DAWN + silence) as later:
        [scan] = later.scans()

    assert state is scan.state


def test_a_process_of_another_user_is_alive() -> None:
    """A process that may not be signalled exists."""
    first = ScanProcess(socket.gethostname(), 1, "")

    assert first.is_alive(heartbeat=DAWN, now=DAWN, silence=timedelta(0))


def test_the_next_scan_finds_the_killed_one(url: str) -> None:
    """The start of a scan records killed scans as failed."""
    with open_store(url, clock) as store:
        store.begin(Round().start(1))
        execute(url, "UPDATE scans SET process_started = '1'")
        store.begin(Round().start(2))

    assert 1 == count(url, "scans WHERE state = 'failed'")


def test_a_scan_that_was_given_up_cannot_go_on(url: str) -> None:
    """Its next page raises an error."""
    with open_store(url, clock) as store:
        store.begin(Round().start(1))
        execute(url, "UPDATE scans SET state = 'failed'")

        with pytest.raises(StoreError, match="Start a new scan"):
            store.write_page("scan-1", Round().page())
        with pytest.raises(StoreError, match="Start a new scan"):
            store.finish("scan-1", Round().end(1))


def test_every_page_updates_the_heartbeat(url: str) -> None:
    """A scan on another host that still writes pages stays running."""
    with open_store(url, lambda: DAWN + timedelta(hours=1)) as store:
        store.begin(Round().start(1))
        execute(url, "UPDATE scans SET host = 'another-host', heartbeat = '2026-03-01 00:00:00'")
        store.write_page("scan-1", Round().page())
        [scan] = store.scans()

    assert ScanState.RUNNING is scan.state
    assert get_current_process().process == os.getpid()


def silent(url: str, store: SqlStore, silence: timedelta) -> ScanState:
    """The state of a running scan of another host after some time."""
    change = "UPDATE scans SET host = :host, process = :process, process_started = :started"
    execute(url, change, **asdict(ELSEWHERE))
    with open_reader(url, lambda: DAWN + silence) as later:
        return later.scans()[0].state


@pytest.mark.parametrize(
    ("silence", "state"), [(timedelta(minutes=44), ScanState.RUNNING), (timedelta(minutes=46), ScanState.FAILED)]
)
def test_a_scan_states_how_long_it_may_be_silent(
    store: SqlStore, url: str, silence: timedelta, state: ScanState
) -> None:
    """A scan whose requests may take twenty minutes is not dead after ten."""
    store.begin(replace(Round().start(1), silence=45 * 60))

    assert state is silent(url, store, silence)


def test_a_scan_that_waits_is_alive(url: str) -> None:
    """A heartbeat without any page keeps it running."""
    now = DAWN
    with open_store(url, lambda: now) as store:
        store.begin(Round().start(1))
        now = DAWN + timedelta(minutes=20)
        store.beat("scan-1")

        assert ScanState.RUNNING is silent(url, store, timedelta(minutes=25))


def test_heartbeats_are_written_every_ten_seconds_at_most(url: str) -> None:
    """Those that wait beat often."""
    now = DAWN
    with open_store(url, lambda: now) as store:
        store.begin(Round().start(1))
        store.beat("scan-1")
        now = DAWN + timedelta(seconds=9)
        store.beat("scan-1")
        [early] = heartbeats(url)
        now = DAWN + timedelta(seconds=10)
        store.beat("scan-1")
        [late] = heartbeats(url)

    assert (DAWN, now) == (early, late)


def heartbeats(url: str) -> list[datetime]:
    """When each scan gave its last sign of life."""
    engine = create_engine(url)
    with engine.connect() as connection:
        beats = list(connection.execute(select(SCANS.c.heartbeat)).scalars())
    engine.dispose()
    return beats


def test_a_heartbeat_that_cannot_be_written_stops_nothing(url: str) -> None:
    """The next page reports the trouble."""
    with open_store(url, clock) as store:
        store.begin(Round().start(1))
        execute(url, "ALTER TABLE scans RENAME TO gone")
        try:
            store.beat("scan-1")
        finally:
            execute(url, "ALTER TABLE gone RENAME TO scans")

        assert [DAWN] == heartbeats(url)


def runs_of(url: str) -> list[tuple[int | None, str]]:
    """The exit codes and reasons of the runs, the oldest first."""
    return [
        (row["exit_code"], row["reason"]) for row in rows(url, "SELECT exit_code, reason FROM runs ORDER BY number")
    ]


def test_the_next_run_closes_a_killed_one(url: str) -> None:
    """Run and scan end at the last heartbeat, with a reason; no finding is resolved, and the history goes on."""
    with open_store(url, clock) as store:
        Round((finding("a"),)).record(store, 1)
        run = store.begin_run("prod")
        store.begin_scan_of_run(run, "scan-2")
        store.begin(Round().start(2))
        store.write_page("scan-2", Round().page())
        execute(url, "UPDATE scans SET process_started = '1' WHERE state = 'running'")
        execute(url, "UPDATE runs SET process_started = '1'")
    with open_store(url, lambda: DAWN + timedelta(days=1)) as store:
        store.begin_run("another cluster")
        [_, killed] = store.list_runs()
        open_findings = [stored.finding.name for stored in store.read_scan("scan-1").findings()]

    assert (KILLED, DAWN, "scan-2") == (killed.run.exit_code, killed.run.finished_at, killed.run.scan)
    assert "the process ended without a result after 2026-03-01 06:00:00Z" == killed.run.reason
    assert (["a"], 0) == (open_findings, count(url, "staged_pages"))
    assert 1 == count(url, "scans WHERE state = 'failed'")
    assert 0 == count(url, "findings WHERE until < 2147483647")


@pytest.mark.parametrize(
    ("silence", "codes"),
    [(timedelta(minutes=5), [None, None]), (timedelta(minutes=5, seconds=1), [KILLED, None])],
)
def test_a_run_on_another_host_is_closed_after_five_minutes(
    url: str, silence: timedelta, codes: list[int | None]
) -> None:
    """Without a heartbeat, as when its node was lost."""
    with open_store(url, clock) as store:
        run = store.begin_run("prod")
        store.begin_scan_of_run(run, "scan-1")
        store.begin(Round().start(1))
    change = "SET host = :host, process = :process, process_started = :started"
    for table in ("scans", "runs"):
        execute(url, f"UPDATE {table} {change}", **asdict(ELSEWHERE))
    with open_store(url, lambda: DAWN + silence) as store:
        store.begin_run("prod")

    assert codes == [code for code, _ in runs_of(url)]


def test_a_run_without_a_scan_has_a_quarter_of_an_hour(url: str) -> None:
    """It has no heartbeat while it contacts its cluster."""
    with open_store(url, clock) as store:
        store.begin_run("prod")
    execute(url, "UPDATE runs SET host = 'another-host'")
    for minutes, codes in ((15, [None, None]), (16, [KILLED, None, None])):
        with open_store(url, partial(add, DAWN, timedelta(minutes=minutes))) as store:
            store.begin_run("prod")
        assert codes == [code for code, _ in runs_of(url)]


def test_a_run_that_was_closed_by_mistake_corrects_its_end(url: str) -> None:
    """Its process was stopped for some time, and goes on."""
    with open_store(url, clock) as store:
        run = store.begin_run("prod")
        execute(url, "UPDATE runs SET process_started = '1'")
        store.begin_run("prod")
        closed = runs_of(url)[0][0]
        store.end_run(run, exit_code=0)

    assert (KILLED, (0, "")) == (closed, runs_of(url)[0])


def test_the_scan_of_a_run_that_ends_has_failed(url: str) -> None:
    """An error or a signal has ended the run before the scan was merged."""
    with open_store(url, clock) as store:
        run = store.begin_run("prod")
        store.begin_scan_of_run(run, "scan-1")
        store.begin(Round().start(1))
        store.write_page("scan-1", Round().page())
        store.end_run(run, exit_code=3, reason="interrupted", scan_id="scan-1")
        [scan] = store.scans()

    assert (ScanState.FAILED, 0) == (scan.state, count(url, "staged_pages"))
    assert [] == check_database(url)


def test_a_scan_that_merges_is_alive(url: str) -> None:
    """It cannot give a heartbeat in its closing transaction; PostgreSQL shows that its row is locked."""
    if url.startswith("sqlite"):
        pytest.skip("SQLite has one writer: no other one can mark a scan meanwhile")
    with open_store(url, clock) as store:
        store.begin(Round().start(1))
    execute(url, "UPDATE scans SET host = 'another-host'")
    engine = create_engine(url)
    with engine.begin() as merging:
        merging.execute(select(SCANS.c.number).with_for_update())
        with open_store(url, lambda: DAWN + timedelta(hours=1)) as store:
            store.begin_run("prod")
    engine.dispose()

    assert 1 == count(url, "scans WHERE state = 'running'")
