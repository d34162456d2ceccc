"""Row 4: a whole scan of a live API server, against a bare client that lists and decodes the same kinds."""

from __future__ import annotations

from statistics import median

from benchmarks.live import filled, rounds, sizes

FACTOR, ALLOWANCE = 1.25, 1.0


def main() -> None:
    worst = 0.0
    for size in sizes():
        with filled(size) as live:
            scans, bares = [], []
            for _ in range(rounds()):
                bares.append(live.timed(live.bare()))
                scans.append(live.timed(live.scan()))
            print(f"{size:,}: {live.described()}")
            print(f"  scan {median(scans):.2f} s {[f'{seconds:.2f}' for seconds in scans]}")
            print(f"  bare client {median(bares):.2f} s {[f'{seconds:.2f}' for seconds in bares]}")
            allowed = FACTOR * median(bares) + ALLOWANCE
            print(f"  allowed {FACTOR} x {median(bares):.2f} s + {ALLOWANCE} s = {allowed:.2f} s")
            worst = max(worst, median(scans) / allowed)
    print(f"bench=4 ratio={worst:.2f} goal=1.00 rounds={rounds()}")
