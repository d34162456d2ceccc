"""`python -m tests.integration.soak`: hundreds of scans of a changing cluster, with pruning, while `assay serve` is read.

It prints figures after every scan in twenty, and compares the last third of the scans with the third before. Exit code 1
when memory, descriptors, connections, temporary files or the size of the database still grow. `assay serve` keeps
rendered pages (24 MB at most), and what it has read of scans, so its memory grows until these are full.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple, Self

import urllib3

from scanner.model.json import JsonObject
from scanner.store import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.command import ASSAY, environment
from tests.integration.apiserver import ApiServer, running
from tests.integration.made import binding, labelled, namespace, policy
from tests.integration.manifests import apply, delete
from tests.integration.processes import Server, free_port, serving
from tests.requirements import API_SERVER, POSTGRES
from tests.store.databases import KINDS, database, path_of, rows

OBJECTS, CHANGED, REPLACED = 400, 40, 4
"""The ConfigMaps of the cluster, how many of them begin or cease to violate a policy before each scan, and how many are made anew."""
KEPT = 20
"""How many scans a prune leaves."""
EVERY = 10
"""Scans between two prunes."""
SHOWN = 20
"""Scans between two lines of figures."""
PAUSE = 0.1
"""Seconds between two requests to `assay serve`."""
POLICY = "soak"
PAGES = ("/", "/policies", "/workloads", "/search?q=object", "/metrics", "/api/v1/clusters")
PAGES_OF_CLUSTER = ("latest/index.html", "latest/findings.html", "runs")
POSTGRES_SIZE = (
    "SELECT sum(pg_total_relation_size(c.oid)) AS size FROM pg_class c "
    "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
)
CONNECTIONS = (
    "SELECT count(*) AS number FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Allowed(NamedTuple):
    """How much the median of the last third may exceed that of the third before: a factor and a difference."""

    factor: float
    more: float


LIMITS = {
    "scan_memory": Allowed(1.05, 4e6),
    "scan_seconds": Allowed(1.5, 1.0),
    "serve_memory": Allowed(1.05, 8e6),
    "serve_descriptors": Allowed(1.0, 2),
    "connections": Allowed(1.0, 2),
    "temporary_files": Allowed(1.0, 0),
    "database": Allowed(1.10, 1e6),
}


class Figures(NamedTuple):
    """The figures after a scan: bytes, seconds and numbers."""

    scan_memory: float
    scan_seconds: float
    serve_memory: float
    serve_descriptors: float
    connections: float
    temporary_files: float
    database: float


@dataclass(frozen=True, slots=True)
class Soak:
    """The cluster, the database, and `assay serve` over it."""

    server: ApiServer
    url: str
    folder: Path
    serve: Server
    random: Random

    def change(self) -> None:
        """Let some objects violate the policy or not, and make some anew."""
        for number in self.random.sample(range(OBJECTS), CHANGED):
            apply(self.server, [config_map(number, self.random.choice(["true", "false"]))])
        for number in self.random.sample(range(OBJECTS), REPLACED):
            delete(self.server, config_map(number))
            apply(self.server, [config_map(number)])

    def scan(self) -> tuple[float, float]:
        """Scan as a command; return the peak of its resident memory in bytes, and its seconds."""
        begun = time.monotonic()
        command: list[str | Path] = [ASSAY, "scan", "--kubeconfig", self.server.kubeconfig, "--db", self.url, "-q"]
        process = subprocess.Popen(command, env=variables(self.folder), cwd=self.folder, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"a scan ended with exit code {process.returncode}"
        return usage.ru_maxrss * 1024.0, time.monotonic() - begun

    def prune(self) -> None:
        """Prune all scans but the newest ones, as on the day after the oldest of these."""
        newest = rows(self.url, f"SELECT started_at FROM scans ORDER BY number DESC LIMIT {KEPT}")
        oldest = datetime.fromisoformat(str(newest[-1]["started_at"]))
        prune(self.url, RetentionRule(days=1), oldest + timedelta(days=1))

    def figures(self, memory: float, seconds: float) -> Figures:
        """The figures after a scan."""
        process = self.serve.process.pid
        postgres = self.url.startswith("postgresql")
        return Figures(
            scan_memory=memory,
            scan_seconds=seconds,
            serve_memory=resident(process),
            serve_descriptors=len(list(Path(f"/proc/{process}/fd").iterdir())),
            connections=rows(self.url, CONNECTIONS)[0]["number"] if postgres else 0,
            temporary_files=len(list((self.folder / "tmp").iterdir())),
            database=float(rows(self.url, POSTGRES_SIZE)[0]["size"]) if postgres else path_of(self.url).stat().st_size,
        )


class Reader:
    """Reads the pages of `assay serve` one after another, and counts the statuses of its answers."""

    def __init__(self, address: str, pages: Sequence[str]) -> None:
        self.statuses: Counter[int] = Counter()
        self._addresses = [f"{address}{page}" for page in pages]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _read(self) -> None:
        with urllib3.PoolManager(retries=False, timeout=30.0) as pool:
            while not self._stopped.is_set():
                for address in self._addresses:
                    self.statuses[pool.request("GET", address).status] += 1
                    self._stopped.wait(PAUSE)


def variables(folder: Path) -> dict[str, str]:
    """The environment of a command, whose temporary files lie in `folder`."""
    return environment(folder, {"TMPDIR": str(folder / "tmp")})


def resident(process: int) -> float:
    """The resident memory of a process in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) * 1024.0 for line in status.splitlines() if line.startswith("VmRSS:"))


