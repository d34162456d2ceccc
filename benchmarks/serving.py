"""Row 12: `assay serve` with 20 concurrent readers over 50 clusters of 100 scans each.

PostgreSQL, which `ASSAY_TEST_POSTGRES` names, with 20,000 findings in each cluster; and SQLite with 100,000 findings in all. The
readers ask one address after the other without a pause; a session in seven is about an earlier date. `CLUSTERS`, `SCANS` and
`SECONDS` choose other sizes.
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
from scanner.store import open_reader
from scanner.web.requests.addresses import cluster_key

_GOAL: Final = 0.3
_READERS: Final = 20
_STARTED: Final = re.compile(rb"http://([^:/]+):(\d+)")


def main() -> None:
    """Measure with both databases."""
    clusters, scans = int(os.environ.get("CLUSTERS", "50")), int(os.environ.get("SCANS", "100"))
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        if postgres := os.environ.get("ASSAY_TEST_POSTGRES", ""):
            worst = max(worst, _measured("PostgreSQL", postgres, clusters, scans, 1_000_000 // 50))
        else:
            say("PostgreSQL is not measured: ASSAY_TEST_POSTGRES names no database")
        worst = max(worst, _measured("SQLite", f"sqlite:///{folder}/assay.db", clusters, scans, 100_000 // clusters))
    say(
        f"bench=12 seconds={worst:.3f} goal=<={_GOAL} readers={_READERS} (the slowest 95th percentile of all addresses)"
    )


def _measured(name: str, url: str, clusters: int, scans: int, findings: int) -> float:
    if not _has_scans(url):
        fill(url, clusters=clusters, scans=scans, findings=findings)
    with open_reader(url) as reader:
        keys = [cluster_key(cluster) for cluster in reader.clusters()]
    dates = [f"{FIRST + timedelta(days=day):%Y-%m-%d}" for day in range(scans)]
    with _served(url) as (host, port, process):
        asked = {"host": host, "port": port, "clusters": keys, "dates": dates, "readers": _READERS}
        _read({**asked, "seconds": 60 if "SECONDS" not in os.environ else float(os.environ["SECONDS"]) / 2})
        before = _resident(process)
        answer = _read({**asked, "seconds": float(os.environ.get("SECONDS", "120"))})
        after = _resident(process)
    say(
        f"{name}, {clusters} clusters of {scans} scans and {findings:,} findings: memory {before} MiB, then {after} MiB"
    )
    for line in sorted(set(answer["failed"]))[:10]:
        say(f"  failed: {line}")
    worst = 0.0
    for kind, seconds in answer["seconds"].items():
        high = quantiles(seconds, n=20)[-1] if len(seconds) > 1 else seconds[0]
        worst = max(worst, high)
        say(
            f"  {kind:24} {len(seconds):6} requests, median {sorted(seconds)[len(seconds) // 2] * 1e3:6.0f} ms, 95 % within {high * 1e3:6.0f} ms"
        )
    return worst


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
