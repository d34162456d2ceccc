"""Findings as CSV: one line for each, the open ones first, then those that the scan resolved."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, TextIO

from scanner.model.policy import PolicyKey
from scanner.model.scan import StoredFinding
from scanner.posture.triage import Triage
from scanner.report.document import Document
from scanner.report.evidence import evidence_lines
from scanner.report.spreadsheet import write
from scanner.report.words import check_title, iso, param_name, result_word, workload_name

TITLES: Final = (
    *("id", "problem", "status", "firstSeen", "resolvedAt", "resolution", "cause", "language", "policy", "binding"),
    *("outcome", "actions", "kind", "namespace", "name", "workload", "message", "severity", "title", "category"),
    *("owner", "waiver", "openedAt", "lastSeen", "wouldDeny", "param", "check", "controls", "exceptions", "evidence"),
)


def render(document: Document, out: TextIO) -> None:
    """Write a heading and one line for each finding."""
    write(out, TITLES, _rows(document))


def _rows(document: Document) -> Iterator[tuple[str, ...]]:
    for stored in chain(document.findings(), document.resolved()):
        yield cells(stored, document.triage)


def cells(stored: StoredFinding, triage: Triage) -> tuple[str, ...]:
    """The cells of a finding, in the order of `TITLES`. Times are RFC 3339 in UTC; an empty cell is a value that it lacks."""
    finding = stored.finding
    waiver = triage.waiver(stored)
    return (
        stored.id,
        stored.problem,
        stored.status,
        iso(stored.first_seen),
        iso(stored.resolved_at) if stored.resolved_at else "",
        stored.resolution,
        str(stored.cause.kind) if stored.cause else "",
        finding.language,
        finding.policy,
        finding.binding,
        result_word(finding.outcome),
        ",".join(finding.actions),
        finding.kind,
        finding.namespace,
        finding.name,
        workload_name(stored),
        finding.outcome.message,
        *described(finding.policy_key, triage),
        triage.owner(stored),
        waiver.name if waiver else "",
        iso(stored.opened_at) if stored.opened_at else "",
        iso(stored.last_seen),
        "true" if finding.denies else "false",
        param_name(finding.param_namespace, finding.param_name),
        check_title(finding.check),
        ",".join(triage.controls(finding.policy_key)),
        finding.excepted_by,
        "; ".join(evidence_lines(finding.evidence)),
    )


def described(policy: PolicyKey, triage: Triage) -> tuple[str, str, str]:
    """Severity, title and category of a policy."""
    description = triage.description(policy)
    return str(description.severity), description.title, description.category
