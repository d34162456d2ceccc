"""The numbers of a scan that metrics have.

A report has them in its document. A server reads them without one: counts by owner, scores and the worst problems take longer than
the rest, and no metric shows them. A test compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from scanner.model.method import ClockDifferences
from scanner.model.outcome import Gap
from scanner.model.policy import PolicyKey
from scanner.model.problem_group import ProblemGroup
from scanner.model.stored_scan import StoredScan
from scanner.posture.problem_groups import problem_groups
from scanner.posture.settings import Settings
from scanner.posture.severity import Severity
from scanner.posture.triage import Triage
from scanner.report.counts import Counts, counts_by
from scanner.report.coverage import CoverageSection, coverage_of
from scanner.report.document import Document, is_complete
from scanner.report.left_out import left_out_of
from scanner.report.unmatched import unmatched_policies
from scanner.report.waivers import WaiversSection, waivers_of


@dataclass(frozen=True, slots=True)
class ScanNumbers:
    """The numbers of a scan. `limited` is true if the user chose a part of the cluster or of the policies.

    `left_out` is what the user left out, `unmatched` are the policies that match nothing. `ended_at` is its start if it has no end.
    """

    tool_version: str
    started_at: datetime
    ended_at: datetime
    complete: bool
    limited: bool
    left_out: tuple[str, ...]
    coverage: CoverageSection
    gaps: tuple[Gap, ...]
    unmatched: frozenset[PolicyKey]
    counts: Mapping[PolicyKey, Counts]
    groups: tuple[ProblemGroup, ...]
    severity: Callable[[PolicyKey], Severity]
    resolutions: Mapping[str, int]
    waivers: WaiversSection | None
    clocks: ClockDifferences


def numbers_in(document: Document) -> ScanNumbers:
    """The numbers in the document of a report."""
    provenance = document.provenance
    return ScanNumbers(
        tool_version=provenance.tool_version,
        started_at=provenance.started_at,
        ended_at=provenance.finished_at or provenance.started_at,
        complete=document.complete,
        limited=document.limited,
        left_out=document.left_out,
        coverage=document.coverage,
        gaps=document.gaps,
        unmatched=unmatched_policies(document.stored),
        counts={section.key: document.in_force(section) for section in document.policies},
        groups=document.groups,
        severity=document.triage.severity,
        resolutions=document.stored.resolutions(),
        waivers=document.waivers,
        clocks=document.method.clocks if document.method else ClockDifferences(),
    )


def numbers_of(record: StoredScan, settings: Settings, day: date) -> ScanNumbers:
    """The numbers of a stored scan, as of a day in UTC."""
    scan, triage, coverage = record.scan, Triage(settings, record, day), coverage_of(record)
    return ScanNumbers(
        tool_version=scan.tool_version,
        started_at=scan.started_at,
        ended_at=scan.finished_at or scan.started_at,
        complete=is_complete(record, coverage),
        limited=scan.scope.is_limited,
        left_out=left_out_of(scan.scope, record.coverage, record.method),
        coverage=coverage,
        gaps=record.gaps,
        unmatched=unmatched_policies(record),
        counts=_in_force(record),
        groups=problem_groups(record, triage),
        severity=triage.severity,
        resolutions=record.resolutions(),
        waivers=waivers_of(triage),
        clocks=record.method.clocks if record.method else ClockDifferences(),
    )


def _in_force(record: StoredScan) -> Mapping[PolicyKey, Counts]:
    """The counts of policies without previews."""
    assumed = {binding.key for used in record.policies for binding in used.bindings if binding.assumed}
    return counts_by(record.tallies, lambda key: None if key.binding_key in assumed else key.policy_key)
