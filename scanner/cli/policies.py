"""`assay policies`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from scanner.cli.database import DbOption, opened
from scanner.cli.show import table

if TYPE_CHECKING:
    from scanner.model.policy import Binding
    from scanner.model.scan import PolicyRecord


def command(db: DbOption = "") -> None:
    """Show what policies the last scan found, how they are bound, and how many objects each matched."""
    store = opened(db)
    record = store.record(store.find_scan("last").id)
    if not record.policies:
        typer.echo("The last scan found no policy. Add some with -f, or look at the docs on --assume-bound.", err=True)
        return
    table(
        ("POLICY", "FAILURE POLICY", "BINDINGS", "MATCHED", "SOURCE"),
        (
            (
                entry.policy.name,
                entry.policy.failure_policy,
                ", ".join(map(_binding, entry.bindings)) or "none: never evaluated",
                _matched(entry),
                entry.policy.source,
            )
            for entry in record.policies
        ),
    )


def _binding(binding: Binding) -> str:
    return f"{binding.name} ({'+'.join(binding.actions)})"


def _matched(entry: PolicyRecord) -> str:
    return str(entry.matched) if entry.bindings else "-"
