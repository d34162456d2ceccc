"""`make bench ROW=n`: measure a row of the table in `README.md`, and print the ratio with its goal."""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks import (
    bulk,
    checking,
    compiling,
    expressions,
    formats,
    growth,
    kyverno,
    live_memory,
    live_rescan,
    live_time,
    million,
    mutating,
    pages,
    pod_security,
    postgres,
    previewing,
    quarter,
    report_pages,
    serving,
    sizes,
    snapshots,
    waivers,
)

ROWS: dict[str, Callable[[], None]] = {
    "1": expressions.against_go,
    "2": expressions.against_the_second_engine,
    "3": pages.against_decoding,
    "4": live_time.main,
    "5": live_memory.main,
    "6": live_rescan.main,
    "7": postgres.main,
    "8": report_pages.main,
    "10": bulk.main,
    "11": million.main,
    "compile": compiling.ready,
    "formats": formats.main,
    "kyverno": kyverno.against_admission,
    "mutating": mutating.beside_validating,
    "12": serving.main,
    "13": growth.main,
    "14": pod_security.main,
    "15": previewing.main,
    "16": checking.main,
    "17": snapshots.main,
    "quarter": quarter.main,
    "sizes": sizes.main,
    "variables": compiling.growing,
    "waivers": waivers.main,
}


def main() -> None:
    """Run the rows that are named, or all."""
    rows = sys.argv[1:] or list(ROWS)
    unknown = [row for row in rows if row not in ROWS]
    if unknown:
        sys.exit(f"there is no row {', '.join(unknown)}: the rows are {', '.join(ROWS)}")
    for row in rows:
        ROWS[row]()


if __name__ == "__main__":
    main()
