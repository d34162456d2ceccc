"""`assay policies`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scanner.cli.database import ClusterNameOption, DbOption, existing
from scanner.cli.terminal import table

if TYPE_CHECKING:
    from scanner.model.policy import Binding
    from scanner.model.scan import PolicyRecord

_NOTHING = "That scan found no policy. Scan with -f PATH to add some, or check that the scanner may list the cluster's."


def command(db: DbOption = "", cluster_name: ClusterNameOption = "") -> None:
    """Show what policies the last scan found, how far each can be audited and is bound, and what it matched."""
    from scanner.report.words import auditability

    with existing(db) as store:
        record = store.record(store.find_scan("last", cluster_name or None).id)
    if not record.policies:
        sys.stderr.write(f"{_NOTHING}\n")
        return
    table(
        ("POLICY", "AUDITABILITY", "FAILURE POLICY", "BINDINGS", "MATCHED", "SOURCE"),
        (
            (
                entry.policy.name,
                auditability(entry.reading.classes),
                entry.policy.failure_policy,
                ", ".join(map(_binding, entry.bindings)) or "none: never evaluated",
                _matched(entry),
                entry.policy.source,
            )
            for entry in record.policies
        ),
    )


def _binding(binding: Binding) -> str:
    actions = f" ({'+'.join(binding.actions)})" if binding.actions else ""
    return f"{binding.name}{actions}"


def _matched(entry: PolicyRecord) -> str:
    return str(entry.matched) if entry.bindings else "-"
