"""What a scan must not find: gates that a user opts into. An incomplete scan comes before any of them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from scanner.model.scan import ScanRecord

_FAILED = 1


class FailOn(StrEnum):
    """What can be gated."""

    DRIFT = "drift"


def failed(record: ScanRecord, gates: Iterable[FailOn]) -> int:
    """The exit code: 1 when a gate fails, else 0."""
    return _FAILED if any(_fails(record, gate) for gate in gates) else 0


def _fails(record: ScanRecord, gate: FailOn) -> bool:
    from scanner.model.scan import OutcomeName  # noqa: PLC0415 - nothing is imported before it is needed

    match gate:
        case FailOn.DRIFT:
            return any(key.outcome is OutcomeName.WOULD_CHANGE for key in record.tallies)
        case _ as never:
            assert_never(never)
