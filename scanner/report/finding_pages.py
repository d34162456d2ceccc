"""The pages that list findings: one pass over the stream writes those of the policies and puts the others aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from scanner.model.scan import StoredFinding
from scanner.report.batches import Batch, batched
from scanner.report.by_policy import PolicySection
from scanner.report.definition import definition_of
from scanner.report.site import Site, pager
from scanner.report.spill import Spill
from scanner.report.templates import NAME
from scanner.report.words import check_title, cut, object_name, param_name, result_word, utc, visible

NEW = "new"
_BRIEF = 240


class Row(NamedTuple):
    """A finding on the page of its policy."""

    id: str
    kind: str
    name: str
    result: str
    message: str
    operation: str
    refused: bool
    status: str
    seen: str


class Brief(NamedTuple):
    """A finding on one line. `path` is the page of its policy that has it, `policy_path` the first one; or empty."""

    id: str
    path: str
    policy_path: str
    kind: str
    name: str
    policy: str
    check: str
    result: str
    message: str
    refused: bool
    status: str
    seen: str
    resolved: str


class Group(NamedTuple):
    """Findings of one check under one binding and param; `continued` when the page before began it."""

    check: str
    expression: str
    binding: str
    param: str
    actions: tuple[str, ...]
    rows: list[Row]
    continued: bool


def write_policy_pages(site: Site, spill: Spill) -> None:
    """Write every policy's pages, and put aside what the pages of namespaces and of new findings say.

    Raises ValueError when findings do not come ordered by policy, or are not those that were counted.
    """
    sections = {it.name: it for it in site.document.policies}
    for name, findings in groupby(site.document.findings(), key=lambda it: it.finding.policy):
        if name not in sections:
            raise ValueError(f"findings of {name} come in two places, or were not counted")
        _write_policy(site, spill, sections.pop(name), findings)
    for section in sections.values():
        if section.findings.total:
            raise ValueError(f"findings of {section.name} were counted, but are gone")
        _write_policy(site, spill, section, ())


def _write_policy(site: Site, spill: Spill, section: PolicySection, findings: Iterable[StoredFinding]) -> None:
    last: tuple[object, ...] | None = None
    definition = definition_of(section)
    for batch in batched(findings, _texts):
        path = site.policy_path(section.name, batch.number)
        groups = list(_groups(batch, last))
        pages = pager(site.policy_path(section.name), batch, section.findings.total)
        site.write(path, "policy.html", section.name, policy=section, definition=definition, groups=groups, pager=pages)
        _put_aside(site, spill, batch, path)
        last = _group_key(batch.rows[-1]) if batch.rows else None


def _texts(stored: StoredFinding) -> tuple[str, ...]:
    it = stored.finding
    return it.outcome.message, it.kind, it.namespace, it.name, it.binding, it.check.expression[:_BRIEF]


def _group_key(stored: StoredFinding) -> tuple[object, ...]:
    it = stored.finding
    return it.binding, it.param_namespace, it.param_name, it.check, it.actions


def _groups(batch: Batch[StoredFinding], last: tuple[object, ...] | None) -> Iterator[Group]:
    for key, members in groupby(batch.rows, key=_group_key):
        found = list(members)
        it = found[0].finding
        yield Group(
            check=check_title(it.check),
            expression=it.check.expression,
            binding=it.binding,
            param=param_name(it.param_namespace, it.param_name),
            actions=it.actions,
            rows=[_row(stored) for stored in found],
            continued=key == last,
        )


def _row(stored: StoredFinding) -> Row:
    it = stored.finding
    return Row(
        id=stored.id,
        kind=cut(it.kind, NAME),
        name=cut(object_name(it), NAME),
        result=result_word(it.outcome),
        message=it.outcome.message,
        operation=it.operation,
        refused=it.denies,
        status=stored.status,
        seen=day(stored.first_seen),
    )


def day(moment: datetime) -> str:
    """Say when, to the minute: a column is narrow."""
    return f"{utc(moment):%Y-%m-%d %H:%M}"


def _put_aside(site: Site, spill: Spill, batch: Batch[StoredFinding], path: str) -> None:
    first_scan = not site.document.provenance.previous_scan_id
    for stored in batch.rows:
        brief = brief_of(stored, path, site.policy_path(stored.finding.policy))
        spill.add(f"namespace {stored.finding.namespace}", brief)
        if stored.status != "open" and not first_scan:
            spill.add(NEW, brief)


def brief_of(stored: StoredFinding, path: str, policy_path: str) -> Brief:
    """Say a finding on one line, for the lists that point to the page of its policy."""
    it = stored.finding
    return Brief(
        id=stored.id,
        path=path,
        policy_path=policy_path,
        kind=_brief(it.kind),
        name=_brief(object_name(it)),
        policy=_brief(it.policy),
        check=check_title(it.check),
        result=result_word(it.outcome),
        message=_brief(it.outcome.message),
        refused=it.denies,
        status=stored.status,
        seen=day(stored.first_seen),
        resolved=day(stored.resolved_at) if stored.resolved_at else "",
    )


def brief_texts(brief: Brief) -> Iterable[str]:
    """Name what a page shows of a brief finding."""
    return brief.kind, brief.name, brief.policy, brief.message


def _brief(text: str) -> str:
    return visible(text if len(text) <= _BRIEF else f"{text[:_BRIEF]}…")
