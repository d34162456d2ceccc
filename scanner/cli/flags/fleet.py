"""The flags of a fleet: `--fleet FILE` with the `--index` of one cluster, or with `--parallel` for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from scanner.cli.flags.connection import PANEL
from scanner.cli.flags.flag_group import FlagGroup

FleetOption = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        help="File of the clusters of a fleet: a list `clusters` of name, kubeconfig, context, schedule and timeZone.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class FleetFlags(FlagGroup):
    """The file of the clusters, and which of them to scan."""

    fleet: FleetOption = None
    index: Annotated[
        int | None,
        typer.Option(
            "--index",
            min=0,
            metavar="N",
            help="With --fleet: scan the cluster with this index, as an Indexed Job numbers its pods. The first is 0.",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = None
    parallel: Annotated[
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
    ] = None
