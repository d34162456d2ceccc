"""The report as static HTML pages without requests, for screens, phones and paper.

Every page shows the provenance of the scan. A Content-Security-Policy forbids everything but the page's own style
sheet, so that text from a cluster stays text even where an escape is missing. The list of findings has a script; it is complete without.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from scanner.model.outcome import Gap
from scanner.model.policy import PolicyKey
from scanner.model.scan import Health
from scanner.posture.score import NO_SCORE, Score
from scanner.posture.worst_problems import WorstProblem
from scanner.report import csv_population
from scanner.report.batches import weight
from scanner.report.by_control import ControlSection, FrameworkSection
from scanner.report.by_owner import OwnerSection
from scanner.report.chips import chip_of
from scanner.report.counts import NO_FINDINGS
from scanner.report.definition import definition_of
from scanner.report.document import Document
from scanner.report.file import text_file
from scanner.report.findings_html import write_findings
from scanner.report.folder import replaced
from scanner.report.place_pages import place_path
from scanner.report.sentences import namespace_title, verdict_parts, worst_namespaces, worst_owners, worst_policies
from scanner.report.site import Site, site_of
from scanner.report.templates import NAME, findings_link
from scanner.report.trend_picture import trend_of
from scanner.report.waivers import STATE_WORDS
from scanner.report.words import message_of, owner_title
from scanner.report.worst_table import age, effect

_TOP = 10
_VERDICT_PAGES = {
    "refused": findings_link(action="Deny"),
    "new": findings_link(status="new"),
    "reopened": findings_link(status="reopened"),
    "resolved": "resolved.html",
    "gaps": "coverage.html#gaps",
}
"""Where each part of the verdict leads."""
_POPULATION = "population.csv"


def render(document: Document, folder: Path) -> None:
    """Write the pages to `folder` in one step, in place of an earlier report.

    Raises UsageError when `folder` holds other files, or cannot be written.
    """
    with replaced(folder) as fresh:
        site = site_of(document, fresh)
        write_findings(site, fresh.with_name("aside"))
        _write_policies(site)
        _write_namespaces(site)
        _write_changes(site)
        _write_lists(site)
        _write_summary(site)


def _write_policies(site: Site) -> None:
    for section in site.document.policies:
        shown = {"policy": section, "definition": definition_of(section)}
        site.write(site.policy_path(section.key), "policy.html", section.name, **shown)


def _write_namespaces(site: Site) -> None:
    document = site.document
    ordered = worst_namespaces(document.namespaces)
    site.write_list(
        "namespaces.html",
        "Namespaces",
        ordered,
        total=len(ordered),
        weigh=lambda section: weight(section.namespace[:NAME]),
    )
    for section in document.namespaces:
        path, title = site.namespace_path(section.namespace), namespace_title(section.namespace)
        site.write(path, "namespace.html", title, namespace=section)


def _write_changes(site: Site) -> None:
    site.write("new.html", "new.html", "New findings")
    site.write("drift.html", "drift.html", "Drift")
    site.write("resolved.html", "resolved.html", "Resolved findings")


def _write_lists(site: Site) -> None:
    document = site.document
    policies = worst_policies(document.policies)
    site.write_list(
        "policies.html", "Policies", policies, total=len(policies), weigh=lambda policy: weight(policy.name[:NAME])
    )
    owners = owners_with_scores(document)
    site.write_list("owners.html", "Owners", owners, total=len(owners), weigh=lambda row: weight(row.owner[:NAME]))
    site.write_list("coverage.html", "Coverage", document.gaps, total=len(document.gaps), weigh=_weigh_gap)
    _write_population(site)
    site.write_list("health.html", "Policy health", document.health, total=len(document.health), weigh=_weigh_health)
    if document.controls:
        rows = [(framework, control) for framework in document.controls for control in framework.controls]
        site.write_list("controls.html", "Controls", rows, total=len(rows), weigh=_weigh_control)
    _write_waivers(site)
    site.write("about.html", "about.html", "About this report")
    if document.second_opinion:
        site.write("opinion.html", "opinion.html", "Second opinion", opinion=document.second_opinion)


def _write_population(site: Site) -> None:
    """The population beside its page, as a file for spreadsheets."""
    with text_file(site.folder / _POPULATION) as out:
        csv_population.render(site.document, out)
    site.write("population.html", "population.html", "Population", file=_POPULATION)


def _weigh_control(row: tuple[FrameworkSection, ControlSection]) -> int:
    framework, control = row
    names = (policy.name[:NAME] for policy in control.policies)
    return weight(framework.heading, control.id, control.title, *(note[:NAME] for note in control.why), *names)


class OwnerRow(NamedTuple):
    """A line of the page of owners."""

    owner: str
    title: str
    findings: OwnerSection
    score: Score


def owners_with_scores(document: Document) -> list[OwnerRow]:
    """The owners of objects that were checked, with their scores, worst first; unowned objects last."""
    scores = document.owner_scores()
    there = {section.owner: section for section in document.owners}
    clean = (OwnerSection(owner, NO_FINDINGS, ()) for owner in scores.keys() - there.keys())
    sections = worst_owners((*there.values(), *clean))
    return [OwnerRow(each.owner, owner_title(each.owner), each, scores.get(each.owner, NO_SCORE)) for each in sections]


def _write_waivers(site: Site) -> None:
    section = site.document.waivers
    lines = section.lines if section else ()
    site.write_list(
        "waivers.html",
        "Waivers",
        lines,
        total=len(lines),
        weigh=lambda line: weight(line.name[:NAME], line.scope, line.reason, line.why, line.source, line.control),
        waivers=section,
        state_words=STATE_WORDS,
    )


def _weigh_gap(gap: Gap) -> int:
    return weight(gap.where, gap.why)


def _weigh_health(health: Health) -> int:
    return weight(health.policy[:NAME], health.binding[:NAME], health.detail)


def _write_summary(site: Site) -> None:
    document = site.document
    policies, namespaces = worst_policies(document.policies)[:_TOP], worst_namespaces(document.namespaces)[:_TOP]
    site.write(
        "index.html",
        "index.html",
        "Summary",
        top_policies=policies,
        top_namespaces=namespaces,
        top_owners=worst_owners(document.owners)[:_TOP],
        worst=[_worst_row(document, each) for each in document.worst],
        verdict=[(part.text, _VERDICT_PAGES[part.kind]) for part in verdict_parts(document)],
        open_problems=document.problems.open,
        trend=trend_of(document.register().days),
    )


class WorstRow(NamedTuple):
    """A line of the worst problems. `link` is the place of one of its findings."""

    effect: str
    chip: str
    severity: str
    workload: str
    rule: str
    title: str
    policy: PolicyKey
    message: str
    age: str
    owner: str
    id: str
    link: str
    findings: int


def _worst_row(document: Document, worst: WorstProblem) -> WorstRow:
    finding, problem = worst.example.finding, worst.problem
    title = document.triage.description(finding.policy_key).title
    workload = problem.workload
    name = f"{workload.namespace}/{workload.name}" if workload.namespace else workload.name
    return WorstRow(
        effect=effect(worst),
        chip=chip_of(finding.outcome, refused=problem.denies, action=problem.action),
        severity=str(document.triage.severity(finding.policy_key)),
        workload=f"{workload.kind} {name}",
        rule=document.title(finding.policy_key),
        title=title if title != finding.policy else "",
        policy=finding.policy_key,
        message=message_of(finding),
        age=age(document, worst),
        owner=owner_title(document.triage.owner(problem)),
        id=problem.id,
        link=place_path(worst.example.id),
        findings=problem.findings,
    )
