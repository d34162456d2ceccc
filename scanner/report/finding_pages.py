"""The pages that list findings: one pass over the stream writes those of the policies and puts the others aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from scanner.model.outcome import WouldChange
from scanner.model.scan import StoredFinding
from scanner.report.batches import Batch, batched, weight
from scanner.report.brief import Place, brief_row
from scanner.report.by_policy import PolicySection
from scanner.report.definition import definition_of
from scanner.report.evidence import evidence_lines
from scanner.report.rows import RowForm, joined
from scanner.report.site import Site, pager
from scanner.report.spill import Spill
from scanner.report.templates import NAME
from scanner.report.words import (
    auditability,
    check_title,
    cut,
    minute,
    object_name,
    param_name,
    result_word,
    told,
    visible,
)

NEW = "new"
DRIFT = "drift"
_SHOWN = 240


class Group(NamedTuple):
    """Findings of one check under one binding and param; `continued` when the page before began it."""

    check: str
    expression: str
    binding: str
    param: str
    actions: tuple[str, ...]
    number: int
    rows: Markup
    continued: bool


def write_policy_pages(site: Site, spill: Spill) -> None:
    """Write every policy's pages, and put aside what the pages of namespaces and of new findings say.

    Raises ValueError when findings do not come ordered by policy, or are not those that were counted.
    """
    sections = {it.key: it for it in site.document.policies}
    for policy, findings in groupby(site.document.findings(), key=lambda it: it.finding.policy_key):
        if policy not in sections:
            raise ValueError(f"findings of {policy[1]} come in two places, or were not counted")
        _write_policy(site, spill, sections.pop(policy), findings)
    for section in sections.values():
        if section.findings.total:
            raise ValueError(f"findings of {section.name} were counted, but are gone")
        _write_policy(site, spill, section, ())


def _write_policy(site: Site, spill: Spill, section: PolicySection, findings: Iterable[StoredFinding]) -> None:
    last: tuple[object, ...] | None = None
    definition = definition_of(section)
    limits = {check_title(it.check): auditability(it.auditability) for it in section.checks if it.auditability}
    for batch in batched(findings, _weigh):
        path = site.policy_path(section.key, batch.number)
        groups = list(_groups(site.finding_rows, batch, last))
        pages = pager(site.policy_path(section.key), batch, section.findings.total)
        shown = {"policy": section, "definition": definition, "groups": groups, "limits": limits}
        site.write(path, "policy.html", section.name, pager=pages, **shown)
        _put_aside(site, spill, batch, path)
        last = _group_key(batch.rows[-1]) if batch.rows else None


def _weigh(stored: StoredFinding) -> int:
    it = stored.finding
    return weight(
        told(it), *evidence_lines(it.evidence), it.kind, it.namespace, it.name, it.binding, it.check.expression[:_SHOWN]
    )


def _group_key(stored: StoredFinding) -> tuple[object, ...]:
    it = stored.finding
    return it.binding, it.param_namespace, it.param_name, it.check, it.actions


def _groups(form: RowForm, batch: Batch[StoredFinding], last: tuple[object, ...] | None) -> Iterator[Group]:
    for key, members in groupby(batch.rows, key=_group_key):
        found = list(members)
        it = found[0].finding
        yield Group(
            check=check_title(it.check),
            expression=it.check.expression,
            binding=it.binding,
            param=param_name(it.param_namespace, it.param_name),
            actions=it.actions,
            number=len(found),
            rows=joined(_row(form, stored) for stored in found),
            continued=key == last,
        )


def _row(form: RowForm, stored: StoredFinding) -> str:
    it = stored.finding
    words = (result_word(it.outcome), it.denies, it.operation, stored.status)
    name = visible(cut(object_name(it), NAME))
    return form.row(
        words, (stored.id, cut(it.kind, NAME), name, told(it), minute(stored.first_seen), *evidence_lines(it.evidence))
    )


def _put_aside(site: Site, spill: Spill, batch: Batch[StoredFinding], path: str) -> None:
    first_scan = not site.document.provenance.previous_scan_id
    for stored in batch.rows:
        policy = stored.finding.policy_key
        policy_path, title = site.policy_path(policy), site.document.title(policy)
        row = brief_row(site.brief_rows, stored, Place("../", path, policy_path, title))
        spill.add(of_namespace(stored.finding.namespace), row)
        if stored.status in ("new", "reopened") and not first_scan:
            spill.add(NEW, brief_row(site.brief_rows, stored, Place("", path, policy_path, title)))
        if isinstance(stored.finding.outcome, WouldChange):
            spill.add(DRIFT, brief_row(site.brief_rows, stored, Place("", path, policy_path, title)))


def of_namespace(namespace: str) -> str:
    """Name the group of rows that belong to a namespace."""
    return f"namespace {namespace}"
