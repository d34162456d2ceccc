"""Worker processes of the installed command: one that is killed costs nothing, and none outlives its parent."""

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
    """A cluster whose config maps violate a policy, a few to a page, and whose server takes its time."""
    with serving() as server:
        fill(server)
        yield server


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    """The processes that a process has begun and that run."""
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [pid for pid in children if runs(pid)]


def runs(pid: int) -> bool:
    """Whether a process is there and not only waits to be buried."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def named(report: JsonObject) -> list[str]:
    """The objects that findings are about."""
    return sorted(as_text(dig(finding, "object", "name")) for finding in as_list(report["findings"]))


def line_of(report: JsonObject) -> JsonObject:
    """The ledger line of config maps."""
    [line] = as_list(dig(report, "coverage", "kinds"))
    return as_object(line)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, JsonObject, bytes]:
    """How a scan ends, what it reports, and what it says beside."""
    out, err = process.communicate(timeout=60)
    return process.returncode, as_object(json.loads(out)), err


@pytest.mark.parametrize(("page", "kills"), [(2, 1), (7, 2), (PAGES, 1)])
def test_a_worker_that_is_killed_in_mid_scan_costs_nothing(api: FakeApi, home: Path, page: int, kills: int) -> None:
    """Every object is judged and counted once, and the scan is complete."""
    slow_maps(api, hang=0.05)
    with scanning(api, home, "--workers", "2") as process:
        wait_until(lambda: len(api.asked_for(MAPS)) >= page and len(workers_of(process)) == 2)
        for pid in workers_of(process)[:kills]:
            os.kill(pid, signal.SIGKILL)
        code, report, err = ended(process)

    line = line_of(report)
    assert (0, "listed", OBJECTS, PAGES) == (code, line["state"], line["objects"], line["pages"]), err
    assert sorted(NAMES) == named(report)


def test_whatever_is_killed_the_ledger_is_right(api: FakeApi, home: Path) -> None:
    """With all workers killed over and over, a page is judged once or is a gap; the exit code tells which."""
    slow_maps(api, hang=0.02)
    moments = random.Random(7)
    with scanning(api, home, "--workers", "3") as process:
        while process.poll() is None and not (dead := api.asked_for(MAPS)):
            time.sleep(0.005)
        killed = 0
        while dead and process.poll() is None and killed < 60:
            for pid in workers_of(process):
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            time.sleep(moments.uniform(0, 0.02))
        code, report, err = ended(process)

    line = line_of(report)
    lost = [as_text(dig(gap, "why")) for gap in as_list(report["gaps"])]
    assert (PAGES, OBJECTS - PER_PAGE * len(lost)) == (line["pages"], line["objects"]), err
    assert (3, "partial") if lost else (0, "listed") == (code, line["state"])
    assert all("SIGKILL" in why for why in lost)
    assert {1} >= set(Counter(named(report)).values())
    assert line["objects"] == len(named(report))
    assert killed


def test_a_scan_that_is_killed_leaves_no_worker(api: FakeApi, home: Path) -> None:
    """Not even one that waits for a page that never comes."""
    slow_maps(api, hang=0.2)
    with scanning(api, home, "--workers", "3") as process:
        wait_until(lambda: len(workers_of(process)) == 3)
        workers = workers_of(process)
        process.kill()
        process.communicate()

    wait_until(lambda: not any(runs(pid) for pid in workers))


def test_an_interrupt_of_all_processes_at_once_ends_the_scan_as_one(api: FakeApi, home: Path) -> None:
    """A terminal sends Ctrl-C to every process: only the parent takes it, says what was seen, and ends the others."""
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
        wait_until(lambda: len(workers_of(process)) == 2 and len(api.asked_for(MAPS)) > 4)
        workers = workers_of(process)
        asked = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        code, report, err = ended(process)
        took = time.monotonic() - asked

    line = line_of(report)
    assert (3, "partial") == (code, line["state"])
    assert line["objects"] == len(named(report))
    assert took < 5
    assert b"Traceback" not in err
    assert not any(runs(pid) for pid in workers)
