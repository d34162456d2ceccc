"""The flags of every command that reads a live cluster: the cluster, the user, and the limits of requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.completion import complete_contexts
from scanner.cli.flags.flag_group import FlagGroup
from scanner.config.values import parse_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scanner.cluster.live.cluster import LiveCluster
    from scanner.cluster.requests.session import ApiSession
    from scanner.model.json import JsonObject

PANEL = "Connection"

RequestTimeoutOption = Annotated[
    str,
    typer.Option(
        "--request-timeout",
        metavar="DURATION",
        help="Time limit of one request, such as 30, 30s or 2m; 0 for no limit.",
        rich_help_panel=PANEL,
    ),
]


@dataclass(frozen=True, slots=True)
class RequestLimits(FlagGroup):
    """The limits of the requests to the API server, as the user typed them."""

    request_timeout: RequestTimeoutOption = "60s"
    kind_timeout: Annotated[
        str,
        typer.Option(
            "--kind-timeout",
            metavar="DURATION",
            help="Time limit for listing all objects of one kind; 0 for no limit.",
            rich_help_panel=PANEL,
        ),
    ] = "30m"
    chunk_size: Annotated[
        int,
        typer.Option(
            "--chunk-size", min=1, max=10000, metavar="N", help="Objects per page of a list.", rich_help_panel=PANEL
        ),
    ] = 500
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency",
            min=1,
            max=16,
            metavar="N",
            help="Number of lists to fetch at the same time.",
            rich_help_panel=PANEL,
        ),
    ] = 4
    qps: Annotated[
        float,
        typer.Option(
            "--qps",
            min=0,
            metavar="N",
            help="Average number of requests per second; 0 for no limit.",
            rich_help_panel=PANEL,
        ),
    ] = 50
    burst: Annotated[
        int,
        typer.Option(
            "--burst",
            min=1,
            metavar="N",
            help="Number of requests that may exceed --qps for a moment.",
            rich_help_panel=PANEL,
        ),
    ] = 100


DEFAULT_LIMITS: Final = RequestLimits()


@dataclass(frozen=True, slots=True)
class Connection(FlagGroup):
    """The cluster, and the user of the requests."""

    kubeconfig: Annotated[
        str,
        typer.Option(
            "--kubeconfig",
            metavar="PATH",
            help="Path of the kubeconfig file.",
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = ""
    context: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="NAME",
            help="Name of the kubeconfig context.",
            rich_help_panel=PANEL,
            show_default=False,
            autocompletion=complete_contexts,
        ),
    ] = ""
    as_user: Annotated[
        str,
        typer.Option("--as", metavar="USER", help="Impersonate this user.", rich_help_panel=PANEL, show_default=False),
    ] = ""
    as_groups: Annotated[
        tuple[str, ...],
        typer.Option("--as-group", metavar="GROUP", help="Impersonate this group (repeatable).", rich_help_panel=PANEL),
    ] = ()

    def begin(self, objects: Iterable[JsonObject], namespace: str, limits: RequestLimits) -> ApiSession:
        """The session of a command that decides about new objects, with the first reads sent: modules are imported in the meantime.

        `namespace` is that of objects that name none. Raises like `cluster`.
        """
        from scanner.cluster.live.first_reads import list_first_reads, list_reads_about

        session = self._open_session(limits)
        chunk_size = limits.chunk_size
        session.begin((*list_first_reads(chunk_size), *list_reads_about(objects, namespace, chunk_size)))
        return session

    def cluster(self, limits: RequestLimits = DEFAULT_LIMITS, session: ApiSession | None = None) -> LiveCluster:
        """The cluster, before any request but those that a `session` has sent.

        Raises ClusterError without credentials, UsageError for invalid durations.
        """
        kind_timeout = parse_seconds(limits.kind_timeout, "--kind-timeout")
        session = session or self._open_session(limits)
        from scanner.cluster.live.cluster import LiveCluster

        return LiveCluster(
            session=session,
            kind_timeout=kind_timeout,
            chunk_size=limits.chunk_size,
            concurrency=limits.concurrency,
        )

    def _open_session(self, limits: RequestLimits) -> ApiSession:
        from scanner.cluster.requests.limits import RateLimiter
        from scanner.cluster.requests.session import ApiSession

        return ApiSession(
            kubeconfig=self.kubeconfig,
            context=self.context,
            as_user=self.as_user,
            as_groups=self.as_groups,
            request_timeout=parse_seconds(limits.request_timeout, "--request-timeout"),
            pace=RateLimiter(limits.qps, limits.burst),
        )
