"""How a scan ends: its exit code, and the reason that its run records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from scanner.cli.gates import Verdict
    from scanner.model.scans.stored_scan import StoredScan

_INCOMPLETE: Final = 3
_EVERYTHING: Final = 100


class ExitZeroOn(StrEnum):
    """The states that may have exit code 0 instead of their own."""

    INCOMPLETE = "incomplete"


ExitZeroOnOption = Annotated[
    ExitZeroOn | None,
    typer.Option(
        "--exit-zero-on",
        help="Exit with code 0 instead of 3 if the scan is incomplete, but not interrupted. A gate that fails still has code 1.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Ending:
    """An exit code, and the reason of another one than 0."""

    code: int
    reason: str = ""


def ending_of(
    record: StoredScan, gates: Verdict, min_coverage: float, exit_zero_on: ExitZeroOn | None, *, allow_empty: bool
) -> Ending:
    """How a scan ends. Code 3 has priority over a failed gate, unless `exit_zero_on` takes it away.

    An interrupted scan keeps code 3: Kubernetes would not repeat a pod that ends with code 0 when its node is drained.
    """
    from scanner.scan.record import INTERRUPTION

    accepted = exit_zero_on is ExitZeroOn.INCOMPLETE and INTERRUPTION not in record.gaps
    if not accepted and not _is_enough(record, min_coverage, allow_empty=allow_empty):
        return Ending(_INCOMPLETE, nothing_in(record) or f"the scan is incomplete: {len(record.gaps)} gaps")
    return Ending(gates.code, gates.line)


def nothing_in(record: StoredScan) -> str:
    """The reason why an incomplete scan had nothing to evaluate, or an empty string."""
    from scanner.model.scans.scan import ScanState, is_empty
    from scanner.report.document.document import document_of
    from scanner.report.document.sentences import nothing_line

    partial = record.scan.state is ScanState.INCOMPLETE
    return nothing_line(document_of(record)) if partial and is_empty(record) else ""


def _is_enough(record: StoredScan, min_coverage: float, *, allow_empty: bool) -> bool:
    """Return whether a scan is complete enough. --min-coverage accepts kinds that were not listed, and no other gap."""
    from scanner.model.scans.scan import ScanState, is_empty
    from scanner.report.document.coverage import beyond_kinds, percent_listed

    if record.scan.state is ScanState.COMPLETE:
        return True
    if is_empty(record) and not allow_empty:
        return False
    return min_coverage < _EVERYTHING and percent_listed(record) >= min_coverage and not beyond_kinds(record)
