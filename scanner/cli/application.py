"""The commands, one file each."""

from __future__ import annotations

from typing import Annotated

import typer

from scanner.cli import db, explain, policies, report, scan, scans, version

EPILOG = (
    "Exit codes: 0 done and complete · 1 a gate failed · 2 usage or configuration · 3 the scan is incomplete · "
    "4 could not run (cluster, credentials, database)."
)

application = typer.Typer(
    name="assay",
    help="What do a cluster's admission policies say about the objects it already has?",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
application.command("scan", epilog=scan.EPILOG)(scan.command)
application.command("policies")(policies.command)
application.command("explain")(explain.command)
application.command("report")(report.command)
application.command("scans")(scans.command)
application.command("version")(version.command)
application.add_typer(db.application, name="db")


@application.callback()
def _root(
    show: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=version.flag, is_eager=True)
    ] = False,
) -> None:
    """Say what admission policies think of the objects that a cluster already has."""
