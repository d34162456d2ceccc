"""Links to the list of findings."""

from __future__ import annotations

from urllib.parse import urlencode

from scanner.report.html.templates import NAME
from scanner.report.lists.filters import UNRESOLVED
from scanner.report.text.safe_text import cut, visible


def findings_link(**filters: str) -> str:
    """The list of findings with filters, as the static report's function of this name makes it."""
    status = filters.get("status", UNRESOLVED)
    shown = {key: visible(cut(value, NAME)) for key, value in {**filters, "status": status}.items()}
    return f"findings.html?{urlencode(shown)}"
