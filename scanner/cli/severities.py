"""The flag that leaves out policies below a severity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from scanner.posture.severity import Severity

if TYPE_CHECKING:
    from scanner.model.policy import PolicyKey
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.posture.settings import Settings

MinSeverityOption = Annotated[
    Severity | None,
    typer.Option(
        "--min-severity",
        help=(
            "Only policies of this severity or a worse one fail a gate, and Markdown, JUnit and SARIF leave out the others, "
            "with their number. JSON always has all."
        ),
        rich_help_panel="Gates",
        show_default=False,
    ),
]


def policies_below(record: StoredScan, settings: Settings, minimum: Severity | None) -> frozenset[PolicyKey]:
    """The policies of a scan below a severity; none without one."""
    from scanner.posture.severity import describe

    if minimum is None:
        return frozenset()
    described = ((used.policy.key, describe(used.policy, settings.descriptions)) for used in record.policies)
    return frozenset(key for key, description in described if not description.severity.at_least(minimum))
