"""`assay scans`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from scanner.cli.flags.database import DbOption, open_reader_at
from scanner.cli.terminal.stdout import table


def command(
    db: DbOption = "",
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Number of scans to list.")] = 20,
) -> None:
    """List the stored scans, newest first."""
    with open_reader_at(db) as store:
        scans = store.scans(limit)
        pruned = store.find_pruned_scans(scans)
    if not scans:
        sys.stderr.write("The database has no scans. Run: assay scan\n")
        return

    rows = (
        (
            scan.id,
            scan.cluster.name,
            scan.started_at.strftime("%Y-%m-%d %H:%M:%SZ"),
            "pruned" if scan.id in pruned else scan.state.value,
            str(scan.findings),
            str(scan.new),
            str(scan.resolved),
        )
        for scan in scans
    )
    table(("SCAN", "CLUSTER", "STARTED", "STATE", "FINDINGS", "NEW", "RESOLVED"), rows)
