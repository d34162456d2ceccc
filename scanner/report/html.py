"""The report as static HTML pages without requests, for screens, phones and paper.

Every page shows the provenance of the scan. A Content-Security-Policy forbids everything but the page's own style
sheet, so that text from a cluster stays text even where an escape is missing. The list of findings has a script; it is complete without.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scanner.model.outcome import Gap
from scanner.model.scan import Health
from scanner.posture.score import NO_SCORE, Score
from scanner.report import csv_population
from scanner.report.batches import weight
from scanner.report.by_control import ControlSection, FrameworkSection
from scanner.report.by_owner import OwnerSection
from scanner.report.change_counts import causes_of, reasons_of
from scanner.report.counts import NO_FINDINGS
from scanner.report.definition import definition_of
from scanner.report.document import Document
from scanner.report.file import text_file
from scanner.report.findings_html import write_findings
from scanner.report.folder import replaced
from scanner.report.group_files import GroupReader
from scanner.report.policy_texts import texts_of
from scanner.report.sentences import namespace_title, worst_namespaces, worst_owners, worst_policies
from scanner.report.site import Site, site_of
from scanner.report.templates import NAME
from scanner.report.trend_picture import trend_of
from scanner.report.waivers import STATE_WORDS
from scanner.report.words import owner_title
from scanner.report.worst_line import worst_line
from scanner.report.worst_rows import worst_rows

_TOP = 10


def render(document: Document, folder: Path) -> None:
    """Write the pages to `folder` in one step, in place of an earlier report.

    Raises UsageError when `folder` holds other files, or cannot be written.
    """
    owners = owners_with_scores(document)
    with replaced(folder) as fresh:
        site = site_of(document, fresh, [row.owner for row in owners])
        spilled = write_findings(site, fresh.with_name("aside"))
        _write_policies(site, spilled)
        _write_namespaces(site, spilled)
        _write_owners(site, spilled, owners)
        _write_controls(site, spilled)
        _write_changes(site, spilled)
        _write_lists(site)
        _write_register(site, owners)


def _write_policies(site: Site, spilled: GroupReader) -> None:
    days = site.document.policy_days()
    for section in site.document.policies:
        shown = {
            "policy": section,
            "definition": definition_of(section),
            "texts": texts_of(section, site.document.rules),
            "worst": worst_rows(spilled, "policy", site.policies[section.key]),
            "history": trend_of(days.get(section.key, ())),
        }
        site.write(site.policy_path(section.key), "policy.html", section.name, **shown)


def _write_namespaces(site: Site, spilled: GroupReader) -> None:
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
        worst = worst_rows(spilled, "namespace", section.namespace)
        site.write(path, "namespace.html", title, namespace=section, worst=worst)


def _write_owners(site: Site, spilled: GroupReader, owners: Sequence[OwnerRow]) -> None:
    site.write_list("owners.html", "Owners", owners, total=len(owners), weigh=lambda row: weight(row.owner[:NAME]))
    for row in owners:
        worst = worst_rows(spilled, "owner", row.owner)
        site.write(site.owner_path(row.owner), "owner.html", row.title, row=row, worst=worst)


def _write_controls(site: Site, spilled: GroupReader) -> None:
    controls = [(framework, control) for framework in site.document.controls for control in framework.controls]
    if controls:
        site.write_list("controls.html", "Controls", controls, total=len(controls), weigh=_weigh_control)
    for framework, control in controls:
        bound = [site.policies[policy.language, policy.name] for policy in control.policies if policy.bound]
        shown = {"framework": framework, "control": control, "worst": worst_rows(spilled, "policy", *bound)}
        title = f"{control.id} {control.title}"
        site.write(
            site.control_path(f"{framework.name}/{control.id}"), "control.html", title, sections=site.sections, **shown
        )


def _write_changes(site: Site, spilled: GroupReader) -> None:
    site.write("changes.html", "changes.html", "Changes", causes=causes_of(spilled), reasons=reasons_of(spilled))
    site.write("drift.html", "drift.html", "Drift")


def _write_lists(site: Site) -> None:
    document = site.document
    policies = worst_policies(document.policies)
    site.write_list(
        "policies.html", "Policies", policies, total=len(policies), weigh=lambda policy: weight(policy.name[:NAME])
    )
    site.write_list("coverage.html", "Coverage", document.gaps, total=len(document.gaps), weigh=_weigh_gap)
    site.write_list("health.html", "Policy health", document.health, total=len(document.health), weigh=_weigh_health)
    _write_waivers(site)
    site.write("population.html", "population.html", "Population")
    with text_file(site.folder / "population.csv") as population:
        csv_population.render(document, population)
    site.write("method.html", "method.html", "Method and provenance")
    site.write("appendix.html", "appendix.html", "Appendix")
    if document.second_opinion:
        site.write("opinion.html", "opinion.html", "Second opinion", opinion=document.second_opinion)


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


def _write_register(site: Site, owners: Sequence[OwnerRow]) -> None:
    """Write the pages that read the register: the runs and the summary."""
    document = site.document
    register = document.register()
    trend = trend_of(register.days)
    site.write("runs.html", "runs.html", "Runs", register=register, trend=trend)
    site.write(
        "index.html",
        "index.html",
        "Summary",
        trend=trend,
        owners=owners,
        top_owners=owners[:_TOP],
        top_policies=worst_policies(document.policies)[:_TOP],
        top_namespaces=worst_namespaces(document.namespaces)[:_TOP],
        worst=[worst_line(document, each) for each in document.worst],
    )
