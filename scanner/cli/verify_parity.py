"""`assay verify-parity`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scanner.cli.progress import Progress
from scanner.cli.simulated_request import Operation
from scanner.cli.values import reject_empty, seconds
from scanner.model.scan import Scope

if TYPE_CHECKING:
    from scanner.cluster.live import LiveCluster
    from scanner.parity import Parity

EPILOG = (
    "Needs what a scan needs, `get` on the sampled kinds, and `create` and `update` on them: a server lets only those "
    "try a write who may really write. Every write carries dryRun=All and changes nothing; webhooks that have side "
    "effects refuse it. "
    "Exit codes: 0 the same · 1 a difference · 2 usage · 3 incomplete: a right or an answer is missing · 4 could not run."
)
_DIFFERENT = 1
_INCOMPLETE = 3
_CONNECTION = "Connection"
_SCOPE = "Scope"


class Form(StrEnum):
    """What standard output carries."""

    TABLE = "table"
    JSON = "json"


def command(
    sample: Annotated[
        int, typer.Option("--sample", min=1, max=100_000, metavar="N", help="How many objects to write.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Another number chooses other objects.")] = 0,
    operation: Annotated[
        Operation, typer.Option("--operation", help="Which writes to replay: auto is both, a CREATE and an UPDATE.")
    ] = Operation.AUTO,
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "-n", "--namespace", metavar="NAME", help="Only this namespace (repeatable).", rich_help_panel=_SCOPE
        ),
    ] = None,
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
            "--as-group", metavar="GROUP", help="Impersonate this group (repeatable).", rich_help_panel=_CONNECTION
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
    output: Annotated[
        Form, typer.Option("-o", "--output", help="What standard output carries, and nothing else.")
    ] = Form.TABLE,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Compare verdicts with the server's own: write a sample of objects as dry runs, and see what admission says."""
    scope = _scope(operation, namespaces=namespaces or [], kinds=kinds or [], skip_kinds=skip_kinds or [])
    timeout = seconds(request_timeout)
    with Progress(quiet=quiet) as progress:
        cluster = _live(kubeconfig, context, as_user, tuple(as_groups or ()), timeout)
        parity = _verified(cluster, scope, sample, seed, progress)
    _show(parity, output)
    raise typer.Exit(_code(parity))


def _scope(operation: Operation, **names: list[str]) -> Scope:
    flags = {"namespaces": "-n", "kinds": "--kind", "skip_kinds": "--skip-kind"}
    reject_empty({flag: names[field] for field, flag in flags.items()})
    asked: dict[str, Any] = {field: tuple(values) for field, values in names.items()}
    return Scope(operation=operation.value, **asked)


def _live(
    kubeconfig: str, context: str, as_user: str, as_groups: tuple[str, ...], request_timeout: float | None
) -> LiveCluster:
    from scanner.cluster.live import LiveCluster

    return LiveCluster(
        kubeconfig=kubeconfig, context=context, as_user=as_user, as_groups=as_groups, request_timeout=request_timeout
    )


def _verified(cluster: LiveCluster, scope: Scope, sample: int, seed: int, progress: Progress) -> Parity:
    from scanner.parity import verify
    from scanner.scan.options import Options
    from scanner.scan.prepare import prepare

    seen = prepare(cluster, Options(scope=scope), datetime.now(UTC))
    progress.say(f"Writing up to {sample:,} objects of {seen.cluster.name} as dry runs; nothing is changed")
    return verify(seen, cluster.dry_runs(), sample=sample, seed=seed)


def _show(parity: Parity, output: Form) -> None:
    from scanner.cli.output import standard_output
    from scanner.cli.terminal import text
    from scanner.report.parity import json_of, lines_of

    if output is Form.TABLE:
        text(lines_of(parity))
        return
    with standard_output() as out:
        out.write(json.dumps(json_of(parity), indent=1) + "\n")


def _code(parity: Parity) -> int:
    if not parity.complete:
        return _INCOMPLETE
    return _DIFFERENT if parity.differences else 0
