"""The circumstances of a scan that only the command line knows: the command, the machine, and what was allowed."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from scanner.cli.settings import used_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from scanner.model.method import Method


def method_of(
    arguments: Iterable[str] | None,
    *,
    kyverno_compat: str,
    network: bool,
    network_to: Iterable[str],
    chunk_size: int,
    policy_files: Iterable[Path] = (),
    without_cluster_policies: bool = False,
    kept_labels: Iterable[str] = (),
) -> Method:
    """The method of a scan that a command with these arguments makes; the scan adds its user and its workers."""
    from scanner.model.method import Method

    return Method(
        host=socket.gethostname(),
        command_line=command_line(arguments or ()),
        kyverno_compat=kyverno_compat,
        network=network,
        network_to=tuple(network_to),
        chunk_size=chunk_size,
        policy_files=tuple(map(str, policy_files)),
        without_cluster_policies=without_cluster_policies,
        kept_labels=tuple(sorted(kept_labels)),
        configuration=used_configuration(),
    )


def command_line(arguments: Iterable[str]) -> tuple[str, ...]:
    """The command with these arguments, without passwords, tokens, and users in URLs."""
    return ("assay", *_shown(arguments))


def _shown(arguments: Iterable[str]) -> Iterator[str]:
    """The arguments without secrets: those that look like a secret, and the values of flags with the name of a secret."""
    from scanner.audit.sensitive_fields import MASK, names_secret
    from scanner.config.masking import masked

    hides = False
    for argument in arguments:
        flag, equals, _ = argument.partition("=")
        if hides:
            yield MASK
        elif equals and flag.startswith("-") and names_secret(flag):
            yield f"{flag}={MASK}"
        else:
            yield masked(argument)
        hides = not hides and not equals and argument.startswith("-") and names_secret(argument)
