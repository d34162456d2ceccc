"""The findings that each gate of `--fail-on` names."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from scanner.model.gate import Gate
from scanner.model.outcome import Errored, Violated, WouldChange
from scanner.model.scan import StoredFinding


def is_named(stored: StoredFinding, gates: Collection[Gate], new: Collection[str]) -> bool:
    """Return whether one of some gates fails for an open finding that counts. `new` are the ids of the new problems."""
    return any(_names(gate, stored, new) for gate in gates)


def _names(gate: Gate, stored: StoredFinding, new: Collection[str]) -> bool:
    outcome = stored.finding.outcome
    match gate:
        case Gate.NEW:
            return stored.problem in new if stored.problem else stored.status == "new"
        case Gate.DENY:
            return stored.finding.denies
        case Gate.VIOLATED:
            return isinstance(outcome, Violated)
        case Gate.ERRORED:
            return isinstance(outcome, Errored)
        case Gate.DRIFT:
            return isinstance(outcome, WouldChange)
        case Gate.HEALTH:
            return False
        case _ as never:
            assert_never(never)
