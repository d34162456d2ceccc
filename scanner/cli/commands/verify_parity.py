"""`assay verify-parity`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.connection import Connection, RequestLimits, RequestTimeoutOption
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.scope import KindsOption, NamespacesOption, SkipKindsOption, make_scope
from scanner.cli.flags.simulated_request import SimulatedOperation
from scanner.cli.terminal.progress import Progress
from scanner.cli.terminal.stdout import FormOption, OutputForm, QuietOption

if TYPE_CHECKING:
    from scanner.cluster.live.cluster import LiveCluster
    from scanner.model.scans.scan import Scope
    from scanner.parity import Parity

EPILOG = (
    "Needs scan permissions plus get, create and update on the sampled kinds; the API server checks write permission even "
    "for dry runs. Every write carries dryRun=All and changes nothing; webhooks that have side effects reject it. "
    "Exit codes: 0 no difference · 1 a difference · 2 usage or configuration · 3 incomplete: a permission or an answer is missing · "
    "4 could not run."
)
_DIFFERENT = 1
_INCOMPLETE = 3


@with_flag_groups
def command(
    sample: Annotated[
        int, typer.Option("--sample", min=1, max=100_000, metavar="N", help="Number of objects to write.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Random seed of the sample.")] = 0,
    operation: Annotated[
        SimulatedOperation, typer.Option("--operation", help="Writes to replay. auto: both a CREATE and an UPDATE.")
    ] = SimulatedOperation.AUTO,
    namespaces: NamespacesOption = (),
    kinds: KindsOption = (),
    skip_kinds: SkipKindsOption = (),
    *,
    connection: Connection,
    request_timeout: RequestTimeoutOption = "60s",
    output: FormOption = OutputForm.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Replay a sample of objects as dry-run writes, and compare the API server's verdicts with Assay's."""
    scope = make_scope(operation=operation.value, namespaces=namespaces, kinds=kinds, skip_kinds=skip_kinds)
    limits = RequestLimits(request_timeout, kind_timeout="0", concurrency=0, qps=0, burst=0)
    with Progress(quiet=quiet) as progress:
        parity = _verify(connection.cluster(limits), scope, sample, seed, progress)
    _print_parity(parity, output)
    raise typer.Exit(_find_exit_code(parity))


def _verify(cluster: LiveCluster, scope: Scope, sample: int, seed: int, progress: Progress) -> Parity:
    from scanner.parity import verify
    from scanner.scan.options import Options
    from scanner.scan.prepare import prepare

    prepared = prepare(cluster, Options(scope=scope), datetime.now(UTC))
    progress.print_line(
        f"Writing up to {sample:,} objects of {prepared.cluster.name} as dry runs, which change nothing"
    )
    return verify(prepared, cluster.dry_runs(), sample=sample, seed=seed)


def _print_parity(parity: Parity, output: OutputForm) -> None:
    from scanner.cli.terminal.stdout import standard_output, text
    from scanner.report.formats.parity import json_of, lines_of

    if output is OutputForm.TABLE:
        text(lines_of(parity))
        return
    with standard_output() as out:
        out.write(json.dumps(json_of(parity), indent=1) + "\n")


def _find_exit_code(parity: Parity) -> int:
    if not parity.complete:
        return _INCOMPLETE
    return _DIFFERENT if parity.differences else 0
