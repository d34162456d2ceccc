"""The commands, one file each: the file of a command is imported when the command runs, or when its own help is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple, Protocol, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from scanner.cli.commands import version

EPILOG = (
    "Exit codes: 0 complete · 1 a gate failed · 2 usage or configuration · 3 the scan is incomplete · "
    "4 could not run (cluster, credentials, database)."
)


class Entry(NamedTuple):
    """A command in the list of commands. `is_grouped` tells that its help groups the options."""

    name: str
    short_help: str
    is_grouped: bool = False


ENTRIES: Final = (
    Entry("scan", "Scan a cluster or files, and report the results.", is_grouped=True),
    Entry("check", "Decide whether a cluster would admit manifests.", is_grouped=True),
    Entry("preview", "Show what a change of policies would change.", is_grouped=True),
    Entry("report", "Print the report of a stored scan."),
    Entry("scans", "List the stored scans."),
    Entry("runs", "List the runs and their states, or print a run's completeness sheet."),
    Entry("findings", "List the findings or problems of a stored scan."),
    Entry("sample", "Draw a sample of objects, passes, findings or days of runs."),
    Entry("reperform", "Evaluate the items of a packet again."),
    Entry("controls", "List the controls of mappings and what a stored scan shows about them."),
    Entry("packet", "Write the paper of one control over a period."),
    Entry("diff", "Print what changed between two stored scans, by cause."),
    Entry("trend", "Print the daily tallies of a cluster."),
    Entry("policies", "List the policies of a stored scan."),
    Entry("explain", "Explain a policy, a problem or a finding."),
    Entry("verify-parity", "Compare verdicts with the API server's own.", is_grouped=True),
    Entry("serve", "Serve the stored scans as pages that can only be read.", is_grouped=True),
    Entry("test", "Run policy test suites."),
    Entry("version", "Print the version."),
    Entry("waiver", "Check, explain and propose waivers of findings."),
    Entry("snapshot", "Keep what a scan lists in a file."),
    Entry("token", "Make bearer tokens for `assay serve`."),
    Entry("rbac", "Check or generate the RBAC permissions that a scan needs."),
    Entry("db", "Manage the database."),
    Entry("config", "Print, check or begin the configuration file."),
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


# The commands are built when they are needed: all of them together take longer than a small command.


def load(entry: Entry) -> typer.Typer:
    """An application with one command, or one group of commands, which take values from the configuration."""
    from scanner.cli.commands.configured import configure

    module = import_module(f"scanner.cli.commands.{entry.name.replace('-', '_')}")
    one = typer.Typer(rich_markup_mode=None, add_completion=False)
    if hasattr(module, "application"):
        one.add_typer(module.application, name=entry.name, short_help=entry.short_help)
    else:
        form = GroupedCommand if entry.is_grouped else TyperCommand
        epilog = getattr(module, "EPILOG", None)
        one.command(entry.name, cls=form, epilog=epilog, short_help=entry.short_help)(module.command)
    configure(one)
    return one


class _Commands(Mapping[str, object]):
    """The commands by their names, each built once."""

    def __init__(self) -> None:
        self._entries = {entry.name: entry for entry in ENTRIES}
        self._built: dict[str, object] = {}

    def __getitem__(self, name: str) -> object:
        if name not in self._built:
            self._built[name] = get_group(load(self._entries[name])).commands[name]
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class CommandGroup(TyperGroup):
    """All commands: a list of them imports none."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("MutableMapping[str, Any]", _Commands())

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - of click's signature
        """The names, in the order of the help."""
        return [entry.name for entry in ENTRIES]

    def format_commands(self, ctx: Any, formatter: Formatter) -> None:  # noqa: ARG002 - of click's signature
        """Write the names with their short helps."""
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.short_help) for entry in ENTRIES])


application = typer.Typer(
    name="assay",
    cls=CommandGroup,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@application.callback()
def _root(
    show: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=version.print_version, is_eager=True),
    ] = False,
) -> None:
    """Audit existing cluster objects against admission policies."""


@cache
def build_commands() -> Callable[..., object]:
    """The command line, built once: a process may run many commands."""
    return get_command(application)
