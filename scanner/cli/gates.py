"""Gates that a user opts into with `--fail-on`. An incomplete scan takes precedence over a failed gate.

Like the score and the history, gates concern bound policies alone: a previewed policy fails no gate.
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
    """The gates."""

    DRIFT = "drift"


def failed(record: ScanRecord, gates: Iterable[FailOn]) -> int:
    """The exit code of the gates: 1 if one of them fails, else 0."""
    return _FAILED if any(_fails(record, gate) for gate in gates) else 0


def _assumed(record: ScanRecord) -> frozenset[BindingKey]:
    """The bindings that `--assume-bound` added."""
    return frozenset(
        binding.key for policy_record in record.policies for binding in policy_record.bindings if binding.assumed
    )


def _fails(record: ScanRecord, gate: FailOn) -> bool:
    from scanner.model.scan import OutcomeName

    match gate:
        case FailOn.DRIFT:
            drift = (key for key in record.tallies if key.outcome is OutcomeName.WOULD_CHANGE)
            return any(key.binding_key not in _assumed(record) for key in drift)
        case _ as never:
            assert_never(never)
