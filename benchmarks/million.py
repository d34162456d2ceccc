"""Row 11: a scan of a million pods by the policies of `benchmarks.policies`, against a bare client on the same lists.

The server is `benchmarks.list_server`, in a process of its own: it takes a share of the processors from both sides.
The peak of memory is compared with that at 20,000 pods.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import orjson

from benchmarks.live import ASSAY, rounds, sizes
from benchmarks.processes import peak, timed

FACTOR, ALLOWANCE, GROWTH = 1.25, 1.0, 1.5
SMALL = 20_000
_PATHS = ("/api/v1/namespaces", "/api/v1/pods")
_TOKEN = "token-of-the-benchmark"  # noqa: S105 -- no secret: the server takes any
_READY = 60.0


def main() -> None:
    """Measure at every size; the growth of memory is that from 20,000 pods, or from half the size if that is smaller."""
    worst = 0.0
    for size in sizes("1000000"):
        with _serving(size) as served:
            bares, scans = [], []
            for _ in range(rounds()):
                bares.append(timed(served.bare(), served.home))
                scans.append(timed(served.scan(), served.home))
            served.reject_other_objects()
            large = peak(served.scan(), served.home)
        small = min(SMALL, size // 2)
        with _serving(small) as served:
            little = peak(served.scan(), served.home)
        allowed = FACTOR * median(bares) + ALLOWANCE
        print(f"{size:,} pods: scan {median(scans):.2f} s {[f'{each:.2f}' for each in scans]}")
        print(f"  bare client {median(bares):.2f} s {[f'{each:.2f}' for each in bares]}, allowed {allowed:.2f} s")
        print(f"  peak {large:.0f} MiB; at {small:,} pods {little:.0f} MiB: {large / little:.2f} x, goal {GROWTH} x")
        worst = max(worst, median(scans) / allowed, large / little / GROWTH)
    print(f"bench=11 ratio={worst:.2f} goal=1.00 rounds={rounds()}")


@dataclass(frozen=True)
class _Served:
    """A running server, and a folder to work in."""

    home: Path
    url: str
    count: int

    def scan(self) -> list[str]:
        """Return the command of a scan into a new database."""
        for path in self.home.glob("assay.db*"):
            path.unlink()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "clusters": [{"name": "bench", "cluster": {"server": self.url, "certificate-authority": str(self.home / "ca.pem")}}],
            "users": [{"name": "bench", "user": {"token": _TOKEN}}],
        }  # fmt: skip
        (self.home / "kubeconfig").write_text(json.dumps(config))
        files = ["--kubeconfig", str(self.home / "kubeconfig"), "--db", str(self.home / "assay.db")]
        return [str(ASSAY), "scan", *files, "-o", "json", "-q"]

    def bare(self) -> list[str]:
        """Return the command of the bare client, for the lists that the scan makes."""
        token = self.home / "token"
        token.write_text(_TOKEN)
        return [sys.executable, "-m", "benchmarks.bare", self.url, str(self.home / "ca.pem"), str(token), *_PATHS]

    def reject_other_objects(self) -> None:
        """End the benchmark unless the last scan has listed every pod: its figures would be of no use."""
        kinds = orjson.loads((self.home / "out").read_bytes())["coverage"]["kinds"]
        pods = next((kind["objects"] for kind in kinds if kind["kind"] == "Pod"), 0)
        if pods != self.count:
            sys.exit(f"the scan has listed {pods:,} of {self.count:,} pods")


@contextmanager
def _serving(count: int) -> Iterator[_Served]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        server = subprocess.Popen([sys.executable, "-m", "benchmarks.list_server", folder, str(count)])
        try:
            yield _Served(home, _url(home, server), count)
        finally:
            server.kill()
            server.wait()


def _url(home: Path, server: subprocess.Popen[bytes]) -> str:
    """Return the address of the server as soon as it is ready."""
    until = time.monotonic() + _READY
    while not (home / "url").exists():
        if server.poll() is not None or time.monotonic() > until:
            sys.exit("the list server did not start")
        time.sleep(0.05)
    return (home / "url").read_text()
