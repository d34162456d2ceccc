"""Links to the list of findings."""

from __future__ import annotations

from urllib.parse import urlencode

from scanner.report.templates import NAME
from scanner.report.words import cut, visible


def findings_link(**filters: str) -> str:
    """The list of findings with filters, as the static report's function of this name makes it."""
    shown = {
        key: visible(cut(value, NAME)) for key, value in {**filters, "status": filters.get("status", "open")}.items()
    }
    return f"findings.html?{urlencode(shown)}"
