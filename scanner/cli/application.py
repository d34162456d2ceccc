"""The commands, one file each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Annotated, Any, Protocol

import typer
from typer.core import TyperCommand
from typer.main import get_command

from scanner.cli.commands import (
    check,
    config,
    controls,
    db,
    diff,
    explain,
    findings,
    packet,
    policies,
    rbac,
    reperform,
    report,
    runs,
    sample,
    scan,
    scans,
    serve,
    snapshot,
    test,
    token,
    trend,
    verify_parity,
    version,
    waiver,
)
from scanner.cli.commands.catalog import configure

EPILOG = (
    "Exit codes: 0 complete · 1 a gate failed · 2 usage or configuration · 3 the scan is incomplete · "
    "4 could not run (cluster, credentials, database)."
)


# Help with the options in groups, in plain text that a page of documentation can show.


class Formatter(Protocol):
    """The part of click's formatter that writes lists of options."""

    def section(self, name: str) -> AbstractContextManager[None]:
        """A titled block."""
        ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Terms and their meanings."""
        ...


class GroupedCommand(TyperCommand):
    """A command whose help groups the options by `rich_help_panel`, in order of appearance."""

    def format_options(self, ctx: Any, formatter: Formatter) -> None:
        """Write one block for each group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                title = "Arguments" if param.param_type_name == "argument" else _get_panel(param)
                groups.setdefault(title, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _get_panel(param: object) -> str:
    return getattr(param, "rich_help_panel", None) or "Options"


application = typer.Typer(
    name="assay",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
application.command(
    "scan", cls=GroupedCommand, epilog=scan.EPILOG, short_help="Scan a cluster or files, and report the results."
)(scan.command)
application.command(
    "check", cls=GroupedCommand, epilog=check.EPILOG, short_help="Decide whether a cluster would admit manifests."
)(check.command)
application.command("report", short_help="Print the report of a stored scan.")(report.command)
application.command("scans", short_help="List the stored scans.")(scans.command)
application.command(
    "runs", epilog=runs.EPILOG, short_help="List the runs and their states, or print a run's completeness sheet."
)(runs.command)
application.command("findings", epilog=findings.EPILOG, short_help="List the findings or problems of a stored scan.")(
    findings.command
)
application.command(
    "sample", epilog=sample.EPILOG, short_help="Draw a sample of objects, passes, findings or days of runs."
)(sample.command)
application.command("reperform", epilog=reperform.EPILOG, short_help="Evaluate the items of a packet again.")(
    reperform.command
)
application.command(
    "controls",
    epilog=controls.EPILOG,
    short_help="List the controls of mappings and what a stored scan shows about them.",
)(controls.command)
application.command("packet", epilog=packet.EPILOG, short_help="Write the paper of one control over a period.")(
    packet.command
)
application.command("diff", epilog=diff.EPILOG, short_help="Print what changed between two stored scans, by cause.")(
    diff.command
)
application.command("trend", epilog=trend.EPILOG, short_help="Print the daily tallies of a cluster.")(trend.command)
application.command("policies", short_help="List the policies of a stored scan.")(policies.command)
application.command("explain", short_help="Explain a policy, a problem or a finding.")(explain.command)
application.command(
    "verify-parity",
    cls=GroupedCommand,
    epilog=verify_parity.EPILOG,
    short_help="Compare verdicts with the API server's own.",
)(verify_parity.command)
application.command(
    "serve",
    cls=GroupedCommand,
    epilog=serve.EPILOG,
    short_help="Serve the stored scans as pages that can only be read.",
)(serve.command)
application.command("test", epilog=test.EPILOG, short_help="Run policy test suites.")(test.command)
application.add_typer(waiver.application, name="waiver", short_help="Check, explain and propose waivers of findings.")
application.add_typer(snapshot.application, name="snapshot", short_help="Keep what a scan lists in a file.")
application.add_typer(token.application, name="token", short_help="Make bearer tokens for `assay serve`.")
application.add_typer(rbac.application, name="rbac")
application.add_typer(db.application, name="db")
application.add_typer(config.application, name="config", short_help="Print, check or begin the configuration file.")
application.command("version")(version.command)


@application.callback()
def _root(
    show: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=version.print_version, is_eager=True),
    ] = False,
) -> None:
    """Audit existing cluster objects against admission policies."""


configure(application)


@cache
def build_commands() -> Callable[..., object]:
    """The command line, built once: building takes longer than parsing, and a process may run many commands."""
    return get_command(application)
