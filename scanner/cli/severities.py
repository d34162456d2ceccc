"""The flag that leaves out policies below a severity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.errors import UsageError
from scanner.posture.severity import Severity

if TYPE_CHECKING:
    from scanner.model.policy import PolicyKey
    from scanner.model.scan import ScanRecord
    from scanner.posture.settings import Settings

MinSeverityOption = Annotated[
    Severity | None,
    typer.Option(
        "--min-severity",
        help="With --fail-on: only policies of this severity or a worse one fail a gate.",
        rich_help_panel="Gates",
        show_default=False,
    ),
]


def reject_useless_severity(gates: Sequence[object], minimum: Severity | None) -> None:
    """Reject a severity without a gate. Raises UsageError."""
    if minimum and not gates:
        raise UsageError(f"--min-severity {minimum} needs --fail-on: without a gate it leaves nothing out")


def policies_below(record: ScanRecord, settings: Settings, minimum: Severity | None) -> frozenset[PolicyKey]:
    """The policies of a scan below a severity; none without one."""
    from scanner.posture.severity import describe

    if minimum is None:
        return frozenset()
    described = ((used.policy.key, describe(used.policy, settings.descriptions)) for used in record.policies)
    return frozenset(key for key, description in described if not description.severity.at_least(minimum))
