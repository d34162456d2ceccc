"""The chip with which a row begins: the strictest action, or what is different from a violation."""

from __future__ import annotations

from typing import Final, assert_never

from scanner.model.outcome import Errored, Violated, WouldChange
from scanner.model.scan import ALONE

REFUSED: Final = ("deny", "refused-error")
"""The chips of what would be refused."""
_RESULTS: Final = (*REFUSED, "error", "drift", "warn", "audit", "none")
CHIPS: Final = (*_RESULTS, *(f"preview-{result}" for result in _RESULTS), "excepted", "resolved")
"""The names of all chips; those of previews stand for what is not in force."""

STATUSES: Final = ("new", "open", "reopened", "preview", "outdated", "unchecked", "resolved", "waived")
"""The names of the chips beside an age; `open` has none."""


def chip_of(outcome: str, *, refused: bool, action: str, status: str = "open", excepted: bool = False) -> str:
    """The chip of an outcome, which `outcome_name` names; what is resolved or excepted has no action."""
    if status == "resolved":
        return "resolved"
    if excepted:
        return "excepted"
    result = _result(outcome, refused=refused, action=action)
    return f"preview-{result}" if status in ALONE else result


def _result(outcome: str, *, refused: bool, action: str) -> str:
    if outcome == "errored":
        return "refused-error" if refused else "error"
    if outcome == "wouldChange":
        return "drift"
    return "deny" if refused else {"Warn": "warn", "Audit": "audit"}.get(action, "none")


def outcome_name(outcome: Violated | WouldChange | Errored) -> str:
    """The name that the store has for an outcome: violated, wouldChange or errored."""
    match outcome:
        case Errored():
            return "errored"
        case WouldChange():
            return "wouldChange"
        case Violated():
            return "violated"
        case _ as never:
            assert_never(never)
