"""`assay scan`."""

from __future__ import annotations

import secrets
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scanner.cli.connection import (
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
from scanner.cli.database import DbOption, opened
from scanner.cli.filters import FLAG, FiltersOption, kyverno_configuration
from scanner.cli.gates import FailOn, failed
from scanner.cli.inputs import files_as_cluster, policies_among, policy_files, reject_stdin_twice
from scanner.cli.interruption import Interruption
from scanner.cli.named_cluster import NamedCluster
from scanner.cli.opinion import SampleOption, SecondOpinionOption, second_opinion
from scanner.cli.progress import Progress
from scanner.cli.report import HtmlOption, Output, OutputOption
from scanner.cli.simulated_request import (
    ExtraOption,
    GroupsOption,
    Operation,
    OperationOption,
    UidOption,
    UserOption,
    requester,
)
from scanner.cli.values import assumption, kubernetes_version, reject_empty, reject_together
from scanner.errors import UsageError
from scanner.model.scan import ScanState, Scope

if TYPE_CHECKING:
    from scanner.model.resource import UserInfo
    from scanner.model.scan import Scan, ScanRecord
    from scanner.opinion.comparison import Comparison
    from scanner.policies.kyverno.libraries import Network
    from scanner.scan.edges import Cluster
    from scanner.scan.options import Options
    from scanner.store import SqlStore

EPILOG = (
    "Examples: `assay scan` · `assay scan -n payments -o json` · `assay scan --from manifests/ -f policies/` · "
    "`assay scan -f new-policy.yaml --assume-bound new-policy=Warn`. "
    "Exit codes: 0 complete · 2 usage · 3 incomplete: the report says what was not seen · 4 could not run."
)
_INCOMPLETE = 3
_EVERYTHING = 100
_SCOPE = "Scope"
_POLICIES = "Policies"


class KyvernoCompat(StrEnum):
    """Whose reports to reproduce."""

    CONTROLLER = "controller"
    CLI = "cli"


def command(
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Scan manifests (a folder, a file, or - for stdin) instead of a cluster (repeatable).",
            rich_help_panel=_SCOPE,
        ),
    ] = None,
    version: Annotated[
        str,
        typer.Option(
            "--kubernetes-version",
            metavar="VERSION",
            help="With --from: judge as this Kubernetes release does. Default: the newest that is known.",
            rich_help_panel=_SCOPE,
            show_default=False,
        ),
    ] = "",
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "-n", "--namespace", metavar="NAME", help="Only this namespace (repeatable).", rich_help_panel=_SCOPE
        ),
    ] = None,
    all_namespaces: Annotated[
        bool,
        typer.Option("-A", "--all-namespaces", help="All namespaces; this is the default.", rich_help_panel=_SCOPE),
    ] = False,
    exclude_namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-namespace",
            metavar="NAME",
            help="Leave out this namespace; globs are fine (repeatable).",
            rich_help_panel=_SCOPE,
        ),
    ] = None,
    selector: Annotated[
        str,
        typer.Option(
            "-l",
            "--selector",
            metavar="LABELS",
            help="Only objects with these labels, as in app=web,tier!=cache.",
            rich_help_panel=_SCOPE,
            show_default=False,
        ),
    ] = "",
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only this kind: Pod, pods, deployments.apps (repeatable).",
            rich_help_panel=_SCOPE,
        ),
    ] = None,
    skip_kinds: Annotated[
        list[str] | None,
        typer.Option("--skip-kind", metavar="KIND", help="Leave out this kind (repeatable).", rich_help_panel=_SCOPE),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Only this policy; globs are fine (repeatable).",
            rich_help_panel=_POLICIES,
        ),
    ] = None,
    bindings: Annotated[
        list[str] | None,
        typer.Option(
            "--binding",
            metavar="NAME",
            help="Only this binding; globs are fine (repeatable).",
            rich_help_panel=_POLICIES,
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "-f",
            "--policies",
            metavar="PATH",
            help="Add policies, bindings and params from files (repeatable).",
            rich_help_panel=_POLICIES,
        ),
    ] = None,
    no_cluster_policies: Annotated[
        bool,
        typer.Option("--no-cluster-policies", help="Use the policies of the files only.", rich_help_panel=_POLICIES),
    ] = False,
    assume_bound: Annotated[
        list[str] | None,
        typer.Option(
            "--assume-bound",
            metavar="POLICY[=ACTION]",
            help="Preview a policy as if bound with Deny (or Warn, Audit) (repeatable).",
            rich_help_panel=_POLICIES,
        ),
    ] = None,
    kyverno_compat: Annotated[
        KyvernoCompat | None,
        typer.Option(
            "--kyverno-compat",
            help="Judge by Kyverno's policies as its controller or its cli report, and not as admission does.",
            rich_help_panel=_POLICIES,
            show_default=False,
        ),
    ] = None,
    kyverno_filters: FiltersOption = None,
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Make the HTTP requests that Kyverno's policies name, and ask registries about images, at public addresses. Nothing of a Secret is sent.",
            rich_help_panel=_POLICIES,
        ),
    ] = False,
    allow_network_to: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-network-to",
            metavar="CIDR|HOST",
            help="With --allow-network: allow these addresses, or this host, although they are not public (repeatable).",
            rich_help_panel=_POLICIES,
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
            help="Processes that judge objects. Default: one for each core, 8 at most; with 1 there is no other process.",
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
            help="Accept a scan that listed this share of the kinds to the end: exit code 0 instead of 3.",
        ),
    ] = 100,
    output: OutputOption = Output.TABLE,
    html: HtmlOption = None,
    db: DbOption = "",
    cluster_name: Annotated[
        str,
        typer.Option(
            "--cluster-name",
            metavar="NAME",
            help="Name the cluster, so that scans of it share one history. Default: the kubeconfig's or the folder's name.",
            show_default=False,
        ),
    ] = "",
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(
            "--fail-on",
            metavar="drift",
            help="Exit with code 1 when the scan finds this: drift, what a mutating policy in force would change. Previews fail nothing.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Every page on stderr.")] = False,
) -> None:
    """Judge every object there is by every policy in force, record the outcome, and say it."""
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
    if source:
        reject_together("--from", connection.named(), "files stand for a cluster, and no other is asked")
    elif version:
        raise UsageError("--kubernetes-version is for files: a cluster says its version itself; leave it out")
    if all_namespaces:
        reject_together("-A", {"-n": namespaces}, "leave one of them out")
    if kyverno_compat:
        reject_together("--kyverno-compat", {FLAG: kyverno_filters}, "only Kyverno's webhook filters objects")
    if no_cluster_policies and not files:
        raise UsageError("--no-cluster-policies leaves no policy: name files with -f")
    if allow_network_to and not allow_network:
        raise UsageError("--allow-network-to needs --allow-network: without it no request is made")
    reject_stdin_twice([*(source or ()), *(files or ())])
    scope = _scope(
        operation=operation.value,
        namespaces=namespaces or [],
        exclude_namespaces=exclude_namespaces or [],
        selector=selector,
        kinds=kinds or [],
        skip_kinds=skip_kinds or [],
        policies=policies or [],
        bindings=bindings or [],
    )
    options = _options(
        scope,
        files or [],
        cluster_policies=not no_cluster_policies,
        assume_bound=assume_bound or [],
        user=requester(user, user_groups, user_uid, user_extra),
        kyverno_compat=kyverno_compat,
        kyverno_filters=kyverno_filters or [],
        network=_network(allow_network_to or []) if allow_network else None,
    )
    if source:
        cluster, options = _from_files(source, options, cluster_name, kubernetes_version(version))
    else:
        cluster = connection.cluster()
    with Progress(quiet=quiet, verbose=verbose) as progress, opened(db) as store, Interruption() as interruption:
        with second_opinion(engine, sample) as comparison:
            named = NamedCluster(cluster, cluster_name, interruption)
            scan = _run(named, store, options, progress, workers, comparison)
        interruption.recorded()
        record = store.record(scan.id)
        code = _exit_code(record, min_coverage) or failed(record, fail_on or ())
        try:
            with interruption.waiting():
                _tell_requests(cluster, progress)
                _show(record, output, html, progress, code)
        except KeyboardInterrupt:
            sys.stderr.write(f"assay: interrupted; the scan is recorded, see it with: assay report {scan.id}\n")
        raise typer.Exit(code)


