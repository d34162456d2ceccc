"""What a scan must not find: gates that a user opts into. An incomplete scan comes before any of them.

Like the score and the history, they are about what is in force: what is only previewed fails none.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from scanner.model.policy import BindingKey
    from scanner.model.scan import ScanRecord

_FAILED = 1


class FailOn(StrEnum):
    """What can be gated."""

    DRIFT = "drift"


def failed(record: ScanRecord, gates: Iterable[FailOn]) -> int:
    """The exit code: 1 when a gate fails, else 0."""
    return _FAILED if any(_fails(record, gate) for gate in gates) else 0


def _assumed(record: ScanRecord) -> frozenset[BindingKey]:
    """The bindings that the scan only supposed."""
    return frozenset(it.key for entry in record.policies for it in entry.bindings if it.assumed)


def _fails(record: ScanRecord, gate: FailOn) -> bool:
    from scanner.model.scan import OutcomeName

    match gate:
        case FailOn.DRIFT:
            drift = (key for key in record.tallies if key.outcome is OutcomeName.WOULD_CHANGE)
            return any(key.binding_key not in _assumed(record) for key in drift)
        case _ as never:
            assert_never(never)