def config_map(number: int, allowed: str = "true") -> JsonObject:
    """A ConfigMap that the policy matches."""
    return labelled("ConfigMap", POLICY, f"object-{number}", namespace=POLICY, data={"allowed": allowed})


@contextmanager
def prepared(assets: Path, kind: str, folder: Path, seed: int) -> Iterator[tuple[Soak, Reader]]:
    """A cluster with one scan, and `assay serve`, which is read."""
    (folder / "tmp").mkdir()
    (folder / "server").mkdir()
    with running(assets, folder / "server") as server, database(kind, folder) as url:
        checked = policy(POLICY, "configmaps", expression="object.data.allowed == 'true'")
        apply(server, [namespace(POLICY), checked, binding(POLICY), *map(config_map, range(OBJECTS))])
        port = free_port()
        subprocess.run(
            [ASSAY, "scan", "--kubeconfig", server.kubeconfig, "--db", url, "-q"],
            check=True,
            cwd=folder,
            env=variables(folder),
            stdout=subprocess.DEVNULL,
        )
        command: list[str | Path] = [ASSAY, "serve", "--listen", f"127.0.0.1:{port}", "--db", url]
        with serving(command, folder / "serve.log", variables=variables(folder)) as serve:
            address = f"http://127.0.0.1:{port}"
            wait_until_ready(address, serve)
            [cluster] = [
                item["key"] for item in urllib3.request("GET", f"{address}/api/v1/clusters").json()["clusters"]
            ]
            with Reader(address, [*PAGES, *(f"/clusters/{cluster}/{page}" for page in PAGES_OF_CLUSTER)]) as reader:
                yield Soak(server, url, folder, serve, Random(seed)), reader


def wait_until_ready(address: str, serve: Server) -> None:
    """Return when `assay serve` answers."""
    while True:
        serve.reject_ended()
        try:
            if urllib3.request("GET", f"{address}/readyz", retries=False).status == 200:
                return
        except urllib3.exceptions.HTTPError:
            time.sleep(0.1)


def soak(prepared: Soak, scans: int) -> list[Figures]:
    """Scan again and again; return the figures after each scan."""
    measured: list[Figures] = []
    for number in range(1, scans + 1):
        prepared.change()
        measured.append(prepared.figures(*prepared.scan()))
        if number % EVERY == 0:
            prepared.prune()
        if number % SHOWN == 0:
            sys.stdout.write(f"{line(number, measured[-1])}\n")
            sys.stdout.flush()
    return measured


def line(number: int, figures: Figures) -> str:
    """The figures after a scan in words."""
    return (
        f"scan {number:4}: {figures.scan_seconds:4.1f} s, {figures.scan_memory / 1e6:6.1f} MB at most; serve {figures.serve_memory / 1e6:6.1f} MB, "
        f"{figures.serve_descriptors:3.0f} descriptors; {figures.connections:2.0f} connections; {figures.temporary_files:.0f} temporary files; "
        f"database {figures.database / 1e6:6.2f} MB"
    )


def growing(measured: Sequence[Figures]) -> Iterator[str]:
    """What still grows: a line for each figure whose median in the last third exceeds that of the third before too much."""
    third = len(measured) // 3
    for name, allowed in LIMITS.items():
        before, last = (
            median(getattr(figures, name) for figures in part)
            for part in (measured[-2 * third : -third], measured[-third:])
        )
        sys.stdout.write(f"{name}: {before:.1f}, then {last:.1f}\n")
        if last > before * allowed.factor + allowed.more:
            yield f"{name} grows: from {before:.1f} to {last:.1f}"


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.soak", description=__doc__)
    parser.add_argument("--scans", type=int, default=200, help="number of scans")
    parser.add_argument("--database", choices=KINDS, default=KINDS[bool(POSTGRES.place())], help="kind of database")
    parser.add_argument("--seed", type=int, default=1, help="seed of the changes")
    arguments = parser.parse_args()
    assets = API_SERVER.place()
    if not assets:
        sys.stderr.write("there is no kube-apiserver: KUBEBUILDER_ASSETS is not set; make one with: make apiserver\n")
        return 2
    with (
        tempfile.TemporaryDirectory() as folder,
        prepared(Path(assets), arguments.database, Path(folder), arguments.seed) as (cluster, reader),
    ):
        measured = soak(cluster, arguments.scans)
        log = (Path(folder) / "serve.log").read_text(errors="replace")
    failures = [*growing(measured)]
    sys.stdout.write(f"pages read: {dict(reader.statuses)}\n")
    if reader.statuses.keys() != {200}:
        failures.append(f"pages could not be read: {dict(reader.statuses)}")
    if "Traceback" in log:
        failures.append("assay serve has logged a traceback")
    sys.stdout.writelines(f"{failure}\n" for failure in failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
