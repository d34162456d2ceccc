"""Row 5: the peak memory of a scan, as the sum of PSS over all its processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.live import Live, filled, rounds, sizes

LIMIT = 300.0
GROWTH = 1.1
PAUSE = 0.02


def main() -> None:
    peaks: dict[int, float] = {}
    for size in sizes():
        with filled(size) as live:
            found = [_peak(live) for _ in range(rounds())]
            peaks[size] = median(found)
            print(f"{size:,}: {live.described()}")
            print(f"  peak {peaks[size]:.0f} MiB {[f'{it:.0f}' for it in found]}")
    smallest, largest = min(peaks), max(peaks)
    ratio = max(peaks[smallest] / LIMIT, peaks[largest] / (GROWTH * peaks[smallest]) if largest > smallest else 0.0)
    print(f"allowed {LIMIT:.0f} MiB at {smallest:,}, and {GROWTH} x that of {smallest:,} at {largest:,}")
    print(f"bench=5 ratio={ratio:.2f} goal=1.00 rounds={rounds()}")


def _peak(live: Live) -> float:
    with (live.home / "out").open("wb") as out:
        process = subprocess.Popen(live.scan(), stdout=out, env={**os.environ, "HOME": str(live.home)})
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, sum(_pss(pid) for pid in (process.pid, *_descendants(process.pid))))
            time.sleep(PAUSE)
    if process.returncode != 0:
        sys.exit(f"the scan ended with exit code {process.returncode}")
    return peak


def _descendants(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [*children, *(it for child in children for it in _descendants(child))]


def _pss(pid: int) -> float:
    """In MiB."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)
