"""`--waivers` and `--waivers-namespace`: the waivers that a scan stores and that a report applies."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.flag_group import FlagGroup
from scanner.cli.flags.report_formats import ControlsOption
from scanner.cli.flags.stored_scan import AtOption
from scanner.config.current import get_settings
from scanner.config.values import parse_end

if TYPE_CHECKING:
    from scanner.model.population import KeptKeys
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.model.waiver import WaiverSet
    from scanner.posture.settings import Settings
    from scanner.posture.triage import Triage
    from scanner.scan.edges import Cluster
    from scanner.store import SqlReader

_KEEPS_KEYS: Final = "0022"
"""The schema version since which a scan records the keys of the labels that it keeps."""

WaiversOption = Annotated[
    Path | None,
    typer.Option(
        "--waivers",
        metavar="PATH",
        help="Apply the waivers in this file or folder. Default: the newest ones that a scan had stored by the date of the report.",
        show_default=False,
    ),
]
WaiversNamespaceOption = Annotated[
    str,
    typer.Option(
        "--waivers-namespace",
        metavar="NAME",
        help="Apply the waivers in the ConfigMaps of this namespace that have the label assay.dev/waivers.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Posture:
    """The settings of a command, the waivers that it names, and the day of its report.

    `path` is the place of the waivers, and `given` are waivers that were read already; without both, those that scans stored.
    """

    settings: Settings
    path: Path | None = None
    given: WaiverSet | None = None
    at: str = ""

    @property
    def day(self) -> date | None:
        """The day that `--at` names, or None for that of the scan."""
        from scanner.config.current import parse_day

        return parse_day(self.at)

    def of(self, store: SqlReader, record: StoredScan) -> Settings:
        """The settings of the report of a scan, with its waivers. Raises UsageError."""
        moment = parse_end(self.at, "--at") if self.at else record.scan.finished_at or record.scan.started_at
        if self.given is not None:
            waivers: WaiverSet | None = self.given
        elif self.path is not None:
            from scanner.documents.waivers import read_waivers

            waivers = read_waivers(self.path, find_kept_keys(record))
        else:
            waivers = store.find_waivers_at(record.scan.id, moment)
        return replace(self.settings, waivers=waivers)

    def triage(self, store: SqlReader, record: StoredScan) -> Triage:
        """The triage of a scan. Raises UsageError."""
        from scanner.posture.triage import Triage

        return Triage(self.of(store, record), record, self.day)

    def triage_then(self, store: SqlReader, record: StoredScan) -> Triage:
        """The triage of an earlier scan as of its own day: with the waivers stored by then, else those of this command.

        Raises UsageError.
        """
        stored = store.find_waivers_at(record.scan.id, record.scan.finished_at or record.scan.started_at)
        then = replace(self, at="") if stored is None else Posture(self.settings, given=stored)
        return then.triage(store, record)


@dataclass(frozen=True, slots=True)
class PostureFlags(FlagGroup):
    """The controls and the waivers of a report, and its day."""

    at: AtOption = ""
    controls: ControlsOption = ()
    waivers: WaiversOption = None

    def posture(self) -> Posture:
        """The settings of the command with these flags. Raises UsageError for a control mapping with an error."""
        return Posture(get_settings(self.controls), self.waivers, at=self.at)


@dataclass(frozen=True, slots=True)
class WaiverFlags(FlagGroup):
    """The waivers that a scan stores."""

    waivers: WaiversOption = None
    waivers_namespace: WaiversNamespaceOption = ""

    def read(self, cluster: Cluster, kept: KeptKeys) -> WaiverSet | None:
        """The waivers, or None without a flag; faults and notes are printed on stderr.

        Raises UsageError for a file with an error, ClusterError if the ConfigMaps cannot be listed.
        """
        from scanner.cli.terminal.stdout import visible
        from scanner.documents.waivers import LABEL, read_config_map_waivers, read_waivers

        if self.waivers is not None:
            return read_waivers(self.waivers, kept)
        if not self.waivers_namespace:
            return None
        from scanner.cluster.config_maps import list_config_maps

        config_maps, unlisted = list_config_maps(cluster, self.waivers_namespace, LABEL)
        waivers = read_config_map_waivers(config_maps, self.waivers_namespace, kept)
        if unlisted:
            note = f"ConfigMaps of other namespaces with the label {LABEL} waive nothing, and are not named: {unlisted}"
            waivers = replace(waivers, notes=(*waivers.notes, note))
        for line in (*(f"no waiver: {fault}" for fault in waivers.faults), *waivers.notes):
            sys.stderr.write(f"assay: {visible(line)}\n")
        return waivers


def find_kept_keys(record: StoredScan) -> KeptKeys | None:
    """The keys of the labels that a scan kept; None for a scan of an older version, which did not record them."""
    from scanner.model.population import DEFAULT_KEYS

    method = record.method
    if method is None or method.schema_version < _KEEPS_KEYS:
        return None
    return DEFAULT_KEYS.add_keys(method.kept_labels, ())
