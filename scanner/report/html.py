"""The report as a set of static pages: no script, no request, no server; for the screen, a phone and paper.

Every page carries the provenance of the scan. A Content-Security-Policy forbids everything but the page's own style
sheet, so that text which came from a cluster stays text even if an escape were forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scanner.model.outcome import Gap
from scanner.model.scan import Health
from scanner.report.document import Document
from scanner.report.finding_pages import NEW, Brief, brief_of, brief_texts, write_policy_pages
from scanner.report.folder import replaced
from scanner.report.sentences import namespace_title, worst_namespaces, worst_policies
from scanner.report.site import Site, site_of
from scanner.report.spill import Spill
from scanner.report.templates import NAME

_TOP = 10


def render(document: Document, folder: Path) -> None:
    """Write the pages to `folder`, which appears whole; an earlier report there is replaced.

    Raises UsageError when `folder` holds anything else, or cannot be written.
    """
    with replaced(folder) as fresh:
        site = site_of(document, fresh)
        spill = Spill(fresh.with_name("aside"))
        write_policy_pages(site, spill)
        _write_namespaces(site, spill)
        _write_changes(site, spill)
        _write_lists(site)
        _write_summary(site)


def _write_namespaces(site: Site, spill: Spill) -> None:
    document = site.document
    ordered = worst_namespaces(document.namespaces)
    site.write_list(
        "namespaces.html", "Namespaces", ordered, total=len(ordered), texts=lambda it: (it.namespace[:NAME],)
    )
    for it in document.namespaces:
        rows = _put_aside(spill, f"namespace {it.namespace}")
        path = site.namespace_path(it.namespace)
        title = namespace_title(it.namespace)
        site.write_list(
            path, title, rows, total=it.findings.total, texts=brief_texts, template="namespace.html", namespace=it
        )


def _write_changes(site: Site, spill: Spill) -> None:
    changes = site.document.changes
    first = not site.document.provenance.previous_scan_id
    new = 0 if first else changes.new + changes.reopened
    site.write_list("new.html", "New findings", _put_aside(spill, NEW), total=new, texts=brief_texts)
    site.write_list("resolved.html", "Resolved findings", _resolved(site), total=changes.resolved, texts=brief_texts)


def _put_aside(spill: Spill, group: str) -> Iterator[Brief]:
    return (Brief(*row) for row in spill.rows(group))


def _resolved(site: Site) -> Iterator[Brief]:
    for stored in site.document.resolved():
        path = site.policy_path(stored.finding.policy) if stored.finding.policy in site.policies else ""
        yield brief_of(stored, path, path)


def _write_lists(site: Site) -> None:
    document = site.document
    policies = worst_policies(document.policies)
    site.write_list("policies.html", "Policies", policies, total=len(policies), texts=lambda it: (it.name[:NAME],))
    site.write_list("gaps.html", "Not looked at", document.gaps, total=len(document.gaps), texts=_gap_texts)
    site.write_list("health.html", "Policy health", document.health, total=len(document.health), texts=_health_texts)
    site.write("about.html", "about.html", "About this report")


def _gap_texts(gap: Gap) -> tuple[str, ...]:
    return gap.where, gap.why


def _health_texts(entry: Health) -> tuple[str, ...]:
    return entry.policy[:NAME], entry.binding[:NAME], entry.detail


def _write_summary(site: Site) -> None:
    document = site.document
    policies, namespaces = worst_policies(document.policies)[:_TOP], worst_namespaces(document.namespaces)[:_TOP]
    site.write("index.html", "index.html", "Summary", top_policies=policies, top_namespaces=namespaces)
