"""Row 12: `assay serve` with 20 concurrent readers over 50 clusters of 100 scans each.

PostgreSQL, which `ASSAY_TEST_POSTGRES` names, with 20,000 findings in each cluster; and SQLite with 100,000 findings in all. The
readers ask one address after the other without a pause; a session in seven is about an earlier date. Then one reader alone asks a new
server about earlier dates only. `CLUSTERS`, `SCANS` and `SECONDS` choose other sizes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import quantiles
from typing import Final

import orjson

from benchmarks.fleet_database import FIRST, fill
from benchmarks.live import ASSAY
from benchmarks.measured import say
from benchmarks.readers import AT_A_DATE
from scanner.store import open_reader
from scanner.web.requests.addresses import cluster_key

_GOALS: Final = {"newest": 0.3, "at a date": 0.5, "at a date, alone": 0.15}
"""Seconds within which 95 % of the requests of every address are answered: of newest scans, of earlier ones, and by one reader alone."""
_READERS: Final = 20
_EARLIER: Final = 0.15
"""The share of sessions about an earlier date, of which there are so many that most are read once."""
_STARTED: Final = re.compile(rb"http://([^:/]+):(\d+)")


def main() -> None:
    """Measure with both databases."""
    clusters, scans = int(os.environ.get("CLUSTERS", "50")), int(os.environ.get("SCANS", "100"))
    with tempfile.TemporaryDirectory() as folder:
        if postgres := os.environ.get("ASSAY_TEST_POSTGRES", ""):
            _measure("PostgreSQL", postgres, clusters, scans, 1_000_000 // 50)
        else:
            say("PostgreSQL is not measured: ASSAY_TEST_POSTGRES names no database")
        _measure("SQLite", f"sqlite:///{folder}/assay.db", clusters, scans, 100_000 // clusters)


def _measure(name: str, url: str, clusters: int, scans: int, findings: int) -> None:
    if not _has_scans(url):
        fill(url, clusters=clusters, scans=scans, findings=findings)
    with open_reader(url) as reader:
        keys = [cluster_key(cluster) for cluster in reader.clusters()]
    dates = [f"{FIRST + timedelta(days=day):%Y-%m-%d}" for day in range(scans)]
    seconds = float(os.environ.get("SECONDS", "120"))
    asked: dict[str, object] = {"clusters": keys, "dates": dates}
    with _served(url) as (host, port, process):
        many = {**asked, "host": host, "port": port, "readers": _READERS, "earlier": _EARLIER}
        _read({**many, "seconds": seconds / 2})
        before = _resident(process)
        together = _read({**many, "seconds": seconds})
        after = _resident(process)
    with _served(url) as (host, port, _):
        alone = _read({**asked, "host": host, "port": port, "readers": 1, "earlier": 1.0, "seconds": seconds / 4})
    say(
        f"{name}, {clusters} clusters of {scans} scans and {findings:,} findings: memory {before} MiB, then {after} MiB"
    )
    for line in sorted({*together["failed"], *alone["failed"]})[:10]:
        say(f"  failed: {line}")
    worst = dict.fromkeys(_GOALS, 0.0)
    for kind, times in together["seconds"].items():
        case = "at a date" if kind.endswith(AT_A_DATE) else "newest"
        worst[case] = max(worst[case], _high(kind, times))
    for kind, times in alone["seconds"].items():
        if kind.endswith(AT_A_DATE):
            worst["at a date, alone"] = max(worst["at a date, alone"], _high(f"{kind}, alone", times))
    for case, goal in _GOALS.items():
        say(
            f"bench=12 database={name} pages={case!r} seconds={worst[case]:.3f} goal=<={goal} (the slowest 95th percentile)"
        )


def _high(kind: str, times: list[float]) -> float:
    """The 95th percentile of the seconds of one kind of address."""
    high = quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    middle = sorted(times)[len(times) // 2]
    say(f"  {kind:40} {len(times):6} requests, median {middle * 1e3:6.0f} ms, 95 % within {high * 1e3:6.0f} ms")
    return high


def _has_scans(url: str) -> bool:
    try:
        with open_reader(url) as reader:
            return bool(reader.clusters())
    except Exception:  # noqa: BLE001 - a database without a schema
        return False


@contextmanager
def _served(url: str) -> Iterator[tuple[str, int, int]]:
    command = [str(ASSAY), "serve", "--db", url, "--listen", "127.0.0.1:0"]
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+b") as log:
        process = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL)
        try:
            yield (*_address(process, Path(folder) / "log"), process.pid)
        finally:
            process.terminate()
            process.wait(30)


def _address(process: subprocess.Popen[bytes], log: Path) -> tuple[str, int]:
    for _ in range(300):
        if found := _STARTED.search(log.read_bytes()):
            return found[1].decode(), int(found[2])
        if process.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"assay serve did not start: {log.read_text()}")


def _read(asked: dict[str, object]) -> dict[str, dict[str, list[float]]]:
    command = [sys.executable, "-m", "benchmarks.readers"]
    done = subprocess.run(command, input=orjson.dumps(asked), stdout=subprocess.PIPE, check=True)
    answer: dict[str, dict[str, list[float]]] = orjson.loads(done.stdout)
    return answer


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


if __name__ == "__main__":
    main()
