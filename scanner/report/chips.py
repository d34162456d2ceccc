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
    if status == "resolved":
        return "resolved"
    match outcome:
        case Errored():
            return "refused-error" if refused else "error"
        case WouldChange():
            return "drift"
        case Violated():
            return "deny" if refused else {"Warn": "warn", "Audit": "audit"}.get(action, "none")
        case _ as never:
            assert_never(never)
