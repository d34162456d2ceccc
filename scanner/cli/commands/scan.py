"""`assay scan`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from scanner.cli.flags.database import open_store_at, wait_for_database
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.report_formats import DEFAULT
from scanner.cli.flags.rights import make_check_arguments
from scanner.cli.flags.screen import make_screen
from scanner.cli.flags.waivers import Posture
from scanner.cli.scanning.conclusion import Ending, conclude, decide_ending, explain_emptiness
from scanner.cli.scanning.inputs import list_policies_among, read_cluster_files, reject_stdin_twice
from scanner.cli.scanning.interruption import EXIT_INTERRUPTED, INTERRUPTED, Interruption
from scanner.cli.scanning.metrics_push import MetricsPush
from scanner.cli.scanning.named_cluster import NamedCluster
from scanner.cli.scanning.notifications import Notifications
from scanner.cli.scanning.run_record import RunRecord
from scanner.cli.scanning.scan_flags import ScanFlags, read_options
from scanner.cli.scanning.snapshots import (
    NOTE,
    REPLAY_NOTE,
    begin_recording,
    find_snapshot,
    of_replay,
    open_snapshot,
    reject_combinations,
    restore_options,
    write_options,
)
from scanner.cli.terminal.program import find_program
from scanner.config.current import get_settings
from scanner.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from scanner.cli.flags.manifests import Unwritten
    from scanner.cli.flags.report_formats import ReportOutputs
    from scanner.cli.scanning.inputs import PolicyFiles
    from scanner.cli.terminal.progress import Progress
    from scanner.cluster.files.snapshot import SnapshotCluster
    from scanner.cluster.snapshots.recording import RecordingCluster
    from scanner.cluster.snapshots.replay import ReplayedCluster
    from scanner.model.scans.scan import Scan, ScanEnd
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.opinion.comparison import EngineComparison
    from scanner.report.document.document import Document
    from scanner.report.text.screen import Screen
    from scanner.scan.edges import Cluster
    from scanner.scan.options import Options
    from scanner.store import SqlStore

EPILOG: Final = (
    "Examples: `assay scan` · `assay scan -n payments -o json` · `assay scan --from manifests/ -f policies/`. "
    "Exit codes: 0 complete · 1 a --fail-on gate failed · 2 usage or configuration · 3 incomplete: the report lists what could not be "
    "scanned; or interrupted · 4 could not run."
)
_MOST_PLACED: Final = 25_000
"""The findings with a line of their own: GitHub takes so many results of a file."""


@with_flag_groups
def command(arguments: typer.Context, flags: ScanFlags) -> None:
    """Evaluate every object against every bound policy, store the results and print a report."""
    from scanner.config.current import expect_runs
    from scanner.documents.fleet import get_member, read_fleet

    fleet = flags.fleet
    if fleet.fleet is None:
        _scan_cluster(arguments, flags)
    elif fleet.index is not None:
        member = get_member(read_fleet(fleet.fleet), fleet.index, fleet.fleet)
        with expect_runs(member.schedule, member.time_zone):
            _scan_cluster(arguments, flags.of_member(member))
    elif fleet.parallel is not None:
        raise typer.Exit(_scan_fleet(arguments.obj, flags, fleet.fleet, fleet.parallel))
    else:
        raise UsageError("--fleet needs --index N for one cluster, or --parallel N for all of them")


def _log_controls(document: Document) -> None:
    """Log what readers of the report see beside its controls: logs may be all that is kept of a run."""
    from scanner.cli.terminal.stderr import JsonLines, log
    from scanner.report.document.sentences import whole_policies_note

    for framework in document.controls if isinstance(sys.stderr, JsonLines) else ():
        if note := whole_policies_note(framework):
            log(sys.stderr, f"{framework.heading}: {note}", {"framework": framework.name})


def _scan_cluster(arguments: typer.Context, flags: ScanFlags) -> None:
    """Scan a cluster, or repeat a scan from its snapshot, which enters no history by itself. Ends with the exit code of the scan."""
    snapshot = find_snapshot(flags.manifests.source)
    reject_combinations(flags, snapshot)
    with of_replay(flags, snapshot) as replayed:
        scan_once(arguments, replayed)


def scan_once(arguments: typer.Context, flags: ScanFlags) -> None:
    """Scan a cluster, or the files that stand for one, store the scan, and report it. Ends with the exit code of the scan."""
    from scanner.report.document.document import document_of

    outputs = flags.reports.outputs()
    flags.messages.use()
    reject_stdin_twice([*flags.manifests.source, *flags.policies.files, *flags.controls])
    outputs.reject_without_files(flags.manifests.source)
    options, policy_files = read_options(arguments, flags)
    posture = Posture(get_settings(flags.controls))
    unwritten = flags.manifests.unwritten()
    interruption = Interruption()
    wait = wait_for_database(flags.history.database_timeout, lambda: interruption.is_pending)
    with (
        flags.messages.progress() as progress,
        MetricsPush(flags.push, flags.run_name) as metrics,
        open_store_at(flags.history.db, wait) as store,
        interruption,
        Notifications(store, metrics, interruption) as notifications,
        RunRecord(store, flags.run_name, options.method.command_line) as run_record,
    ):
        _recommend_preview(flags, progress)
        with flags.second_opinion.comparison() as comparison, ExitStack() as stack:
            source = open_cluster(flags, options, policy_files, unwritten)
            run_record.name(source.place)
            metrics.name(flags.run_name or source.place)
            recording = begin_recording_of(flags, source, stack)
            cluster = NamedCluster(
                recording or source.cluster, flags.history.cluster_name, interruption, progress.expect
            )
            metrics.name(cluster.identity().name)
            flags.history.register(store, cluster.identity())
            baseline = flags.gates.named_baseline(store, cluster.identity().key)
            waivers = flags.waivers.read(cluster, options.kept_keys)
            options = replace(source.options, waivers=waivers)
            concluding = conclude_snapshot(flags, source, options, recording)
            scan = evaluate(
                cluster, store, options, progress, flags.workers, comparison, run_record, source, concluding
            )
            _place_findings(store, scan.id, source.files)
        interruption.recorded()
        record: StoredScan = store.read_scan(scan.id)
        posture = replace(posture, given=waivers)
        notifications.scanned(record, posture)
        try:
            with interruption.interruptible():
                record, verdict = flags.gates.compare_and_evaluate(store, record, baseline, posture)
                ending = decide_ending(record, verdict, flags.min_coverage, flags.completeness)
                if interruption.happened and ending.code != EXIT_INTERRUPTED:
                    ending = Ending(EXIT_INTERRUPTED, INTERRUPTED)
                run_record.because(ending.reason)
                compared = replace(flags.gates.report_options(), compare=partial(store.compare_since, record.scan.id))
                document = document_of(record, posture.of(store, record), options=compared)
                metrics.scanned(document, store)
                conclude(document, ending)
                _print_summary(record, document, outputs, progress, ending.code, source.cluster)
                _log_controls(document)
                outputs.write(document, _make_screen(arguments, flags, outputs))
        except KeyboardInterrupt:
            sys.stderr.write(f"assay: interrupted; the scan is stored, print its report with: assay report {scan.id}\n")
            run_record.because("interrupted after the scan was stored")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        raise typer.Exit(ending.code)


@dataclass(frozen=True, slots=True)
class OpenedCluster:
    """The cluster of a scan with its name, and the options of the scan. `files` is the cluster that files stand for."""

    cluster: Cluster
    place: str
    options: Options
    files: SnapshotCluster | None = None
    replayed: ReplayedCluster | None = None


def open_cluster(flags: ScanFlags, options: Options, policy_files: PolicyFiles, unwritten: Unwritten) -> OpenedCluster:
    """The cluster, before any request, or the manifests, whose policies are added to the options.

    Raises ClusterError without credentials, UsageError for invalid durations and for manifests that cannot be read.
    """
    manifests, name = flags.manifests, flags.history.cluster_name
    if snapshot := find_snapshot(manifests.source):
        replayed = open_snapshot(snapshot, kubernetes_version=unwritten.kubernetes_version)
        options = restore_options(options, flags, replayed.options)
        return OpenedCluster(replayed, manifests.place, options, replayed=replayed)
    if not manifests.source:
        live = flags.connection.cluster(flags.limits)
        method = replace(options.method, credentials_until=live.valid_until)
        return OpenedCluster(live, live.place, replace(options, method=method))
    files = read_cluster_files(manifests.source, options.scope, name, unwritten, policy_files.definitions)
    embedded = list_policies_among(files, policy_files.read) if options.cluster_policies else ()
    options = replace(options, manifests=(*options.manifests, *embedded), cluster_policies=False)
    return OpenedCluster(files, manifests.place, options, files)


def begin_recording_of(flags: ScanFlags, source: OpenedCluster, stack: ExitStack) -> RecordingCluster | None:
    """The cluster that is written into a snapshot, if the scan makes one; what is not complete is removed at the end of the stack."""
    path = flags.snapshot.snapshot
    if source.replayed:
        stack.callback(source.replayed.close)
    return stack.enter_context(begin_recording(source.cluster, path)) if path else None


def conclude_snapshot(
    flags: ScanFlags, source: OpenedCluster, options: Options, recording: RecordingCluster | None
) -> Callable[[ScanEnd, datetime], ScanEnd]:
    """Complete the snapshot when the scan ends, and note the digest with the scan; a replay has that of its own snapshot."""

    def conclude_scan(end: ScanEnd, started: datetime) -> ScanEnd:
        notes = [REPLAY_NOTE.format(source.replayed.sha256)] if source.replayed else []
        if recording:
            from scanner.preview.plugins import DEFAULTS, LISTED, NAMED

            recording.add_lists((*LISTED, *NAMED, *DEFAULTS))
            digest = recording.close(started=started, options=write_options(options, flags))
            notes.append(NOTE.format(digest))
        return replace(end, notes=(*end.notes, *notes))

    return conclude_scan


def evaluate(
    cluster: NamedCluster,
    store: SqlStore,
    options: Options,
    progress: Progress,
    workers: int | None,
    comparison: EngineComparison | None,
    run_record: RunRecord,
    source: OpenedCluster,
    concluding: Callable[[ScanEnd, datetime], ScanEnd],
) -> Scan:
    """Evaluate every object, and store the outcomes as a scan."""
    import secrets

    from scanner.scan.clocks import compare_clocks
    from scanner.scan.run import run
    from scanner.scan.workers.cores import count_cores
    from scanner.scan.workers.pool import FORK_AFTER_BYTES
    from scanner.scan.workers.process import return_freed_memory
    from scanner.store.database.clocks import SteadyClock, utc_now

    return_freed_memory()
    identity = cluster.identity()
    version = f" ({identity.server_version})" if identity.server_version else ""
    if configuration := options.method.configuration.path:
        progress.print_line(f"Configuration {configuration}")
    progress.print_line(f"Scanning {identity.name}{version} into {store.address}")
    clock = SteadyClock(utc_now())
    dated = compare_clocks(cluster, store, clock)
    if source.replayed:
        dated = replace(dated, started=source.replayed.started, ahead=source.replayed.started - clock())
    scan_id = f"{dated.started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    run_record.begins(scan_id)
    scan = run(
        cluster,
        store,
        options,
        scan_id=scan_id,
        clock=clock,
        dated=dated,
        progress=progress,
        workers=workers or count_cores(),
        fork_after_bytes=0 if workers else FORK_AFTER_BYTES,
        comparison=comparison,
        conclude=lambda end: concluding(end, dated.started),
    )
    progress.finish()
    return scan


def _recommend_preview(flags: ScanFlags, progress: Progress) -> None:
    """Print the command that replaces `--assume-bound`, which goes in the next release."""
    assumed = flags.policies.assume_bound
    if not assumed:
        return
    sources = [("--against", str(path)) for path in flags.manifests.source[:1]]
    words = [*(("-f", str(path)) for path in flags.policies.files), *(("--bind", text) for text in assumed), *sources]
    preview = shlex.join(word for pair in words for word in pair)
    progress.print_line(f"--assume-bound goes in the next release. Use instead: {find_program()} preview {preview}")


def _place_findings(store: SqlStore, scan_id: str, files: SnapshotCluster | None) -> None:
    """Store the files and lines of the objects, and of the fields that decided the findings; nothing for a live cluster."""
    from scanner.posture.deciding_fields import fields_by_object

    if files is None:
        return
    # Each object of a file of one line has the line of its fields.
    findings = islice(store.read_scan(scan_id).findings(), _MOST_PLACED) if files.has_lines() else ()
    store.write_places(scan_id, files.list_places(fields_by_object(findings)))


def _print_summary(
    record: StoredScan, document: Document, outputs: ReportOutputs, progress: Progress, code: int, cluster: Cluster
) -> None:
    """Print the number of requests, and the end of the scan unless its table follows on standard output."""
    from scanner.model.scans.scan import ScanState
    from scanner.report.document.sentences import counted_line

    if (requests := getattr(cluster, "requests", None)) is not None:
        progress.print_line(f"{requests:,} requests to the API server")
    scan = record.scan
    if outputs.stdout != DEFAULT:
        gaps = f", {len(record.gaps)} gaps: exit code {code}" if scan.state is not ScanState.COMPLETE else ""
        progress.print_line(f"Scan {scan.id} is {scan.state}: {counted_line(document)}{gaps}")
        if sentence := explain_emptiness(record):
            progress.print_line(sentence)
    progress.finish()


def _make_screen(arguments: typer.Context, flags: ScanFlags, outputs: ReportOutputs) -> Screen:
    """The screen of the summary. Files need no rights, so no command that checks them is recommended, and a replay leaves no scan."""
    rights = "" if flags.manifests.source else make_check_arguments(flags.rights, flags.connection)
    screen = make_screen(arguments, flags.history.db, flags.screen, pages=outputs.has_pages, rights=rights)
    snapshot = None if flags.snapshot.record_as else find_snapshot(flags.manifests.source)
    return replace(screen, replayed=shlex.quote(str(snapshot))) if snapshot else screen


def _scan_fleet(arguments: Sequence[str], flags: ScanFlags, fleet: Path, parallel: int) -> int:
    """Scan every cluster of a fleet, and return the worst exit code. Raises UsageError for a flag of the reports."""
    from scanner.cli.scanning.fleet import scan_all
    from scanner.documents.fleet import read_fleet

    exports = flags.reports.exports.typed()
    if flags.reports.output != DEFAULT or exports:
        raise UsageError(
            f"--parallel prints a line for each cluster: leave out {exports[0] if exports else '-o'}, and print the report of a "
            "cluster with: assay report --cluster-name NAME"
        )
    flags.messages.use()
    return scan_all(arguments, read_fleet(fleet), parallel, own_workers=flags.workers is not None)
