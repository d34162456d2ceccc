"""The navigation of the HTML report: four main pages with their counts, and all others below them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from scanner.report.document import Document
from scanner.report.sentences import gaps_of, is_compared

_OF_FOLDERS: Final = {
    "f": "findings.html",
    "problems": "findings.html",
    "policies": "policies.html",
    "namespaces": "namespaces.html",
    "owners": "owners.html",
    "controls": "controls.html",
}
_UNDER: Final = {"health.html": "policies.html", "opinion.html": "method.html"}


class Entry(NamedTuple):
    """A link of the navigation; `number` is None for a page that lists nothing, and `unit` what it counts."""

    path: str
    title: str
    number: int | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Navigation:
    """The main entries, and those below them."""

    primary: tuple[Entry, ...]
    secondary: tuple[Entry, ...]


def navigation_of(document: Document) -> Navigation:
    """The navigation of a report; controls and drift have an entry only if there are some."""
    gaps = gaps_of(document)
    primary = (
        Entry("index.html", "Summary"),
        Entry("findings.html", "Findings", document.problems.open, "open problems"),
        Entry("policies.html", "Policies", len(document.policies), "policies"),
        Entry("coverage.html", "Coverage", gaps or None, "gaps"),
    )
    return Navigation(primary, tuple(_secondary(document)))


def _secondary(document: Document) -> list[Entry]:
    changes, waivers, drift = document.changes, document.waivers, document.findings_total.drift
    controls = sum(len(framework.controls) for framework in document.controls)
    changed = changes.new + changes.reopened + changes.resolved if is_compared(document) else None
    return [
        Entry("namespaces.html", "Namespaces", len(document.namespaces)),
        Entry("owners.html", "Owners", len(document.owners)),
        *([Entry("controls.html", "Controls", controls)] if controls else []),
        Entry("changes.html", "Changes", changed),
        *([Entry("drift.html", "Drift", drift)] if drift else []),
        Entry("waivers.html", "Waivers", len(waivers.lines) if waivers else None),
        Entry("runs.html", "Runs"),
        Entry("population.html", "Population"),
        Entry("method.html", "Method"),
        Entry("appendix.html", "Appendix"),
    ]


def section_of(path: str) -> str:
    """The entry of the navigation to which a page belongs."""
    folder, slash, _ = path.partition("/")
    if slash:
        return _OF_FOLDERS[folder]
    page = re.sub(r"[_-]\d+\.html$", ".html", path)
    return _UNDER.get(page, page)
