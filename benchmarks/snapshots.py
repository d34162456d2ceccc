"""Row 17: a scan that writes a snapshot, beside the same scan without one."""

from __future__ import annotations

from statistics import median

from benchmarks.live import Live, filled, rounds, sizes

FACTOR = 1.3


def main() -> None:
    """Run both in turn."""
    worst = 0.0
    for size in sizes("20000"):
        with filled(size) as live:
            scans, snapshots = [], []
            for _ in range(rounds()):
                scans.append(live.timed(live.scan()))
                snapshots.append(live.timed(_with_snapshot(live)))
            path = live.home / "one.snapshot"
            print(f"{size:,}: {live.described()}")
            print(f"  scan {median(scans):.2f} s {[f'{seconds:.2f}' for seconds in scans]}")
            print(f"  with a snapshot {median(snapshots):.2f} s {[f'{seconds:.2f}' for seconds in snapshots]}")
            print(f"  {path.stat().st_size / 1e6:.1f} MB")
            worst = max(worst, median(snapshots) / median(scans) / FACTOR)
    print(f"bench=17 ratio={worst:.2f} goal=1.00 rounds={rounds()}")


def _with_snapshot(live: Live) -> list[str]:
    path = live.home / "one.snapshot"
    path.unlink(missing_ok=True)
    return [*live.scan(), "--snapshot", str(path)]
