"""`assay scan`."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.completion import clusters
from scanner.cli.flags.completion import policies as policy_names
from scanner.cli.flags.connection import (
    AsGroupsOption,
    AsOption,
    BurstOption,
    ChunkSizeOption,
    ConcurrencyOption,
    Connection,
    ContextOption,
    KindTimeoutOption,
    KubeconfigOption,
    QpsOption,
    RequestTimeoutOption,
)
from scanner.cli.flags.database import DbOption, store_at
from scanner.cli.flags.gates import BaselineOption, FailOnOption, MinSeverityOption, baseline_of, compare_and_evaluate
from scanner.cli.flags.kept_labels import KeepAnnotationsOption, KeepLabelsOption, kept_keys
from scanner.cli.flags.report_formats import (
    DEFAULT,
    ControlsOption,
    Exports,
    JunitFailAllOption,
    OutputOption,
    has_pages,
    reject_without_files,
    report_options,
    with_export_flags,
)
from scanner.cli.flags.rights import RightsScope, check_arguments
from scanner.cli.flags.scope import (
    POLICIES,
    SCOPE,
    FilesOption,
    FiltersOption,
    KindsOption,
    KyvernoVersionOption,
    NamespacesOption,
    NoClusterPoliciesOption,
    SkipKindsOption,
    kyverno_configuration,
    scope_of,
)
from scanner.cli.flags.screen import ColorOption, WideOption, screen_of
from scanner.cli.flags.second_opinion import SampleOption, SecondOpinionOption, second_opinion
from scanner.cli.flags.simulated_request import (
    ExtraOption,
    GroupsOption,
    Operation,
    OperationOption,
    UidOption,
    UserOption,
    requester,
)
from scanner.cli.flags.waivers import Posture, WaiversNamespaceOption, WaiversOption, waivers_of_scan
from scanner.cli.scanning.conclusion import (
    ExitZeroOnOption,
    TerminationLogOption,
    conclude,
    ending_of,
    nothing_in,
    use_messages,
)
from scanner.cli.scanning.fleet_flags import with_fleet_flags
from scanner.cli.scanning.inputs import (
    Unwritten,
    files_as_cluster,
    policies_among,
    read_policy_files,
    reject_stdin_twice,
)
from scanner.cli.scanning.interruption import Interruption
from scanner.cli.scanning.method import method_of
from scanner.cli.scanning.metrics_push import MetricsPush, PushMetricsOption, PushMetricsTokenFileOption
from scanner.cli.scanning.named_cluster import NamedCluster
from scanner.cli.scanning.notifications import Notifications
from scanner.cli.scanning.run_record import RunRecord
from scanner.cli.terminal.progress import Progress
from scanner.cli.terminal.stderr import LogFormat, LogFormatOption
from scanner.cli.terminal.stdout import QuietOption
from scanner.config.current import get_settings
from scanner.config.values import (
    parse_assumption,
    parse_kubernetes_version,
    parse_kyverno_version,
    parse_namespace_labels,
    parse_seconds,
)
from scanner.report.text.screen import Color

if TYPE_CHECKING:
    from scanner.cli.scanning.inputs import PolicyFiles
    from scanner.cluster.files.snapshot import SnapshotCluster
    from scanner.model.population import KeptKeys
    from scanner.model.resource import UserInfo
    from scanner.model.scans.method import Method
    from scanner.model.scans.scan import Scan, Scope
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.opinion.comparison import EngineComparison
    from scanner.policies.kyverno.libraries import Network
    from scanner.report.document.document import Document
    from scanner.report.text.screen import Screen
    from scanner.scan.edges import Cluster
    from scanner.scan.options import Options
    from scanner.store import SqlStore

EPILOG = (
    "Examples: `assay scan` · `assay scan -n payments -o json` · `assay scan --from manifests/ -f policies/` · "
    "`assay scan -f new-policy.yaml --assume-bound new-policy=Warn`. "
    "Exit codes: 0 complete · 1 a --fail-on gate failed · 2 usage or configuration · 3 incomplete: the report lists what could not be "
    "scanned · 4 could not run."
)
_WEEK = 7 * 24 * 3600
_MOST_PLACED = 25_000
"""The findings with a line of their own: GitHub takes so many results of a file."""


class KyvernoCompat(StrEnum):
    """The Kyverno component whose reports to reproduce."""

    CONTROLLER = "controller"
    CLI = "cli"


@with_fleet_flags
@with_export_flags
def command(
    arguments: typer.Context,
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Scan manifests (a folder, a file, or - for stdin) instead of a cluster (repeatable).",
            rich_help_panel=SCOPE,
        ),
    ] = None,
    version: Annotated[
        str,
        typer.Option(
            "--kubernetes-version",
            metavar="VERSION",
            help="With --from: apply the rules of this Kubernetes release. Default: the newest supported one.",
            rich_help_panel=SCOPE,
            show_default=False,
        ),
    ] = "",
    namespace_label: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace-label",
            metavar="NS=KEY=VALUE",
            help="With --from: a label of a namespace that the files do not describe (repeatable).",
            rich_help_panel=SCOPE,
        ),
    ] = None,
    namespaces: NamespacesOption = None,
    all_namespaces: Annotated[  # noqa: ARG001 - a scan has all namespaces unless -n names some, which -A excludes
        bool,
        typer.Option("-A", "--all-namespaces", help="All namespaces (the default).", rich_help_panel=SCOPE),
    ] = False,
    exclude_namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-namespace",
            metavar="NAME",
            help="Leave out this namespace; accepts globs (repeatable).",
            rich_help_panel=SCOPE,
        ),
    ] = None,
    selector: Annotated[
        str,
        typer.Option(
            "-l",
            "--selector",
            metavar="LABELS",
            help="Only objects that match this label selector, such as app=web,tier!=cache.",
            rich_help_panel=SCOPE,
            show_default=False,
        ),
    ] = "",
    kinds: KindsOption = None,
    skip_kinds: SkipKindsOption = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Only this policy; accepts globs (repeatable).",
            rich_help_panel=POLICIES,
            autocompletion=policy_names,
        ),
    ] = None,
    bindings: Annotated[
        list[str] | None,
        typer.Option(
            "--binding",
            metavar="NAME",
            help="Only this binding; accepts globs (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = None,
    files: FilesOption = None,
    no_cluster_policies: NoClusterPoliciesOption = False,
    assume_bound: Annotated[
        list[str] | None,
        typer.Option(
            "--assume-bound",
            metavar="POLICY[=ACTION]",
            help="Preview a policy as if it were bound with this action: Deny, Warn or Audit. Default: Deny (repeatable).",
            rich_help_panel=POLICIES,
            autocompletion=policy_names,
        ),
    ] = None,
    kyverno_release: KyvernoVersionOption = "",
    kyverno_compat: Annotated[
        KyvernoCompat | None,
        typer.Option(
            "--kyverno-compat",
            help="Evaluate Kyverno policies as Kyverno's background scan (controller) or CLI does, instead of as its webhook.",
            rich_help_panel=POLICIES,
            show_default=False,
        ),
    ] = None,
    kyverno_filters: FiltersOption = None,
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Allow the HTTP and image registry requests of Kyverno policies, to public addresses. Never sends Secret data.",
            rich_help_panel=POLICIES,
        ),
    ] = False,
    allow_network_to: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-network-to",
            metavar="CIDR|HOST",
            help="With --allow-network: also allow this host or these addresses, although they are not public (repeatable).",
            rich_help_panel=POLICIES,
        ),
    ] = None,
    operation: OperationOption = Operation.AUTO,
    user: UserOption = "",
    user_groups: GroupsOption = None,
    user_uid: UidOption = "",
    user_extra: ExtraOption = None,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    as_user: AsOption = "",
    as_groups: AsGroupsOption = None,
    request_timeout: RequestTimeoutOption = "60s",
    kind_timeout: KindTimeoutOption = "30m",
    chunk_size: ChunkSizeOption = 500,
    concurrency: ConcurrencyOption = 4,
    qps: QpsOption = 50,
    burst: BurstOption = 100,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            max=64,
            metavar="N",
            help="Number of evaluation processes. Default: one per core, at most 8; 1 starts no other process.",
            show_default=False,
        ),
    ] = None,
    engine: SecondOpinionOption = None,
    sample: SampleOption = None,
    min_coverage: Annotated[
        float,
        typer.Option(
            "--min-coverage",
            min=0,
            max=100,
            metavar="PERCENT",
            help="Exit with code 0 instead of 3 if at least this share of the kinds was listed completely.",
        ),
    ] = 100,
    keep_labels: KeepLabelsOption = None,
    keep_annotations: KeepAnnotationsOption = None,
    waivers: WaiversOption = None,
    waivers_namespace: WaiversNamespaceOption = "",
    output: OutputOption = DEFAULT,
    *,
    exports: Exports,
    controls: ControlsOption = None,
    db: DbOption = "",
    cluster_name: Annotated[
        str,
        typer.Option(
            "--cluster-name",
            metavar="NAME",
            help="Name of the cluster: scans with the same name share one history; `assay db rename-cluster` carries a history over to another name. Default: tell clusters apart by the UID of kube-system, folders by their path.",
            show_default=False,
            autocompletion=clusters,
        ),
    ] = "",
    restored_cluster: Annotated[
        bool,
        typer.Option(
            "--restored-cluster",
            help="Continue the history of a cluster that was restored from a backup; with --cluster-name, also of one that was built anew.",
        ),
    ] = False,
    accept_damage: Annotated[
        bool,
        typer.Option(
            "--accept-damage",
            help="Go on with the rows of a damaged database as they are. The report of the scan names them.",
        ),
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Accept a scan without a bound policy or without objects as complete."),
    ] = False,
    exit_zero_on: ExitZeroOnOption = None,
    fail_on: FailOnOption = None,
    baseline: BaselineOption = "",
    min_severity: MinSeverityOption = None,
    junit_fail_all: JunitFailAllOption = False,
    push_metrics: PushMetricsOption = "",
    push_metrics_token_file: PushMetricsTokenFileOption = None,
    wide: WideOption = False,
    color: ColorOption = Color.AUTO,
    quiet: QuietOption = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print every page of a list on stderr.")] = False,
    log_format: LogFormatOption = LogFormat.TEXT,
    termination_log: TerminationLogOption = None,
) -> None:
    """Evaluate every object against every bound policy, store the results and print a report."""
    from scanner.model.population import DEFAULT_KEYS
    from scanner.report.document.document import document_of

    use_messages(log_format, termination_log)
    connection = Connection(
        kubeconfig=kubeconfig,
        context=context,
        as_user=as_user,
        as_groups=tuple(as_groups or ()),
        request_timeout=request_timeout,
        kind_timeout=kind_timeout,
        chunk_size=chunk_size,
        concurrency=concurrency,
        qps=qps,
        burst=burst,
    )
    reject_stdin_twice([*(source or ()), *(files or ()), *(controls or ())])
    reject_without_files(source, output, exports)
    kept = kept_keys(keep_labels or [], keep_annotations or [], get_settings().owners)
    scope = scope_of(
        operation=operation.value,
        namespaces=namespaces,
        exclude_namespaces=exclude_namespaces,
        selector=selector,
        kinds=kinds,
        skip_kinds=skip_kinds,
        policies=policies,
        bindings=bindings,
    )
    options, given = _options(
        scope,
        files or [],
        cluster_policies=not no_cluster_policies,
        assume_bound=assume_bound or [],
        user=requester(user, user_groups, user_uid, user_extra),
        kyverno_version=parse_kyverno_version(kyverno_release),
        kyverno_compat=kyverno_compat,
        kyverno_filters=kyverno_filters or [],
        network=_network(allow_network_to or []) if allow_network else None,
        kept=kept,
        method=method_of(
            arguments,
            kyverno_compat=kyverno_compat.value if kyverno_compat else "",
            network_to=allow_network_to or [],
            network=allow_network,
            chunk_size=0 if source else chunk_size,
            policy_files=files or [],
            without_cluster_policies=no_cluster_policies,
            kept_labels=kept.labels - DEFAULT_KEYS.labels,
        ),
        silence=_silence(kind_timeout),
        allow_empty=allow_empty,
    )
    posture = Posture(get_settings(controls or ()))
    saved: SnapshotCluster | None = None
    cluster: Cluster
    unwritten = Unwritten(parse_kubernetes_version(version), parse_namespace_labels(namespace_label or []))
    name = cluster_name or context or _place(source or [])
    with (
        Progress(quiet=quiet, verbose=verbose) as progress,
        MetricsPush(push_metrics, push_metrics_token_file, name) as metrics,
        store_at(db) as store,
        Interruption() as interruption,
        Notifications(store, metrics, interruption) as notifications,
        RunRecord(store, name, options.method.command_line) as run_record,
    ):
        with second_opinion(engine, sample) as comparison:
            with interruption.interruptible():
                if source:
                    saved, options = _from_files(source, options, given, cluster_name, unwritten)
                    cluster = saved
                else:
                    cluster = live = connection.cluster()
                    run_record.name(live.place)
                    metrics.name(name or live.place)
            named = NamedCluster(cluster, cluster_name, interruption, progress.expect)
            metrics.name(named.identity().name)
            _register(store, named, restored=restored_cluster)
            compared = baseline_of(store, baseline, named.identity().key)
            read = waivers_of_scan(named, waivers, waivers_namespace, options.kept_keys)
            options = replace(options, waivers=read, restored=restored_cluster, accept_damage=accept_damage)
            scan = _run(named, store, options, progress, workers, comparison, run_record)
            if saved:
                _place_findings(store, scan.id, saved)
        interruption.recorded()
        record: StoredScan = store.read_scan(scan.id)
        posture = replace(posture, given=options.waivers)
        notifications.scanned(record, posture)
        record, failure = compare_and_evaluate(store, record, fail_on or (), compared, posture, min_severity)
        ending = ending_of(record, failure, min_coverage, exit_zero_on, allow_empty=allow_empty)
        run_record.because(ending.reason)
        try:
            with interruption.interruptible():
                document = document_of(
                    record,
                    posture.of(store, record),
                    options=report_options(fail_on, min_severity, fail_all=junit_fail_all),
                )
                metrics.scanned(document, store)
                conclude(document, ending)
                _print_report(
                    record,
                    document,
                    output,
                    exports,
                    progress,
                    ending.code,
                    cluster,
                    screen_of(
                        arguments,
                        db,
                        wide=wide,
                        color=color,
                        pages=has_pages(exports),
                        rights=""
                        if source
                        else check_arguments(
                            RightsScope.of(
                                namespaces,
                                skip_kinds,
                                files,
                                kyverno_filters,
                                kyverno_version=kyverno_release,
                                waivers_namespace=waivers_namespace,
                                cluster_policies=not no_cluster_policies,
                            ),
                            connection,
                        ),
                    ),
                )
        except KeyboardInterrupt:
            sys.stderr.write(f"assay: interrupted; the scan is stored, print its report with: assay report {scan.id}\n")
        raise typer.Exit(ending.code)


def _silence(kind_timeout: str) -> int:
    """The seconds without a beat after which a scan that was killed is given up: a kind may be listed for that long."""
    from scanner.model.scans.scan import SILENCE

    return SILENCE + round(min(parse_seconds(kind_timeout, "--kind-timeout") or 0, _WEEK))


def _place(source: list[Path]) -> str:
    """The name of a run of files; empty for a run without files."""
    from scanner.cluster.files.snapshot import name_folders

    return name_folders(source) if source else ""


def _register(store: SqlStore, cluster: NamedCluster, *, restored: bool) -> None:
    """Find or begin the history of the cluster, and print what becomes of earlier scans, once. Raises UsageError."""
    from scanner.cli.terminal.stdout import visible

    if note := store.register(cluster.identity(), restored=restored):
        sys.stderr.write(f"assay: {visible(note)}\n")


def _place_findings(store: SqlStore, scan_id: str, files: SnapshotCluster) -> None:
    """Store the files and lines of the objects, and of the fields that decided the findings."""
    from scanner.posture.deciding_fields import fields_by_object

    # Each object of a file of one line has the line of its fields.
    findings = islice(store.read_scan(scan_id).findings(), _MOST_PLACED) if files.has_lines() else ()
    store.write_places(scan_id, files.list_places(fields_by_object(findings)))


def _print_requests(cluster: Cluster, progress: Progress) -> None:
    if (requests := getattr(cluster, "requests", None)) is not None:
        progress.print_line(f"{requests:,} requests to the API server")


def _options(
    scope: Scope,
    files: list[Path],
    *,
    cluster_policies: bool,
    assume_bound: list[str],
    user: UserInfo | None,
    kyverno_version: str,
    kyverno_compat: KyvernoCompat | None,
    kyverno_filters: list[str],
    network: Network | None,
    kept: KeptKeys,
    method: Method,
    silence: int,
    allow_empty: bool,
) -> tuple[Options, PolicyFiles]:
    """The options of a scan, and the policy files that it reads."""
    from scanner.cluster.yaml import load
    from scanner.policies.kyverno.family import KyvernoOptions
    from scanner.policies.language import with_options
    from scanner.scan.options import Options

    given = read_policy_files(files)
    kyverno = KyvernoOptions(
        compat=kyverno_compat.value if kyverno_compat else "",
        parse=load,
        network=network,
        configuration=kyverno_configuration(kyverno_filters),
        version=kyverno_version,
    )
    options = Options(
        scope=scope,
        manifests=given.manifests,
        definitions=given.kinds,
        outside=given.outside,
        cluster_policies=cluster_policies,
        derived_policies=cluster_policies,
        assume_bound=tuple(parse_assumption(text) for text in assume_bound),
        user=user,
        languages=with_options(kyverno),
        kept_keys=kept,
        method=method,
        silence=silence,
        allow_empty=allow_empty,
    )
    return options, given


def _network(allowed: list[str]) -> Network:
    from scanner.cluster.outside.destinations import parse_destinations
    from scanner.cluster.outside.http_client import HttpClient

    return HttpClient(parse_destinations(allowed))


def _from_files(
    source: list[Path], options: Options, given: PolicyFiles, name: str, unwritten: Unwritten
) -> tuple[SnapshotCluster, Options]:
    """The cluster that the files stand for, and the options with the policies among the files."""
    cluster = files_as_cluster(source, options.scope, name, unwritten, given.definitions)
    embedded = policies_among(cluster, given.read) if options.cluster_policies else ()
    return cluster, replace(options, manifests=(*options.manifests, *embedded), cluster_policies=False)


def _run(
    cluster: NamedCluster,
    store: SqlStore,
    options: Options,
    progress: Progress,
    workers: int | None,
    comparison: EngineComparison | None,
    run_record: RunRecord,
) -> Scan:
    import secrets

    from scanner.scan.clocks import compare_clocks
    from scanner.scan.run import run
    from scanner.scan.workers import FORK_AFTER_BYTES, count_cores, return_freed_memory
    from scanner.store.database.clocks import SteadyClock, utc_now

    return_freed_memory()
    identity = cluster.identity()
    version = f" ({identity.server_version})" if identity.server_version else ""
    if configuration := options.method.configuration.path:
        progress.print_line(f"Configuration {configuration}")
    progress.print_line(f"Scanning {identity.name}{version} into {store.address}")
    clock = SteadyClock(utc_now())
    dated = compare_clocks(cluster, store, clock)
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
    )
    progress.finish()
    return scan


def _print_report(
    record: StoredScan,
    document: Document,
    output: str,
    exports: Exports,
    progress: Progress,
    code: int,
    cluster: Cluster,
    screen: Screen,
) -> None:
    from scanner.cli.flags.report_formats import to_exports, to_stdout
    from scanner.model.scans.scan import ScanState
    from scanner.report.document.sentences import counted_line

    _print_requests(cluster, progress)
    scan = record.scan
    if output != DEFAULT:
        gaps = f", {len(record.gaps)} gaps: exit code {code}" if scan.state is not ScanState.COMPLETE else ""
        progress.print_line(f"Scan {scan.id} is {scan.state}: {counted_line(document)}{gaps}")
        if sentence := nothing_in(record):
            progress.print_line(sentence)
    progress.finish()
    to_stdout(document, output, screen)
    to_exports(document, exports)
