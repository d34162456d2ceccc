"""The numbers of a scan that metrics have, and the bound policies that match no object.

A report has them in its document. A server reads them without one: counts by owner, scores and the worst problems take longer than
the rest, and no metric shows them. A test compares both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import PolicyKey
from scanner.model.scans.health import HealthKind
from scanner.model.scans.method import ClockDifferences
from scanner.model.scans.problem_numbers import ProblemGroup
from scanner.model.scans.scan import CoverageState, PolicyRecord, ScanRecord
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.control_facts import PolicyNeeds, needs_of
from scanner.posture.grouped_problems import problem_groups
from scanner.posture.score import find_assumed_bindings
from scanner.posture.settings import Settings
from scanner.posture.triage import Triage
from scanner.report.document.counts import CheckCounts, counts_by
from scanner.report.document.coverage import CoverageSection, coverage_of, left_out_of
from scanner.report.document.document import Document, is_complete
from scanner.report.document.waivers import WaiversSection, waivers_of


@dataclass(frozen=True, slots=True)
class ScanNumbers:
    """The numbers of a scan. `limited` is true if the user chose a part of the cluster or of the policies.

    `left_out` is what the user left out, `unmatched` are the policies that match nothing. `ended_at` is its start if it has no end.
    `credentials_until` is the Unix time at which the credentials of the kubeconfig expire, None if it is not known.
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
    counts: Mapping[PolicyKey, CheckCounts]
    groups: tuple[ProblemGroup, ...]
    resolutions: Mapping[str, int]
    waivers: WaiversSection | None
    clocks: ClockDifferences
    credentials_until: int | None


def numbers_in(document: Document) -> ScanNumbers:
    """The numbers in the document of a report."""
    provenance = document.provenance
    return ScanNumbers(
        tool_version=provenance.tool_version,
        started_at=provenance.started_at,
        ended_at=provenance.ended_at,
        complete=document.complete,
        limited=document.limited,
        left_out=document.left_out,
        coverage=document.coverage,
        gaps=document.gaps,
        unmatched=find_unmatched_policies(document.stored),
        counts={section.key: document.count_in_force(section) for section in document.policies},
        groups=document.groups,
        resolutions=document.stored.resolutions(),
        waivers=document.waivers,
        clocks=document.method.clocks if document.method else ClockDifferences(),
        credentials_until=document.stored.method.credentials_until if document.stored.method else None,
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
        unmatched=find_unmatched_policies(record),
        counts=_count_in_force(record),
        groups=problem_groups(record, triage),
        resolutions=record.resolutions(),
        waivers=waivers_of(triage),
        clocks=record.method.clocks if record.method else ClockDifferences(),
        credentials_until=record.method.credentials_until if record.method else None,
    )


def _count_in_force(record: StoredScan) -> Mapping[PolicyKey, CheckCounts]:
    """The counts of policies without previews."""
    assumed = find_assumed_bindings(record)
    return counts_by(record.tallies, lambda key: None if key.binding_key in assumed else key.policy_key)


# The bound policies that match no object, as far as a scan shows that: each kind that they can match was listed
# completely.

_HEALTH: Final = frozenset({HealthKind.NO_KIND, HealthKind.NO_OBJECT})
_AUTO: Final = "auto"
_POLICY: Final = ""
"""The binding of an entry about a whole policy."""


def find_unmatched_policies(record: ScanRecord) -> frozenset[PolicyKey]:
    """The bound policies that match no object; none of a scan that shows a part of the cluster alone, or one of the operations."""
    scope = record.scan.scope
    noted = {(health.policy_key, health.binding) for health in record.health if health.kind in _HEALTH}
    unmatched = [used.policy.key for used in record.policies if _matches_nothing(used, noted)]
    if scope.is_limited or scope.operation != _AUTO or not unmatched:
        return frozenset()
    # Languages bring the compiler of expressions, which no other metric needs.
    from scanner.policies.language import list_constraints  # noqa: PLC0415

    needs = needs_of(record, list_constraints)
    return frozenset(policy for policy in unmatched if _has_all_lists(needs[policy]))


def _matches_nothing(used: PolicyRecord, noted: Collection[tuple[PolicyKey, str]]) -> bool:
    """Return whether no binding in force has matched an object."""
    key, bindings = used.policy.key, [binding.name for binding in used.bindings if not binding.assumed]
    return bool(bindings) and ((key, _POLICY) in noted or all((key, name) in noted for name in bindings))


def _has_all_lists(needs: PolicyNeeds) -> bool:
    # A document that cannot be read has no kind.
    gaps = any(gap.kind is not GapKind.DOCUMENT for gap in needs.gaps)
    return not gaps and all(line.state is CoverageState.LISTED for line in needs.coverage)
