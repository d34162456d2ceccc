"""A filled API server, a scan of it and a bare client beside it, for the rows about live clusters."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.loader import fill
from benchmarks.objects import FAULT
from tests.integration.apiserver import ApiServer, running

KINDS = (
    "/api/v1/configmaps",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/pods",
    "/api/v1/secrets",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/jobs",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/networking.k8s.io/v1/ingresses",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
)
ORDINARY_COLLECTION: dict[str, str] = {}
"""No settings of Go's garbage collector: the limit of the tests makes a server of 100,000 objects collect without end."""
ASSAY = Path(sys.executable).with_name("assay")
_OPEN = ExitStack()
_FILLED: dict[tuple[int, float], Live] = {}
atexit.register(_OPEN.close)


def sizes(default: str = "20000,100000") -> list[int]:
    """Return the numbers of objects to measure with: OBJECTS, such as 20000,100000."""
    return [int(size) for size in (os.environ.get("OBJECTS") or default).split(",")]


def rounds() -> int:
    """Return the number of rounds: ROUNDS, by default 5."""
    return int(os.environ.get("ROUNDS", "5"))


@dataclass(frozen=True)
class Live:
    """A filled server, and a folder to work in."""

    server: ApiServer
    home: Path
    objects: int

    def scan(self) -> list[str]:
        """Return the command of a scan into a new database."""
        for path in self.home.glob("assay.db*"):
            path.unlink()
        return [
            str(ASSAY), "scan", "--kubeconfig", str(self.server.kubeconfig), "--db", str(self.home / "assay.db"),
            "-o", "json", "-q", *os.environ.get("FLAGS", "").split(),
        ]  # fmt: skip

    def bare(self) -> list[str]:
        """Return the command of the bare client, for the lists that the scan makes."""
        token = self.home / "token"
        token.write_text(self.server.token)
        return [sys.executable, "-m", "benchmarks.bare", self.server.url, str(self.server.ca), str(token), *KINDS]

    def timed(self, command: list[str]) -> float:
        """Return the seconds of a command from exec to exit."""
        started = time.perf_counter()
        with (self.home / "out").open("wb") as out:
            ended = subprocess.run(command, check=False, stdout=out, env={**os.environ, "HOME": str(self.home)})
        if ended.returncode != 0:
            sys.exit(f"{command[0]} ended with exit code {ended.returncode}")
        return time.perf_counter() - started

    def described(self) -> str:
        """Return a sentence with the objects, policies and checks of the last scan."""
        report = orjson.loads((self.home / "out").read_bytes())
        coverage = report["coverage"]
        counts = report["score"]
        return (
            f"{coverage['objects']:,} objects of {len(coverage['kinds'])} kinds, {len(report['policies'])} policies, "
            f"{counts['decided']:,} decided checks of which {counts['decided'] - counts['passed']:,} failed, "
            f"{sum(kind['bytes'] for kind in coverage['kinds']) / 1e6:.0f} MB in {sum(kind['pages'] for kind in coverage['kinds'])} pages"
        )


@contextmanager
def filled(objects: int, fault: float = FAULT) -> Iterator[Live]:
    """Run a server with so many objects and the policies. Filling takes minutes: all rows of one command share the server."""
    if (objects, fault) not in _FILLED:
        _FILLED[objects, fault] = _OPEN.enter_context(_filled(objects, fault))
    yield _FILLED[objects, fault]


@contextmanager
def _filled(objects: int, fault: float) -> Iterator[Live]:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets:
        sys.exit('KUBEBUILDER_ASSETS is not set: export KUBEBUILDER_ASSETS="$(make -s apiserver)"')
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(assets), Path(folder), variables=ORDINARY_COLLECTION) as server,
    ):
        started = time.perf_counter()
        fill(server, objects, fault=fault)
        print(f"stored {objects:,} objects in {time.perf_counter() - started:.0f} s", flush=True)
        yield Live(server, Path(folder), objects)
