"""Commands from exec to exit: their seconds, and the peak of their memory. Measuring memory takes time, so these are two runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

PAUSE = 0.02


def timed(command: Sequence[str], home: Path) -> float:
    """Return the seconds of a command; its standard output goes to the file `out` in `home`."""
    started = time.perf_counter()
    with (home / "out").open("wb") as out:
        ended = subprocess.run(command, check=False, stdout=out, env={**os.environ, "HOME": str(home)})
    _reject_failure(command, ended.returncode)
    return time.perf_counter() - started


def peak(command: Sequence[str], home: Path) -> float:
    """Return the largest sum of PSS over all processes of a command, in MiB."""
    with (home / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, env={**os.environ, "HOME": str(home)})
        largest = 0.0
        while process.poll() is None:
            largest = max(largest, sum(_pss(pid) for pid in (process.pid, *_descendants(process.pid))))
            time.sleep(PAUSE)
    _reject_failure(command, process.returncode)
    return largest


def _reject_failure(command: Sequence[str], code: int) -> None:
    if code != 0:
        sys.exit(f"{command[0]} ended with exit code {code}")


def _descendants(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [*children, *(below for child in children for below in _descendants(child))]


def _pss(pid: int) -> float:
    """Return the PSS of a process in MiB; 0 when the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
