"""`assay snapshot create`."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.commands.scan import begin_recording_of, conclude_snapshot, evaluate, open_cluster
from scanner.cli.flags.connection import Connection, RequestLimits
from scanner.cli.flags.database import open_store_at, wait_for_database
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.kyverno import KyvernoFlags
from scanner.cli.flags.manifests import ManifestFlags
from scanner.cli.flags.pod_security import PodSecurityFlags
from scanner.cli.flags.scope import PolicyFlags, ScopeFlags
from scanner.cli.flags.simulated_request import RequestFlags
from scanner.cli.flags.snapshot import SnapshotFlags
from scanner.cli.scanning.conclusion import EXIT_INCOMPLETE
from scanner.cli.scanning.interruption import Interruption
from scanner.cli.scanning.named_cluster import NamedCluster
from scanner.cli.scanning.run_record import RunRecord
from scanner.cli.scanning.scan_flags import ScanFlags, read_options
from scanner.cli.scanning.snapshots import find_snapshot, reject_combinations
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.cluster.snapshots.recording import RecordingCluster
    from scanner.model.scans.scan import Scan

EPILOG: Final = (
    "Repeat the scan with `assay scan --from FILE`. "
    "Exit codes: 0 complete · 2 usage or configuration · 3 incomplete: the file lacks what could not be listed · 4 could not run."
)

application = typer.Typer(help="Keep what a scan lists in a file.", no_args_is_help=True, rich_markup_mode=None)


@application.callback()
def _root() -> None:
    """Keep what a scan lists in a file."""


@application.command(epilog=EPILOG)
@with_flag_groups
def create(
    arguments: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the snapshot.")],
    manifests: ManifestFlags,
    scope: ScopeFlags,
    policies: PolicyFlags,
    kyverno: KyvernoFlags,
    pod_security: PodSecurityFlags,
    request: RequestFlags,
    connection: Connection,
    limits: RequestLimits,
) -> None:
    """Write everything that a scan lists into a new file, without secrets. The scan is neither reported nor stored."""
    defaults = ScanFlags.take({flag.name: flag.default for flag in ScanFlags.flags()})
    flags = replace(
        defaults,
        manifests=manifests,
        scope=scope,
        policies=policies,
        kyverno=kyverno,
        pod_security=pod_security,
        request=request,
        connection=connection,
        limits=limits,
        snapshot=SnapshotFlags(snapshot=file),
    )
    _reject_snapshot(flags)
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        history = replace(flags.history, db=f"sqlite:{folder}/scan.sqlite")
        _create(arguments, replace(flags, history=history))


def _reject_snapshot(flags: ScanFlags) -> None:
    """Raise UsageError for a snapshot of a snapshot, and for flags that cannot be combined."""
    if snapshot := find_snapshot(flags.manifests.source):
        raise UsageError(f"{snapshot} is a snapshot already: copy the file")
    reject_combinations(flags, None)


def _create(arguments: typer.Context, flags: ScanFlags) -> None:
    from scanner.model.scans.scan import ScanState

    options, policy_files = read_options(arguments, flags)
    interruption = Interruption()
    with (
        flags.messages.progress() as progress,
        open_store_at(flags.history.db, wait_for_database("0")) as store,
        interruption,
        RunRecord(store, flags.run_name) as run_record,
        ExitStack() as stack,
    ):
        source = open_cluster(flags, options, policy_files, flags.manifests.unwritten())
        recording = begin_recording_of(flags, source, stack)
        cluster = NamedCluster(recording or source.cluster, "", interruption, progress.expect)
        flags.history.register(store, cluster.identity())
        concluding = conclude_snapshot(flags, source, source.options, recording)
        scan = evaluate(cluster, store, source.options, progress, None, None, run_record, source, concluding)
        _print(flags, scan, recording)
    raise typer.Exit(0 if scan.state is ScanState.COMPLETE else EXIT_INCOMPLETE)


def _print(flags: ScanFlags, scan: Scan, recording: RecordingCluster | None) -> None:
    from scanner.cli.terminal.stdout import standard_output, visible

    digest = next((note.split()[-1].rstrip(".") for note in scan.notes if "SHA-256" in note), "")
    withheld = recording.withheld if recording else 0
    with standard_output() as out:
        out.write(f"{visible(str(flags.snapshot.snapshot))} sha256:{digest}\n")
        out.write(f"{withheld:,} values are withheld. The scan of the snapshot is {scan.state}.\n")
