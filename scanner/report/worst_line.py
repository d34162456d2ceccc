"""A worst problem as a line of the summary page."""

from __future__ import annotations

from typing import NamedTuple

from scanner.posture.worst_problems import WorstProblem
from scanner.report.ages import age_text
from scanner.report.chips import chip_of, outcome_name
from scanner.report.document import Document
from scanner.report.place_pages import place_path
from scanner.report.words import plural


class WorstLine(NamedTuple):
    """The texts of a problem. `place` leads to one of its findings; `status` is that of the problem; `findings` are its objects."""

    chip: str
    severity: str
    status: str
    kind: str
    name: str
    policy: tuple[str, str]
    title: str
    owner: str
    age: str
    id: str
    place: str
    findings: str


def worst_line(document: Document, worst: WorstProblem) -> WorstLine:
    """The line of a problem."""
    problem, finding = worst.problem, worst.example.finding
    workload, key = problem.workload, finding.policy_key
    end = document.provenance.finished_at or document.provenance.started_at
    return WorstLine(
        chip=chip_of(outcome_name(finding.outcome), refused=problem.denies, action=problem.action),
        severity=str(document.triage.severity(key)),
        status=problem.status,
        kind=workload.kind,
        name="/".join(filter(None, (workload.namespace, workload.name))),
        policy=key,
        title=document.triage.description(key).title,
        owner=document.triage.owner(worst.example),
        age=age_text(problem.opened_at, end),
        id=problem.id,
        place=f"{place_path(worst.example.id)}#f-{worst.example.id}",
        findings=plural(problem.findings, "object"),
    )
