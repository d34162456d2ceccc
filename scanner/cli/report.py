"""`assay report`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scanner.cli.database import ClusterNameOption, DbOption, existing


class Output(StrEnum):
    """What standard output carries."""

    TABLE = "table"
    JSON = "json"
    POLICY_REPORT = "policyreport"
    OPEN_REPORTS = "openreports"


OutputOption = Annotated[Output, typer.Option("-o", "--output", help="What standard output carries, and nothing else.")]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="DIR", help="Write the HTML report into this folder.", show_default=False),
]


def command(
    scan: Annotated[
        str, typer.Argument(metavar="[SCAN]", help="A scan's id or its beginning, `last`, `last~1` …")
    ] = "last",
    output: OutputOption = Output.TABLE,
    html: HtmlOption = None,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """Render a stored scan again; the cluster is not asked."""
    from scanner.cli.render import to_folder, to_stdout

    with existing(db) as store:
        record = store.record(store.find_scan(scan, cluster_name or None).id)
        to_stdout(record, output.value)
        if html:
            to_folder(record, html)
