"""Row sizes: the table of sizes in `docs/database.md`. Databases of clusters of several sizes, with their memory and time.

Each cluster is scanned by a process of its own, so that its peak memory is known. `SHAPES` chooses some of the clusters by their
places, `NIGHTS` the number of scans. `ASSAY_TEST_POSTGRES` names a server for the same on PostgreSQL.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from benchmarks.growth import Shape, grow
from benchmarks.measured import say
from tests.requirements import POSTGRES
from tests.store.databases import database

_YEAR: Final = 400
"""The nights for which the chart keeps every scan."""
_SHAPES: Final = (
    Shape(objects=80, checks=60, namespaces=41, changed=1),
    Shape(objects=1_000, checks=60, namespaces=50, changed=10),
    Shape(objects=1_000, checks=300, namespaces=500, changed=10),
    Shape(objects=5_000, checks=60, namespaces=100, changed=50),
    Shape(objects=20_000, checks=60, namespaces=100, changed=20),
    Shape(objects=20_000, checks=60, namespaces=100, changed=200),
)


class _Measured(NamedTuple):
    """The bytes after the first scan and of a night, the seconds of the first and of the last scan, and the peak memory."""

    first: int
    nightly: float
    seconds_first: float
    seconds: float
    mebibytes: float


def main() -> None:
    """Print a row of the table for each cluster."""
    chosen = [int(place) for place in os.environ.get("SHAPES", "0,1,2,3,4,5").split(",")]
    nights = int(os.environ.get("NIGHTS", "8"))
    say(
        "| objects | checks | namespaces | changed a night | database | first scan | a night | 400 nights | memory | time |"
    )
    for shape in (_SHAPES[place] for place in chosen):
        for kind in ("sqlite", *(["postgresql"] if POSTGRES.place() else [])):
            with tempfile.TemporaryDirectory() as folder, database(kind, Path(folder)) as url:
                _say_row(shape, kind, _measure(url, shape, nights))


def _measure(url: str, shape: Shape, nights: int) -> _Measured:
    command = [sys.executable, "-m", "benchmarks.sizes", url, *map(str, shape), str(nights)]
    return _Measured(*orjson.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))


def _say_row(shape: Shape, kind: str, measured: _Measured) -> None:
    year = measured.first + (_YEAR - 1) * measured.nightly
    cells = [
        *(f"{number:,}" for number in shape),
        kind,
        f"{measured.first / 1e6:,.1f} MB",
        f"{measured.nightly / 1e3:,.0f} kB",
        f"{year / 1e6:,.0f} MB",
        f"{measured.mebibytes:,.0f} MiB",
        f"{measured.seconds_first:.1f} s, {measured.seconds:.1f} s",
    ]
    say(f"| {' | '.join(cells)} |")


def measure_here(url: str, shape: Shape, nights: int) -> None:
    """Scan in this process, and print the figures as JSON."""
    growth = grow(url, shape, nights)
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    figures = _Measured(growth.first, growth.nightly, growth.seconds_first, growth.seconds, (own + children) / 1024)
    sys.stdout.write(orjson.dumps(list(figures)).decode())


if __name__ == "__main__":
    measure_here(sys.argv[1], Shape(*map(int, sys.argv[2:6])), int(sys.argv[6]))
