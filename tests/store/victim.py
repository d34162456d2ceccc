"""A process that scans into a database, and may be killed during the scan: `python -m tests.store.victim URL NAME STAGE`.

It prints its stage on stdout. With the stage `begun` or `paged` it waits there for ever; `done` ends three scans.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from scanner.model.scans.scan import ClusterIdentity
from scanner.store import SqlStore, open_store
from tests.store.made import Round, clock, finding

PAGES = 8


def scan(store: SqlStore, name: str, number: int, stage: str) -> None:
    """One scan of a cluster with the name of the process."""
    each = Round(cluster=ClusterIdentity(name))
    scan_id = f"{name}-{number}"
    store.begin(replace(each.start(number), id=scan_id))
    if stage == "begun":
        wait(stage)
    for page in range(PAGES):
        store.write_page(scan_id, replace(each, findings=(finding(f"{page}"), finding(f"{page}-{number}"))).page())
    if stage == "paged":
        wait(stage)
    store.finish(scan_id, each.end(number))


def wait(stage: str) -> None:
    """Print the stage and wait for ever."""
    sys.stdout.write(f"{stage}\n")
    sys.stdout.flush()
    time.sleep(600)


def main(url: str, name: str, stage: str) -> None:
    """Scan three times."""
    with open_store(url, clock) as store:
        for number in range(3):
            scan(store, name, number, stage)


if __name__ == "__main__":
    main(*sys.argv[1:])
