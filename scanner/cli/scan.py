"""`assay scan`."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scanner.cli.database import DbOption, opened
from scanner.cli.inputs import files_as_cluster, policies_among, policy_files, reject_stdin_twice
from scanner.cli.named import Named
from scanner.cli.progress import Progress
from scanner.cli.report import HtmlOption, Output, OutputOption
from scanner.cli.requested import (
    ExtraOption,
    GroupsOption,
    Operation,
    OperationOption,
    UidOption,
    UserOption,
    requester,
)
from scanner.cli.values import assumption, kubernetes_version, reject_empty, reject_together, seconds
from scanner.errors import UsageError
from scanner.model.scan import ScanState, Scope

if TYPE_CHECKING:
    from scanner.model.resource import UserInfo
    from scanner.model.scan import ScanRecord
    from scanner.scan import Cluster, Options
    from scanner.store import SqlStore

EPILOG = (
    "Examples: `assay scan` · `assay scan -n payments -o json` · `assay scan --from manifests/ -f policies/` · "
    "`assay scan -f new-policy.yaml --assume-bound new-policy=Warn`. "
    "Exit codes: 0 complete · 2 usage · 3 incomplete: the report says what was not seen · 4 could not run."
)
_INCOMPLETE = 3
_CONNECTION = "Connection"
_SCOPE = "Scope"
_POLICIES = "Policies"


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
    operation: OperationOption = Operation.AUTO,
    user: UserOption = "",
    user_groups: GroupsOption = None,
    user_uid: UidOption = "",
    user_extra: ExtraOption = None,
    kubeconfig: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="The kubeconfig file to use.", rich_help_panel=_CONNECTION, show_default=False
        ),
    ] = "",
    context: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The kubeconfig context to use.", rich_help_panel=_CONNECTION, show_default=False
        ),
    ] = "",
    as_user: Annotated[
        str,
        typer.Option(
            "--as", metavar="USER", help="Impersonate this user.", rich_help_panel=_CONNECTION, show_default=False
        ),
    ] = "",
    as_groups: Annotated[
        list[str] | None,
        typer.Option(
            "--as-group",
            metavar="GROUP",
            help="Impersonate this group (repeatable).",
            rich_help_panel=_CONNECTION,
        ),
    ] = None,
    request_timeout: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="How long one request may take: 30, 30s, 2m; 0 for no limit.",
            rich_help_panel=_CONNECTION,
        ),
    ] = "60s",
    chunk_size: Annotated[
        int,
        typer.Option(min=1, max=10000, metavar="N", help="Objects per page of a list.", rich_help_panel=_CONNECTION),
    ] = 500,
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
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Every page on stderr.")] = False,
) -> None:
    """Judge every object there is by every policy in force, record the outcome, and say it."""
    connection = {"--kubeconfig": kubeconfig, "--context": context, "--as": as_user, "--as-group": as_groups}
    if source:
        reject_together("--from", connection, "files stand for a cluster, and no other is asked")
    elif version:
        raise UsageError("--kubernetes-version is for files: a cluster says its version itself; leave it out")
    if all_namespaces:
        reject_together("-A", {"-n": namespaces}, "leave one of them out")
    if no_cluster_policies and not files:
        raise UsageError("--no-cluster-policies leaves no policy: name files with -f")
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
    timeout = seconds(request_timeout)
    options = _options(
        scope,
        files or [],
        cluster_policies=not no_cluster_policies,
        assume_bound=assume_bound or [],
        user=requester(user, user_groups, user_uid, user_extra),
    )
    if source:
        cluster, options = _from_files(source, options, cluster_name, kubernetes_version(version))
    else:
        cluster = _live(kubeconfig, context, as_user, tuple(as_groups or ()), timeout, chunk_size)
    with Progress(quiet=quiet, verbose=verbose) as progress:
        named = Named(cluster, cluster_name)
        with opened(db) as store:
            record = _run(named, store, options, progress)
            _show(record, output, html, progress)
    raise typer.Exit(0 if record.scan.state is ScanState.COMPLETE else _INCOMPLETE)


def _scope(*, selector: str, operation: str, **names: list[str]) -> Scope:
    from scanner.cluster.labels import parse_selector  # noqa: PLC0415 - nothing is imported before it is needed

    flags = {"namespaces": "-n", "exclude_namespaces": "--exclude-namespace", "kinds": "--kind"}
    others = {"skip_kinds": "--skip-kind", "policies": "--policy", "bindings": "--binding"}
    reject_empty({flag: names[field] for field, flag in (flags | others).items()})
    parse_selector(selector)
    asked: dict[str, Any] = {field: tuple(values) for field, values in names.items()}
    return Scope(selector=selector, operation=operation, **asked)


def _options(
    scope: Scope, files: list[Path], *, cluster_policies: bool, assume_bound: list[str], user: UserInfo | None
) -> Options:
    from scanner.scan import Options  # noqa: PLC0415 - nothing is imported before it is needed

    manifests, gaps = policy_files(files)
    return Options(
        scope=scope,
        manifests=manifests,
        gaps=gaps,
        cluster_policies=cluster_policies,
        assume_bound=tuple(assumption(text) for text in assume_bound),
        user=user,
    )


def _from_files(source: list[Path], options: Options, name: str, version: str) -> tuple[Cluster, Options]:
    """Files as a cluster, whose policies come with them."""
    from dataclasses import replace  # noqa: PLC0415 - nothing is imported before it is needed

    cluster = files_as_cluster(source, options.scope, name, version)
    found = policies_among(cluster) if options.cluster_policies else ()
    return cluster, replace(options, manifests=(*options.manifests, *found), cluster_policies=False)


def _live(
    kubeconfig: str,
    context: str,
    as_user: str,
    as_groups: tuple[str, ...],
    request_timeout: float | None,
    chunk_size: int,
) -> Cluster:
    from scanner.cluster.live import LiveCluster  # noqa: PLC0415 - nothing is imported before it is needed

    return LiveCluster(
        kubeconfig=kubeconfig,
        context=context,
        as_user=as_user,
        as_groups=as_groups,
        request_timeout=request_timeout,
        chunk_size=chunk_size,
    )


def _run(cluster: Named, store: SqlStore, options: Options, progress: Progress) -> ScanRecord:
    from scanner.scan import run  # noqa: PLC0415 - nothing is imported before it is needed

    identity = cluster.identity()
    version = f" ({identity.server_version})" if identity.server_version else ""
    progress.say(f"Scanning {identity.name}{version} into {store.shown}")
    started = datetime.now(UTC)
    scan_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    scan = run(cluster, store, options, scan_id=scan_id, clock=lambda: datetime.now(UTC), progress=progress)
    progress.finish()
    return store.record(scan.id)


def _show(record: ScanRecord, output: Output, html: Path | None, progress: Progress) -> None:
    from scanner.cli.render import to_folder, to_stdout  # noqa: PLC0415 - nothing is imported before it is needed

    scan = record.scan
    if output is not Output.TABLE:
        gaps = f", {len(record.gaps)} gaps: exit code {_INCOMPLETE}" if scan.state is not ScanState.COMPLETE else ""
        progress.say(f"Scan {scan.id} is {scan.state}: {scan.findings} findings, {scan.new} of them new{gaps}")
    to_stdout(record, output.value)
    if html:
        to_folder(record, html)
