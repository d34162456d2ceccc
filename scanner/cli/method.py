"""The circumstances of a scan that only the command line knows: the command, the machine, and what was allowed."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from scanner.cli.command_line import command_line
from scanner.cli.settings import used_configuration

if TYPE_CHECKING:
    from pathlib import Path

    import typer

    from scanner.model.scans.method import Method


def method_of(
    context: typer.Context,
    *,
    kyverno_compat: str,
    network: bool,
    network_to: Iterable[str],
    chunk_size: int,
    policy_files: Iterable[Path] = (),
    without_cluster_policies: bool = False,
    kept_labels: Iterable[str] = (),
) -> Method:
    """The method of a scan that the command of a context makes; the scan adds its user and its workers."""
    from scanner.model.scans.method import Method

    return Method(
        host=socket.gethostname(),
        command_line=command_line(context.obj or (), context.command.params),
        kyverno_compat=kyverno_compat,
        network=network,
        network_to=tuple(network_to),
        chunk_size=chunk_size,
        policy_files=tuple(map(str, policy_files)),
        without_cluster_policies=without_cluster_policies,
        kept_labels=tuple(sorted(kept_labels)),
        configuration=used_configuration(),
    )
