"""The flags of every command that reads a live cluster: which cluster, as which user, and how fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.completion import contexts
from scanner.config.values import parse_seconds

if TYPE_CHECKING:
    from scanner.cluster.live.cluster import LiveCluster

PANEL = "Connection"

KubeconfigOption = Annotated[
    str,
    typer.Option(
        "--kubeconfig", metavar="PATH", help="Path of the kubeconfig file.", rich_help_panel=PANEL, show_default=False
    ),
]
ContextOption = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Name of the kubeconfig context.",
        rich_help_panel=PANEL,
        show_default=False,
        autocompletion=contexts,
    ),
]
AsOption = Annotated[
    str,
    typer.Option("--as", metavar="USER", help="Impersonate this user.", rich_help_panel=PANEL, show_default=False),
]
AsGroupsOption = Annotated[
    list[str] | None,
    typer.Option("--as-group", metavar="GROUP", help="Impersonate this group (repeatable).", rich_help_panel=PANEL),
]


FleetOption = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        help="File of the clusters of a fleet: a list `clusters` of name, kubeconfig, context, schedule and timeZone.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]


RequestTimeoutOption = Annotated[
    str,
    typer.Option(
        "--request-timeout",
        metavar="DURATION",
        help="Time limit of one request, such as 30, 30s or 2m; 0 for no limit.",
        rich_help_panel=PANEL,
    ),
]
KindTimeoutOption = Annotated[
    str,
    typer.Option(
        "--kind-timeout",
        metavar="DURATION",
        help="Time limit for listing all objects of one kind; 0 for no limit.",
        rich_help_panel=PANEL,
    ),
]
ChunkSizeOption = Annotated[
    int,
    typer.Option(
        "--chunk-size", min=1, max=10000, metavar="N", help="Objects per page of a list.", rich_help_panel=PANEL
    ),
]
ConcurrencyOption = Annotated[
    int,
    typer.Option(
        "--concurrency",
        min=1,
        max=16,
        metavar="N",
        help="Number of lists to fetch at the same time.",
        rich_help_panel=PANEL,
    ),
]
QpsOption = Annotated[
    float,
    typer.Option(
        "--qps",
        min=0,
        metavar="N",
        help="Average number of requests per second; 0 for no limit.",
        rich_help_panel=PANEL,
    ),
]
BurstOption = Annotated[
    int,
    typer.Option(
        "--burst",
        min=1,
        metavar="N",
        help="Number of requests that may exceed --qps for a moment.",
        rich_help_panel=PANEL,
    ),
]


@dataclass(frozen=True, slots=True)
class Connection:
    """The values of these flags, as the user typed them."""

    kubeconfig: str = ""
    context: str = ""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()
    request_timeout: str = "60s"
    kind_timeout: str = "30m"
    chunk_size: int = 500
    concurrency: int = 4
    qps: float = 50
    burst: int = 100

    def named(self) -> dict[str, object]:
        """The values of the flags that choose the cluster and the user, by flag."""
        user = {"--as": self.as_user, "--as-group": self.as_groups}
        return {"--kubeconfig": self.kubeconfig, "--context": self.context, **user}

    def cluster(self) -> LiveCluster:
        """The cluster, before any request. Raises ClusterError without credentials, UsageError for invalid durations."""
        from scanner.cluster.live.cluster import LiveCluster

        return LiveCluster(
            kubeconfig=self.kubeconfig,
            context=self.context,
            as_user=self.as_user,
            as_groups=self.as_groups,
            request_timeout=parse_seconds(self.request_timeout, "--request-timeout"),
            kind_timeout=parse_seconds(self.kind_timeout, "--kind-timeout"),
            chunk_size=self.chunk_size,
            concurrency=self.concurrency,
            qps=self.qps,
            burst=self.burst,
        )
