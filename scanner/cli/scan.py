"""`assay scan`."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.database import DbOption, opened
from scanner.cli.named import Named
from scanner.cli.progress import Progress
from scanner.cli.report import HtmlOption, Output, OutputOption
from scanner.errors import UsageError
from scanner.model.scan import ScanState, Scope

if TYPE_CHECKING:
    from scanner.model.outcome import Gap
    from scanner.model.scan import ScanRecord
    from scanner.scan import Cluster, Options
    from scanner.sources import Manifest

EPILOG = (
    "Examples: `assay scan` · `assay scan -n payments -o json` · `assay scan --from manifests/ -f policies/` · "
    "`assay scan -f new-policy.yaml --assume-bound new-policy=Warn`. "
    "Exit codes: 0 complete · 2 usage · 3 incomplete: the report says what was not seen · 4 could not run."
)
_INCOMPLETE = 3
_CONNECTION = "Connection"
_SCOPE = "Scope"
_POLICIES = "Policies"

Many = list[str]


def command(
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Scan manifests (a folder, a file, or - for stdin) instead of a cluster.",
            show_default=False,
        ),
    ] = None,
    cluster_name: Annotated[
        str,
        typer.Option(
            help="Name the cluster, so that scans of it share one history. Default: the kubeconfig's or the folder's name.",
            show_default=False,
        ),
    ] = "",
    kubeconfig: Annotated[
        str, typer.Option(help="Path to the kubeconfig file.", rich_help_panel=_CONNECTION, show_default=False)
    ] = "",
    context: Annotated[
        str, typer.Option(help="The kubeconfig context to use.", rich_help_panel=_CONNECTION, show_default=False)
    ] = "",
    as_user: Annotated[
        str, typer.Option("--as", help="Impersonate this user.", rich_help_panel=_CONNECTION, show_default=False)
    ] = "",
    as_groups: Annotated[
        Many | None,
        typer.Option(
            "--as-group", help="Impersonate this group (repeatable).", rich_help_panel=_CONNECTION, show_default=False
        ),
    ] = None,
    request_timeout: Annotated[
        str,
        typer.Option(help="How long one request may take: 30, 30s, 2m; 0 for no limit.", rich_help_panel=_CONNECTION),
    ] = "60s",
    chunk_size: Annotated[
        int, typer.Option(min=1, max=10000, help="Objects per page of a list.", rich_help_panel=_CONNECTION)
    ] = 500,
    namespaces: Annotated[
        Many | None,
        typer.Option(
            "-n", "--namespace", help="Only this namespace (repeatable).", rich_help_panel=_SCOPE, show_default=False
        ),
    ] = None,
    all_namespaces: Annotated[
        bool,
        typer.Option("-A", "--all-namespaces", help="All namespaces; this is the default.", rich_help_panel=_SCOPE),
    ] = False,
    exclude_namespaces: Annotated[
        Many | None,
        typer.Option(
            "--exclude-namespace",
            help="Leave out this namespace; globs are fine (repeatable).",
            rich_help_panel=_SCOPE,
            show_default=False,
        ),
    ] = None,
    selector: Annotated[
        str,
        typer.Option(
            "-l", "--selector", help="Only objects with these labels.", rich_help_panel=_SCOPE, show_default=False
        ),
    ] = "",
    kinds: Annotated[
        Many | None,
        typer.Option(
            "--kind",
            help="Only this kind: Pod, pods, deployments.apps (repeatable).",
            rich_help_panel=_SCOPE,
            show_default=False,
        ),
    ] = None,
    skip_kinds: Annotated[
        Many | None,
        typer.Option(
            "--skip-kind", help="Leave out this kind (repeatable).", rich_help_panel=_SCOPE, show_default=False
        ),
    ] = None,
    policies: Annotated[
        Many | None,
        typer.Option(
            "--policy",
            help="Only this policy; globs are fine (repeatable).",
            rich_help_panel=_POLICIES,
            show_default=False,
        ),
    ] = None,
    bindings: Annotated[
        Many | None,
        typer.Option(
            "--binding",
            help="Only this binding; globs are fine (repeatable).",
            rich_help_panel=_POLICIES,
            show_default=False,
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
            show_default=False,
        ),
    ] = None,
    no_cluster_policies: Annotated[
        bool,
        typer.Option("--no-cluster-policies", help="Use the policies of the files only.", rich_help_panel=_POLICIES),
    ] = False,
    assume_bound: Annotated[
        Many | None,
        typer.Option(
            "--assume-bound",
            metavar="POLICY[=ACTION]",
            help="Preview a policy as if bound with Deny (or Warn, Audit) (repeatable).",
            rich_help_panel=_POLICIES,
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
    html: HtmlOption = None,
    db: DbOption = "",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More on stderr.")] = False,
) -> None:
    """Judge every object there is by every policy in force, record the outcome, and say it."""
    if all_namespaces and namespaces:
        raise UsageError("-A and -n contradict each other: leave one of them out")
    scope = Scope(
        namespaces=tuple(namespaces or ()),
        exclude_namespaces=tuple(exclude_namespaces or ()),
        kinds=tuple(kinds or ()),
        skip_kinds=tuple(skip_kinds or ()),
        policies=tuple(policies or ()),
        bindings=tuple(bindings or ()),
        selector=selector,
    )
    options, cluster = _prepared(
        source or [],
        files or [],
        scope,
        cluster_name,
        cluster_policies=not no_cluster_policies,
        assume_bound=assume_bound or [],
    )
    if cluster is None:
        cluster = _live(
            kubeconfig=kubeconfig,
            context=context,
            as_user=as_user,
            as_groups=tuple(as_groups or ()),
            request_timeout=_seconds(request_timeout),
            chunk_size=chunk_size,
        )
        cluster = Named(cluster, cluster_name) if cluster_name else cluster
    record = _run(cluster, options, db, Progress(quiet=quiet, verbose=verbose))
    _show(record, output, html)
    raise typer.Exit(_INCOMPLETE if record.scan.state is not ScanState.COMPLETE else 0)


def _prepared(
    source: list[Path], files: list[Path], scope: Scope, name: str, *, cluster_policies: bool, assume_bound: list[str]
) -> tuple[Options, Cluster | None]:
    """The options of the scan and, for files, the cluster that they stand for."""
    from scanner.cluster.snapshot import SnapshotCluster  # noqa: PLC0415 - nothing is imported before it is needed
    from scanner.scan import Options  # noqa: PLC0415
    from scanner.sources import Manifest, is_policy  # noqa: PLC0415

    manifests, gaps = _documents(files)
    cluster: SnapshotCluster | None = None
    if source:
        default = scope.namespaces[0] if len(scope.namespaces) == 1 else "default"
        cluster = SnapshotCluster(source, default_namespace=default, name=name)
        found = (Manifest(document.source, document.body) for document in cluster.documents)
        if cluster_policies:
            manifests = (*manifests, *(document for document in found if is_policy(document.body)))
    options = Options(
        scope=scope,
        manifests=manifests,
        gaps=gaps,
        cluster_policies=cluster_policies and cluster is None,
        assume_bound=tuple(_assumption(text) for text in assume_bound),
    )
    return options, cluster


def _documents(paths: list[Path]) -> tuple[tuple[Manifest, ...], tuple[Gap, ...]]:
    from scanner.cluster.manifests import read_documents  # noqa: PLC0415 - nothing is imported before it is needed
    from scanner.sources import Manifest  # noqa: PLC0415

    manifests: list[Manifest] = []
    gaps: list[Gap] = []
    for path in paths:
        documents, faults = read_documents(path)
        manifests.extend(Manifest(document.source, document.body) for document in documents)
        gaps.extend(faults)
    return tuple(manifests), tuple(gaps)


def _assumption(text: str) -> tuple[str, str]:
    name, _, action = text.partition("=")
    return name, action or "Deny"


def _live(
    *,
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


def _seconds(text: str) -> float | None:
    """A number of seconds, or with a unit, as kubectl writes it; 0 for no limit."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        raise UsageError(f"--request-timeout {text}: write seconds such as 30, or 30s, 2m, 1h") from None
    return seconds or None


def _run(cluster: Cluster, options: Options, db: str, progress: Progress) -> ScanRecord:
    from scanner.scan import run  # noqa: PLC0415 - nothing is imported before it is needed

    store = opened(db)
    started = datetime.now(UTC)
    scan_id = f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    with progress:
        scan = run(cluster, store, options, scan_id=scan_id, clock=lambda: datetime.now(UTC), progress=progress)
    return store.record(scan.id)


def _show(record: ScanRecord, output: Output, html: Path | None) -> None:
    from scanner.cli.render import to_folder, to_stdout  # noqa: PLC0415 - nothing is imported before it is needed

    if html:
        to_folder(record, html)
    to_stdout(record, output.value)
