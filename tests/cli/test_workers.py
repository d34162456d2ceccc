"""Worker processes of the installed command: a killed worker loses nothing, and none outlives its parent."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from tests.cli.test_interruption import MAPS, PAGES, PER_PAGE, fill, scanning, slow_maps, wait_until
from tests.cluster.server import FakeApi, serving
from tests.command import ASSAY, environment

OBJECTS = PAGES * PER_PAGE
NAMES = [f"map-{number}-{item}" for number in range(PAGES) for item in range(PER_PAGE)]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    """A cluster whose config maps violate a policy, a few on a page, with a slow server."""
    with serving() as server:
        fill(server)
        yield server


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The running child processes of a process."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [pid for pid in children if runs(pid)]


def runs(pid: int) -> bool:
    """Return whether a process runs, and is not only waiting for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def objects_with_findings(report: JsonObject) -> list[str]:
    """The names of the objects with findings."""
    return sorted(as_text(dig(finding, "object", "name")) for finding in as_list(report["findings"]))


def coverage_of_maps(report: JsonObject) -> JsonObject:
    """The coverage of config maps in a report."""
    [line] = as_list(dig(report, "coverage", "kinds"))
    return as_object(line)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, JsonObject, bytes]:
    """The exit code of a scan, its report, and its standard error."""
    out, err = process.communicate(timeout=60)
    return process.returncode, as_object(json.loads(out)), err


@pytest.mark.parametrize(("page", "kills"), [(2, 1), (7, 2), (PAGES, 1)])
def test_a_killed_worker_loses_nothing(api: FakeApi, home: Path, page: int, kills: int) -> None:
    """Every object is evaluated and counted once, and the scan is complete."""
    slow_maps(api, hang=0.05)
    with scanning(api, home, "--workers", "2") as process:
        wait_until(lambda: len(api.requests_for(MAPS)) >= page and len(workers_of(process)) == 2)
        for pid in workers_of(process)[:kills]:
            os.kill(pid, signal.SIGKILL)
        code, report, err = ended(process)

    line = coverage_of_maps(report)
    assert (0, "listed", OBJECTS, PAGES) == (code, line["state"], line["objects"], line["pages"]), err
    assert sorted(NAMES) == objects_with_findings(report)


def test_coverage_is_right_if_workers_are_killed(api: FakeApi, home: Path) -> None:
    """Workers are killed again and again: a page is evaluated once or is a gap, and the exit code states which."""
    slow_maps(api, hang=0.02)
    moments = random.Random(7)
    with scanning(api, home, "--workers", "3") as process:
        while process.poll() is None and not (dead := api.requests_for(MAPS)):
            time.sleep(0.005)
        killed = 0
        while dead and process.poll() is None and killed < 60:
            for pid in workers_of(process):
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            time.sleep(moments.uniform(0, 0.02))
        code, report, err = ended(process)

    line = coverage_of_maps(report)
    lost = [as_text(dig(gap, "why")) for gap in as_list(report["gaps"])]
    assert (PAGES, OBJECTS - PER_PAGE * len(lost)) == (line["pages"], line["objects"]), err
    assert (3, "partial") if lost else (0, "listed") == (code, line["state"])
    assert all("SIGKILL" in why for why in lost)
    assert {1} >= set(Counter(objects_with_findings(report)).values())
    assert line["objects"] == len(objects_with_findings(report))
    assert killed


def test_a_scan_that_is_killed_leaves_no_worker(api: FakeApi, home: Path) -> None:
    """A worker that waits for a page ends too."""
    slow_maps(api, hang=0.2)
    with scanning(api, home, "--workers", "3") as process:
        wait_until(lambda: len(workers_of(process)) == 3)
        workers = workers_of(process)
        process.kill()
        process.communicate()

    wait_until(lambda: not any(runs(pid) for pid in workers))


def test_an_interrupt_of_all_processes_at_once_ends_the_scan_as_one(api: FakeApi, home: Path) -> None:
    """A terminal sends Ctrl-C to every process: only the parent handles it, records the pages, and ends the others."""
    slow_maps(api, hang=0.2)
    command: list[str | Path] = [
        ASSAY,
        "scan",
        "--kubeconfig",
        api.kubeconfig(home),
        "--db",
        "a.db",
        "-o",
        "json",
        "--workers",
        "2",
    ]
    with subprocess.Popen(
        command,
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        wait_until(lambda: len(workers_of(process)) == 2 and len(api.requests_for(MAPS)) > 4)
        workers = workers_of(process)
        started = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        code, report, err = ended(process)
        took = time.monotonic() - started

    line = coverage_of_maps(report)
    assert (3, "partial") == (code, line["state"])
    assert line["objects"] == len(objects_with_findings(report))
    assert took < 5
    assert b"Traceback" not in err
    assert not any(runs(pid) for pid in workers)
