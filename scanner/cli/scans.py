"""`assay scans`."""

from __future__ import annotations

from typing import Annotated

import typer

from scanner.cli.database import DbOption, opened
from scanner.cli.show import table


def command(
    db: DbOption = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="The newest N scans.")] = 20,
) -> None:
    """List the scans that the database holds, the newest first."""
    found = opened(db).scans(limit)
    if not found:
        typer.echo("No scan is recorded in this database. Make one: assay scan", err=True)
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
