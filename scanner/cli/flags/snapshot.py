"""The flags of `assay scan` for snapshots: the file to make, and the history that a replay enters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from scanner.cli.flags.flag_group import FlagGroup

PANEL = "Snapshots"


@dataclass(frozen=True, slots=True)
class SnapshotFlags(FlagGroup):
    """The snapshot that a scan makes, and the name under which a replay is recorded."""

    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--snapshot",
            metavar="FILE",
            help="Also write everything that this scan lists into a new file, without secrets: `scan --from FILE` repeats the scan.",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = None
    record_as: Annotated[
        str,
        typer.Option(
            "--record-as",
            metavar="NAME",
            help="With --from SNAPSHOT: store the scan in the history of this cluster name. Default: a replay enters no history.",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = ""