def _exit_code(record: ScanRecord, min_coverage: float) -> int:
    """0 when what was asked for was seen; --min-coverage forgives kinds that were not listed, and nothing else."""
    from scanner.report.coverage import beyond_kinds, percent_listed

    if record.scan.state is ScanState.COMPLETE:
        return 0
    enough = min_coverage < _EVERYTHING and percent_listed(record) >= min_coverage and not beyond_kinds(record)
    return 0 if enough else _INCOMPLETE


def _tell_requests(cluster: Cluster, progress: Progress) -> None:
    if (requests := getattr(cluster, "requests", None)) is not None:
        progress.say(f"{requests:,} requests to the API server")


def _scope(*, selector: str, operation: str, **names: list[str]) -> Scope:
    from scanner.cluster.labels import parse_selector

    flags = {"namespaces": "-n", "exclude_namespaces": "--exclude-namespace", "kinds": "--kind"}
    others = {"skip_kinds": "--skip-kind", "policies": "--policy", "bindings": "--binding"}
    reject_empty({flag: names[field] for field, flag in (flags | others).items()})
    parse_selector(selector)
    asked: dict[str, Any] = {field: tuple(values) for field, values in names.items()}
    return Scope(selector=selector, operation=operation, **asked)


def _options(
    scope: Scope,
    files: list[Path],
    *,
    cluster_policies: bool,
    assume_bound: list[str],
    user: UserInfo | None,
    kyverno_compat: KyvernoCompat | None,
    kyverno_filters: list[str],
    network: Network | None,
) -> Options:
    from scanner.cluster.yaml import load
    from scanner.scan.options import Options

    manifests, gaps = policy_files(files)
    return Options(
        scope=scope,
        manifests=manifests,
        gaps=gaps,
        cluster_policies=cluster_policies,
        assume_bound=tuple(assumption(text) for text in assume_bound),
        user=user,
        kyverno_compat=kyverno_compat.value if kyverno_compat else "",
        kyverno_configuration=kyverno_configuration(kyverno_filters),
        parse=load,
        network=network,
    )


