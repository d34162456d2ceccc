"""Row 5: the peak memory of a scan, as the sum of PSS over all its processes."""

from __future__ import annotations

from statistics import median

from benchmarks.live import filled, rounds, sizes
from benchmarks.processes import peak

LIMIT = 300.0
GROWTH = 1.1


def main() -> None:
    peaks: dict[int, float] = {}
    for size in sizes():
        with filled(size) as live:
            measured = [peak(live.scan(), live.home) for _ in range(rounds())]
            peaks[size] = median(measured)
            print(f"{size:,}: {live.described()}")
            print(f"  peak {peaks[size]:.0f} MiB {[f'{mebibytes:.0f}' for mebibytes in measured]}")
    smallest, largest = min(peaks), max(peaks)
    ratio = max(peaks[smallest] / LIMIT, peaks[largest] / (GROWTH * peaks[smallest]) if largest > smallest else 0.0)
    print(f"allowed {LIMIT:.0f} MiB at {smallest:,}, and {GROWTH} x that of {smallest:,} at {largest:,}")
    print(f"bench=5 ratio={ratio:.2f} goal=1.00 rounds={rounds()}")
