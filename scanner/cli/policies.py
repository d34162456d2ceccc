"""`assay policies`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.database import ClusterNameOption, DbOption, reader_at
from scanner.cli.moments import AtOption
from scanner.cli.stored_scan import stored_scan
from scanner.cli.terminal import table

if TYPE_CHECKING:
    from scanner.model.policy import Binding
    from scanner.model.scan import PolicyRecord

_NO_POLICIES = (
    "The scan found no policies. Add some with -f PATH, or check that the scanner may list the cluster's policies."
)


def command(
    scan: Annotated[
        str, typer.Option("--scan", metavar="SCAN", help="Scan id or the beginning of one, `last`, `last~1` …")
    ] = "last",
    at: AtOption = "",
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """List the policies of a stored scan with their auditability, bindings and number of matched objects."""
    from scanner.report.words import auditability

    with reader_at(db) as store:
        record = stored_scan(store, scan, cluster_name, at)
    if not record.policies:
        sys.stderr.write(f"{_NO_POLICIES}\n")
        return
    table(
        ("POLICY", "AUDITABILITY", "FAILURE POLICY", "BINDINGS", "MATCHED", "SOURCE"),
        (
            (
                policy_record.policy.name,
                auditability(policy_record.reading.classes),
                policy_record.policy.failure_policy,
                ", ".join(map(_binding, policy_record.bindings)) or "none: never evaluated",
                _matched(policy_record),
                policy_record.policy.source,
            )
            for policy_record in record.policies
        ),
    )


def _binding(binding: Binding) -> str:
    actions = f" ({'+'.join(binding.actions)})" if binding.actions else ""
    return f"{binding.name}{actions}"


def _matched(policy_record: PolicyRecord) -> str:
    return str(policy_record.matched) if policy_record.bindings else "-"
