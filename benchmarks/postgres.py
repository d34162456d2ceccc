"""Row 7: the same scan of files into PostgreSQL and into SQLite, each into a new database.

The objects are those of row 10, so nearly all the work of the database is about findings. `ASSAY_TEST_POSTGRES` names the server.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.bulk import write_cluster
from benchmarks.live import ASSAY, rounds, sizes
from benchmarks.processes import timed
from tests.requirements import POSTGRES
from tests.store.databases import database

GOAL = 1.3


def main() -> None:
    """Measure at every size."""
    if not POSTGRES.place():
        sys.exit("name a PostgreSQL server in which schemas may be created with ASSAY_TEST_POSTGRES")
    worst = 0.0
    for size in sizes("20000"):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            write_cluster(home / "cluster", size)
            seconds = [{kind: _timed(kind, home) for kind in ("sqlite", "postgresql")} for _ in range(rounds())]
        sqlite, postgres = (median(each[kind] for each in seconds) for kind in ("sqlite", "postgresql"))
        print(f"{size:,} objects: SQLite {sqlite:.2f} s, PostgreSQL {postgres:.2f} s: {postgres / sqlite:.2f} x")
        worst = max(worst, postgres / sqlite)
    print(f"bench=7 ratio={worst:.2f} goal={GOAL:.2f} rounds={rounds()}")


def _timed(kind: str, home: Path) -> float:
    with database(kind, home) as url:
        return timed([str(ASSAY), "scan", "--from", str(home / "cluster"), "--db", url, "-q"], home)
