"""The flags of a fleet: `--fleet FILE` with the `--index` of one cluster, or with `--parallel` for all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from scanner.cli.flags.connection import PANEL, FleetOption
from scanner.cli.flags.report_formats import DEFAULT, FLAGS
from scanner.cli.terminal.stderr import LogFormat
from scanner.errors import UsageError

_IndexOption = Annotated[
    int | None,
    typer.Option(
        "--index",
        min=0,
        metavar="N",
        help="With --fleet: scan the cluster with this index, as an Indexed Job numbers its pods. The first is 0.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
_ParallelOption = Annotated[
    int | None,
    typer.Option(
        "--parallel",
        min=1,
        max=64,
        metavar="N",
        help="With --fleet: scan all clusters, this number of them at a time.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
_BEFORE: Final = "workers"


def with_fleet_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give `scan` the flags of a fleet. The command itself scans one cluster and does not know of the others."""
    parameters = list(inspect.signature(command, eval_str=True).parameters.values())
    place = [parameter.name for parameter in parameters].index(_BEFORE)

    @wraps(command)
    def run(**values: Any) -> None:
        fleet, index, parallel = (values.pop(name) for name in ("fleet", "index", "parallel"))
        if fleet is None:
            command(**values)
        elif index is not None:
            _scan_one(command, values, fleet, index)
        elif parallel is not None:
            _scan_all(values, fleet, parallel)
        else:
            raise UsageError("--fleet needs --index N for one cluster, or --parallel N for all of them")

    flags = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)
        for name, annotation in (("fleet", FleetOption), ("index", _IndexOption), ("parallel", _ParallelOption))
    ]
    run.__signature__ = inspect.Signature([*parameters[:place], *flags, *parameters[place:]])  # type: ignore[attr-defined]
    return run


def _scan_one(command: Callable[..., None], values: Mapping[str, Any], fleet: Path, index: int) -> None:
    from scanner.config.current import expect_runs
    from scanner.documents.fleet import get_member, read_fleet

    member = get_member(read_fleet(fleet), index, fleet)
    of_member = {"kubeconfig": member.kubeconfig, "context": member.context, "cluster_name": member.name}
    with expect_runs(member.schedule, member.time_zone):
        command(**{**values, **of_member})


def _scan_all(values: Mapping[str, Any], fleet: Path, parallel: int) -> None:
    from scanner.cli.scanning.conclusion import use_messages
    from scanner.cli.scanning.fleet import scan_all
    from scanner.documents.fleet import read_fleet

    exports = [f"--{name.replace('_', '-')}" for name in ("export", *FLAGS.values()) if values[name]]
    if values["output"] != DEFAULT or exports:
        raise UsageError(
            f"--parallel prints a line for each cluster: leave out {exports[0] if exports else '-o'}, and print the report of a "
            "cluster with: assay report --cluster-name NAME"
        )
    use_messages(LogFormat(values["log_format"]), values["termination_log"])
    code = scan_all(values["arguments"].obj, read_fleet(fleet), parallel, own_workers=values["workers"] is not None)
    raise typer.Exit(code)
