"""The pages of policies with their findings. The same pass spills the rows of all other pages of findings to disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from scanner.model.outcome import WouldChange
from scanner.model.scan import StoredFinding
from scanner.posture.triage import Triage
from scanner.report.batches import Batch, batched, weight
from scanner.report.brief import Place, brief_row
from scanner.report.by_policy import PolicySection
from scanner.report.definition import definition_of
from scanner.report.evidence import lines_with_excerpt
from scanner.report.rows import RowForm, joined
from scanner.report.site import Site, pager
from scanner.report.spill import Spill
from scanner.report.templates import NAME
from scanner.report.waivers import waiver_text
from scanner.report.words import (
    auditability,
    check_title,
    cut,
    message_of,
    minute,
    object_name,
    param_name,
    result_word,
    visible,
    workload_name,
)

NEW = "new"
DRIFT = "drift"
_SHOWN = 240


class Group(NamedTuple):
    """Findings of one check under one binding and param; `continued` if the group began on the previous page."""

    check: str
    expression: str
    binding: str
    param: str
    actions: tuple[str, ...]
    number: int
    rows: Markup
    continued: bool


def write_policy_pages(site: Site, spill: Spill) -> None:
    """Write the pages of every policy, and spill the rows for the pages of namespaces, new findings and drift.

    Raises ValueError when findings are not ordered by policy, or differ from those that were counted.
    """
    sections = {section.key: section for section in site.document.policies}
    for policy, findings in groupby(site.document.findings(), key=lambda stored: stored.finding.policy_key):
        if policy not in sections:
            raise ValueError(f"findings of {policy[1]} are not in one sequence, or were not counted")
        _write_policy(site, spill, sections.pop(policy), findings)
    for section in sections.values():
        if section.findings.total:
            raise ValueError(f"findings of {section.name} were counted, but are missing")
        _write_policy(site, spill, section, ())


def _write_policy(site: Site, spill: Spill, section: PolicySection, findings: Iterable[StoredFinding]) -> None:
    last: tuple[object, ...] | None = None
    definition = definition_of(section)
    limits = {
        check_title(check.check): auditability(check.auditability) for check in section.checks if check.auditability
    }
    for batch in batched(findings, _weigh):
        path = site.policy_path(section.key, batch.number)
        groups = list(_groups(site.finding_rows, batch, last, site.document.triage))
        pages = pager(site.policy_path(section.key), batch, section.findings.total)
        shown = {"policy": section, "definition": definition, "groups": groups, "limits": limits}
        site.write(path, "policy.html", section.name, pager=pages, **shown)
        _spill_rows(site, spill, batch, path)
        last = _group_key(batch.rows[-1]) if batch.rows else None


def _weigh(stored: StoredFinding) -> int:
    finding = stored.finding
    names = finding.kind, finding.namespace, finding.name, finding.binding, finding.check.expression[:_SHOWN]
    return weight(message_of(finding), *lines_with_excerpt(finding.evidence), *names, workload_name(stored))


def _group_key(stored: StoredFinding) -> tuple[object, ...]:
    finding = stored.finding
    return finding.binding, finding.param_namespace, finding.param_name, finding.check, finding.actions


def _groups(
    form: RowForm, batch: Batch[StoredFinding], last: tuple[object, ...] | None, triage: Triage
) -> Iterator[Group]:
    for key, members in groupby(batch.rows, key=_group_key):
        findings = list(members)
        first = findings[0].finding
        yield Group(
            check=check_title(first.check),
            expression=first.check.expression,
            binding=first.binding,
            param=param_name(first.param_namespace, first.param_name),
            actions=first.actions,
            number=len(findings),
            rows=joined(_row(form, stored, triage) for stored in findings),
            continued=key == last,
        )


def _row(form: RowForm, stored: StoredFinding, triage: Triage) -> str:
    finding = stored.finding
    name = visible(cut(object_name(finding), NAME))
    about = workload_name(stored), triage.owner(stored), waiver_text(triage.waiver(stored))
    workload, team, waiver = (visible(cut(text, NAME)) for text in about)
    flags = bool(workload), bool(team), bool(waiver)
    words = (result_word(finding.outcome), finding.denies, finding.operation, stored.status, *flags)
    texts = stored.id, cut(finding.kind, NAME), name, workload, team, waiver
    return form.row(
        words, (*texts, message_of(finding), minute(stored.first_seen), *lines_with_excerpt(finding.evidence))
    )


def _spill_rows(site: Site, spill: Spill, batch: Batch[StoredFinding], path: str) -> None:
    first_scan = not site.document.provenance.previous_scan_id
    for stored in batch.rows:
        policy = stored.finding.policy_key
        place = place_of(site, stored, path, site.policy_path(policy))
        row = brief_row(site.brief_rows, stored, place._replace(up="../"))
        spill.add(of_namespace(stored.finding.namespace), row)
        if stored.status in ("new", "reopened") and not first_scan:
            spill.add(NEW, brief_row(site.brief_rows, stored, place))
        if isinstance(stored.finding.outcome, WouldChange):
            spill.add(DRIFT, brief_row(site.brief_rows, stored, place))


def place_of(site: Site, stored: StoredFinding, path: str, policy_path: str) -> Place:
    """The place of a finding in a list of the top folder."""
    policy, triage = stored.finding.policy_key, site.document.triage
    title, severity = site.document.title(policy), str(triage.severity(policy))
    return Place("", path, policy_path, title, severity, triage.owner(stored), waiver_text(triage.waiver(stored)))


def of_namespace(namespace: str) -> str:
    """The name of the group of rows that belong to a namespace."""
    return f"namespace {namespace}"
