"""`assay scans`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from scanner.cli.database import DbOption, existing
from scanner.cli.terminal import table


def command(
    db: DbOption = "",
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="The newest N scans.")] = 20,
) -> None:
    """List the scans that the database holds, the newest first."""
    with existing(db) as store:
        found = store.scans(limit)
    if not found:
        sys.stderr.write("No scan is recorded in this database. Make one: assay scan\n")
        return
    rows = (
        (
            scan.id,
            scan.cluster.name,
            scan.started_at.strftime("%Y-%m-%d %H:%M:%SZ"),
            scan.state.value,
            str(scan.findings),
            str(scan.new),
            str(scan.resolved),
        )
        for scan in found
    )
    table(("SCAN", "CLUSTER", "STARTED", "STATE", "FINDINGS", "NEW", "RESOLVED"), rows)