def _network(allowed: list[str]) -> Network:
    from scanner.cluster.destinations import destinations
    from scanner.cluster.http_client import HttpClient

    return HttpClient(destinations(allowed))


def _from_files(source: list[Path], options: Options, name: str, version: str) -> tuple[Cluster, Options]:
    """Files as a cluster, whose policies come with them."""
    from dataclasses import replace

    cluster = files_as_cluster(source, options.scope, name, version)
    found = policies_among(cluster) if options.cluster_policies else ()
    return cluster, replace(options, manifests=(*options.manifests, *found), cluster_policies=False)


def _run(
    cluster: NamedCluster,
    store: SqlStore,
    options: Options,
    progress: Progress,
    workers: int | None,
    comparison: Comparison | None,
) -> Scan:
    from scanner.scan.run import run
    from scanner.scan.workers import LITTLE, cores, return_freed_memory

    return_freed_memory()
    identity = cluster.identity()
    version = f" ({identity.server_version})" if identity.server_version else ""
    progress.say(f"Scanning {identity.name}{version} into {store.shown}")
    started = datetime.now(UTC)
    scan_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    scan = run(
        cluster,
        store,
        options,
        scan_id=scan_id,
        clock=lambda: datetime.now(UTC),
        progress=progress,
        workers=workers or cores(),
        fork_after_bytes=0 if workers else LITTLE,
        comparison=comparison,
    )
    progress.finish()
    return scan


def _show(record: ScanRecord, output: Output, html: Path | None, progress: Progress, code: int) -> None:
    from scanner.cli.render import to_folder, to_stdout

    scan = record.scan
    if output is not Output.TABLE:
        gaps = f", {len(record.gaps)} gaps: exit code {code}" if scan.state is not ScanState.COMPLETE else ""
        progress.say(f"Scan {scan.id} is {scan.state}: {scan.findings} findings, {scan.new} of them new{gaps}")
    to_stdout(record, output.value)
    if html:
        to_folder(record, html)
