"""`assay report`."""

from __future__ import annotations

from typing import Annotated

import typer

from scanner.cli.database import ClusterNameOption, DbOption, reader_at
from scanner.cli.report_flags import DEFAULT, Folders, OutputOption, with_folder_flags
from scanner.cli.stored_scan import stored_scan


@with_folder_flags
def command(
    scan: Annotated[
        str, typer.Argument(metavar="[SCAN]", help="Scan id or the beginning of one, `last`, `last~1` …")
    ] = "last",
    output: OutputOption = DEFAULT,
    *,
    folders: Folders,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """Render the report of a stored scan again, without the cluster."""
    from scanner.cli.render import to_folders, to_stdout

    with reader_at(db) as store:
        record = stored_scan(store, scan, cluster_name)
        to_stdout(record, output)
        to_folders(record, folders)
