"""The page of a paper: it prints on at most 20 sheets, because long tables are cut there, and stand whole in the CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from scanner.model.scans.finding_period import FindingOfPeriod, PeriodChange
from scanner.report.html.site import style_of
from scanner.report.html.templates import content_hash, environment
from scanner.report.paper.control_paper import ControlPaper
from scanner.report.text.titles import check_title

MOST_FINDINGS: Final = 200
_MOST: Final = {"runs": 100, "waivers": 40, "rules": 50, "changes": 40, "days": 30}
_WORDS: Final = {
    PeriodChange.NEW: "new",
    PeriodChange.REOPENED: "reopened",
    PeriodChange.CONTINUED: "continues another finding",
    PeriodChange.RESOLVED: "resolved",
    PeriodChange.REPLACED: "goes on as another finding",
}


def render_page(paper: ControlPaper, sums: Mapping[str, str]) -> str:
    """The page as HTML, given the SHA-256 digests of the other files."""
    templates = environment()
    style = style_of(templates, paper.document.provenance)["style"]
    style += templates.get_template("control_paper.css").render()
    return templates.get_template("control_paper.html").render(
        paper=paper,
        title=f"{paper.chosen.name} · {paper.period.text}",
        web=None,
        sums=sums,
        most=_MOST,
        most_findings=MOST_FINDINGS,
        findings=list(_list_lines(paper)),
        style=style,
        style_hash=content_hash(style),
    )


def _list_lines(paper: ControlPaper) -> Iterator[Mapping[str, Any]]:
    """The findings that stand on paper: those that changed first, then those that were open all the time."""
    ordered: Sequence[FindingOfPeriod] = sorted(
        paper.findings, key=lambda each: (not each.events, not each.open_at_end)
    )
    for each in islice(ordered, MOST_FINDINGS):
        finding = each.finding
        yield {
            "id": each.id,
            "policy": finding.policy,
            "check": check_title(finding.check),
            "object": f"{finding.kind} {finding.namespace}/{finding.name}".replace(" /", " "),
            "message": " ".join(finding.outcome.message.split()),
            "begin": each.open_at_begin,
            "end": each.open_at_end,
            "checked": each.checked,
            "changes": [(event.at, _WORDS[event.change], event.reason) for event in each.events],
        }
