"""SIGTERM ends a scan with exit code 3, wherever the scan is: each phase, in a process of its own, on both databases.

The tests keep the scan in a phase by a server that does not answer, or by a lock of the database.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import create_engine, text

from scanner.model.scans.scan import ScanState
from scanner.store import open_reader, open_store
from scanner.store.database.engine import _HISTORY_LOCK
from tests.cli.test_interruption import ADMISSION, MAPS, config_map, fill, is_alive, page, wait_until
from tests.cluster.server import FakeApi, Reply, serving
from tests.command import ASSAY, environment
from tests.store.databases import KINDS, count, database, rows
from tests.thorough import FULL

SOON = 45
"""Seconds in which a scan that waits for a lock ends after a signal: without one it waits for 60."""
HANGS = 900.0
MOMENTS = 6 if FULL else 3
_PATIENCE = 240


class Scanned(NamedTuple):
    """The end of a scan, and the seconds after the signal."""

    code: int
    out: str
    err: str
    seconds: float


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A cluster with one config map that violates a policy."""
    with serving() as server:
        fill(server)
        server.says(MAPS, page("ConfigMap", [config_map("a")]))
        yield server


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an empty database of each kind, with its tables."""
    with database(request.param, tmp_path_factory.mktemp("signals")) as empty:
        open_store(empty).close()
        yield empty


@contextmanager
def scanning(api: FakeApi, home: Path, url: str, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """A scan in a process of its own."""
    command = [str(ASSAY), "scan", "--kubeconfig", api.kubeconfig(home), "--db", url, "-o", "json", "-q", *flags]
    with subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> Scanned:
    """Send a signal, and wait for the end."""
    began = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=_PATIENCE)
    return Scanned(process.returncode, out, err, time.monotonic() - began)


@contextmanager
def writing(url: str, lock: str) -> Iterator[Callable[[], None]]:
    """A block in which another process would have the lock of the database: of the file, or the one of PostgreSQL.

    The function frees the lock before the end of the block.
    """
    engine = create_engine(url)
    with engine.connect() as connection:
        connection.execute(text(lock if url.startswith("postgresql") else "BEGIN IMMEDIATE"))
        yield connection.rollback
        connection.rollback()
    engine.dispose()


def is_waiting(url: str, process: subprocess.Popen[str]) -> bool:
    """Return whether a process waits for a lock; of SQLite it is not known, and assumed a second after the file was opened."""
    if not url.startswith("postgresql"):
        opened = has_opened(process, url.removeprefix("sqlite:///"))
        time.sleep(opened)
        return opened
    return (
        count(
            url,
            "pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        > 0
    )


def has_opened(process: subprocess.Popen[str], path: str) -> bool:
    """Return whether a process has a file open."""
    for number in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if path == str(number.readlink()):
                return True
    return False


def runs_of(url: str) -> list[tuple[int | None, str]]:
    """The exit codes and reasons of the runs."""
    return [
        (row["exit_code"], row["reason"]) for row in rows(url, "SELECT exit_code, reason FROM runs ORDER BY number")
    ]


PHASES = {
    "the connection": "/version",
    "the identity": "/api/v1/namespaces/kube-system",
    "discovery": "/api",
    "the list of policies": f"{ADMISSION}/validatingadmissionpolicies",
    "the list of bindings": f"{ADMISSION}/validatingadmissionpolicybindings",
}


LAST = "the list of bindings"
PAIRS = [("sqlite", signal.SIGTERM), ("sqlite", signal.SIGINT), ("postgresql", signal.SIGTERM)]
"""The databases and signals: SIGINT has the handler of SIGTERM."""
WAITING = [(*pair, phase) for phase in PHASES for pair in (PAIRS if FULL or phase == LAST else PAIRS[:1])]
"""The database has nothing but the run in each of these phases, so that one phase is enough for the other pairs."""


@pytest.mark.parametrize(("url", "number", "phase"), WAITING, indirect=["url"])
def test_a_scan_that_waits_for_its_cluster(
    api: FakeApi, home: Path, url: str, phase: str, number: signal.Signals
) -> None:
    """Before the first page no scan is recorded; the run is, with its exit code."""
    api.says(PHASES[phase], Reply({}, hang=HANGS))
    with scanning(api, home, url) as process:
        wait_until(lambda: bool(api.requests_for(PHASES[phase])))
        ended = end(process, number)

    assert (3, "", "assay: interrupted\n") == (ended.code, ended.out, ended.err)
    assert [(3, "interrupted")] == runs_of(url)
    assert 0 == count(url, "scans")


def test_a_scan_that_waits_for_its_objects(api: FakeApi, home: Path, url: str) -> None:
    """The scan is stored as incomplete, and its report is printed."""
    api.says(MAPS, page("ConfigMap", [config_map("a")], hang=HANGS))
    with scanning(api, home, url) as process:
        wait_until(lambda: count(url, "scans") == 1)
        time.sleep(0.3)
        ended = end(process)

    assert (3, "incomplete") == (ended.code, json.loads(ended.out)["provenance"]["state"])
    assert [(3, "interrupted")] == runs_of(url)


def test_a_scan_that_waits_for_the_lock_of_its_run(api: FakeApi, home: Path, url: str) -> None:
    """Another scan writes: nothing of this one is recorded, and it does not wait for the end of the other one."""
    with writing(url, "LOCK TABLE runs"), scanning(api, home, url) as process:
        wait_until(lambda: is_waiting(url, process))
        ended = end(process)

    assert (3, "assay: interrupted\n") == (ended.code, ended.err)
    assert ([], 0) == (runs_of(url), count(url, "scans"))
    assert ended.seconds < SOON


def test_a_scan_that_waits_for_the_lock_of_its_begin(api: FakeApi, home: Path, url: str) -> None:
    """The run began, and its end may be recorded by the next run only."""
    policies = f"{ADMISSION}/validatingadmissionpolicies"
    api.says(policies, page("ValidatingAdmissionPolicy", [], hang=HANGS))
    with scanning(api, home, url) as process:
        wait_until(lambda: bool(api.requests_for(policies)))
        with writing(url, "LOCK TABLE scans IN SHARE MODE"):
            api.released.set()
            wait_until(lambda: is_waiting(url, process))
            ended = end(process)

    assert 3 == ended.code
    assert runs_of(url) in ([(3, "interrupted")], [(None, "")])
    assert 0 == count(url, "scans")
    assert ended.seconds < SOON


def test_a_scan_that_writes_a_page(api: FakeApi, home: Path, url: str) -> None:
    """The page is stored as soon as the lock is free; then the scan ends."""
    first, second = page("ConfigMap", [config_map("a")], "next", hang=HANGS), page("ConfigMap", [], hang=HANGS)
    api.says(MAPS, first, second)
    with scanning(api, home, url) as process:
        wait_until(lambda: bool(api.requests_for(MAPS)))
        time.sleep(1.5)  # the first heartbeat needs the lock, too
        with writing(url, "LOCK TABLE staged_pages IN SHARE MODE"):
            api.released.set()  # the first page is answered
            api.released.clear()
            wait_until(lambda: is_waiting(url, process))
            process.send_signal(signal.SIGTERM)
            time.sleep(1)
            assert process.poll() is None
        out, _ = process.communicate(timeout=_PATIENCE)

    report = json.loads(out)
    assert (3, "incomplete") == (process.returncode, report["provenance"]["state"])
    # On SQLite it is not known whether the scan waited for its lock, or for the page.
    assert len(report["findings"]) in ({1} if url.startswith("postgresql") else {0, 1})


@contextmanager
def closing(api: FakeApi, home: Path, url: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[], None]]]:
    """A scan on PostgreSQL that waits for the lock of the history of its cluster, the first one of the database.

    The function frees the lock.
    """
    if not url.startswith("postgresql"):
        pytest.skip("SQLite has one lock for all: see the test of a page")
    lock = f"SELECT pg_advisory_xact_lock({_HISTORY_LOCK}, 1)"
    with writing(url, lock) as free, scanning(api, home, url) as process:
        wait_until(lambda: is_waiting(url, process))
        yield process, free


def test_a_scan_that_closes(api: FakeApi, home: Path, url: str) -> None:
    """The scan is stored in full; its report is not written, and the message names the command that prints it."""
    with closing(api, home, url) as (process, free):
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert process.poll() is None
        free()
        out, err = process.communicate(timeout=_PATIENCE)
    with open_reader(url) as store:
        [scan] = store.scans()

    assert (3, "", ScanState.COMPLETE) == (process.returncode, out, scan.state)
    assert f"assay: interrupted; the scan is stored, print its report with: assay report {scan.id}\n" == err
    assert [(3, "interrupted after the scan was stored")] == runs_of(url)


def test_a_second_signal_ends_a_scan_that_closes(api: FakeApi, home: Path, url: str) -> None:
    """At once: the scan failed, and no finding of it is in history."""
    with closing(api, home, url) as (process, _):
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        ended = end(process)
    with open_reader(url) as store:
        [scan] = store.scans()

    assert (3, "assay: interrupted\n", ScanState.FAILED) == (ended.code, ended.err, scan.state)
    assert [(3, "interrupted")] == runs_of(url)
    assert (0, 0) == (count(url, "findings"), count(url, "staged_pages"))
    assert ended.seconds < SOON


def test_a_scan_that_evaluates(api: FakeApi, home: Path, url: str) -> None:
    """Processes evaluate many pages: those that have ended are stored, and no process stays."""
    pages = [[config_map(f"{number}-{item}") for item in range(200)] for number in range(40)]
    tokens = [*(f"t{number}" for number in range(1, 40)), ""]
    api.says(MAPS, *(page("ConfigMap", items, token) for items, token in zip(pages, tokens, strict=True)))
    with scanning(api, home, url, "--workers", "2") as process:
        wait_until(lambda: count(url, "staged_pages") > 2)
        children = [int(each) for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        ended = end(process)

    report = json.loads(ended.out)
    assert 3 == ended.code
    assert report["provenance"]["state"] == "incomplete"
    assert children
    assert not any(is_alive(child) for child in children)


def test_a_scan_at_any_moment(api: FakeApi, home: Path, url: str) -> None:
    """Before Python has begun, the signal itself ends the process; afterwards the code is 3."""
    moments = random.Random(11)
    for _ in range(MOMENTS):
        fill(api)
        api.says(MAPS, page("ConfigMap", [config_map("a")], hang=HANGS))
        with scanning(api, home, url) as process:
            time.sleep(moments.uniform(0, 2.5))
            ended = end(process)
        assert ended.code in {3, -signal.SIGTERM}
        assert "Traceback" not in ended.err
    assert {code for code, _ in runs_of(url)} <= {3, None}


def test_a_second_signal_ends_a_fleet(api: FakeApi, home: Path) -> None:
    """It is passed on to the scans, which do not wait any more."""
    api.says(MAPS, page("ConfigMap", [config_map("a")], hang=HANGS))
    db = home / "assay.db"
    open_store(str(db)).close()
    (home / "fleet.yaml").write_text(json.dumps({"clusters": [{"name": "a", "kubeconfig": api.kubeconfig(home)}]}))
    command = [str(ASSAY), "scan", "--fleet", "fleet.yaml", "--parallel", "1", "--db", str(db)]
    with subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: bool(api.requests_for(MAPS)))
        with writing(f"sqlite:///{db}", ""):
            api.released.set()
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            time.sleep(1)
            ended = end(process)

    assert (3, "a        3     interrupted") == (ended.code, ended.out.splitlines()[1].rstrip())
    assert ended.seconds < SOON


@pytest.mark.parametrize("arguments", [("db", "upgrade"), ("db", "reindex")], ids=lambda each: each[1])
def test_a_command_that_waits_for_the_lock(home: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """`assay db` ends at once with code 4, changes nothing, and runs again."""
    db = tmp_path / "assay.db"
    open_store(str(db)).close()
    command = [str(ASSAY), *arguments, "--db", str(db)]
    with (
        writing(f"sqlite:///{db}", ""),
        subprocess.Popen(
            command, cwd=home, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        wait_until(lambda: is_waiting(f"sqlite:///{db}", process))
        ended = end(process)
    again = subprocess.run(command, cwd=home, env=environment(home), capture_output=True, check=False)

    assert (4, "assay: interrupted\n") == (ended.code, ended.err)
    assert ended.seconds < SOON
    assert 0 == again.returncode
