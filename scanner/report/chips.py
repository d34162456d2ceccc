"""The chip with which a row begins: the strictest action, or what is different from a violation."""

from __future__ import annotations

from typing import Final, assert_never

from scanner.model.outcome import Errored, Violated, WouldChange

CHIPS: Final = ("deny", "refused-error", "error", "drift", "warn", "audit", "none", "resolved")
"""The names of all chips. `deny` and `refused-error` stand for what would be refused."""

STATUSES: Final = ("new", "open", "reopened", "preview", "unchecked", "resolved", "waived")
"""The names of the chips beside an age; `open` has none."""


def chip_of(outcome: Violated | WouldChange | Errored, *, refused: bool, action: str, status: str = "open") -> str:
    """The chip of an outcome with the strictest of its actions; what is resolved has no action any more."""
    return chip_of_name(_name(outcome), refused=refused, action=action, status=status)


def chip_of_name(outcome: str, *, refused: bool, action: str, status: str = "open") -> str:
    """The chip of an outcome, given as the store names it: violated, wouldChange or errored."""
    if status == "resolved":
        return "resolved"
    if outcome == "errored":
        return "refused-error" if refused else "error"
    if outcome == "wouldChange":
        return "drift"
    return "deny" if refused else {"Warn": "warn", "Audit": "audit"}.get(action, "none")


def _name(outcome: Violated | WouldChange | Errored) -> str:
    match outcome:
        case Errored():
            return "errored"
        case WouldChange():
            return "wouldChange"
        case Violated():
            return "violated"
        case _ as never:
            assert_never(never)
