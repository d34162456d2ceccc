"""The findings of a scan by owner and by severity, and the scores of owners. Objects without an owner are one part of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scanner.model.scans.census import Bucket, Census, OwnedCensus
from scanner.model.scans.stored_scan import ReportCounts
from scanner.posture.score import Score, Scores, owner_scores
from scanner.posture.severity import Severity
from scanner.posture.triage import Triage
from scanner.report.document.counts import FindingCounts, count_findings


@dataclass(frozen=True, slots=True)
class SeverityCounts:
    """The findings of checks of one severity."""

    severity: Severity
    findings: FindingCounts


@dataclass(frozen=True, slots=True)
class OwnerSection:
    """The findings about the objects of one owner; the empty name stands for objects without an owner."""

    owner: str
    findings: FindingCounts
    severities: tuple[SeverityCounts, ...]

    def of(self, *severities: Severity) -> int:
        """The number of findings with one of these severities."""
        return sum(each.findings.total for each in self.severities if each.severity in severities)


def owners_of(counted: Iterable[OwnedCensus], triage: Triage) -> tuple[OwnerSection, ...]:
    """Every owner with findings, by name; unowned objects last."""
    sections = (
        OwnerSection(owner, count_findings(census.items()), _severities(census.items(), triage))
        for owner, census in counted
    )
    return tuple(sorted(sections, key=lambda section: (not section.owner, section.owner)))


def severities_of(census: Census, triage: Triage) -> tuple[SeverityCounts, ...]:
    """The findings by severity, worst first; of every severity, also without findings."""
    of_severity = {each.severity: each for each in _severities(census.items(), triage)}
    return tuple(of_severity.get(severity, SeverityCounts(severity, FindingCounts())) for severity in Severity)


def scores_by_owner(counts: ReportCounts, triage: Triage, scores: Scores) -> Mapping[str, Score]:
    """The score of each owner with checked objects, unowned ones included. Reads the population of the scan."""
    return owner_scores(counts.tallies_by_owner(triage.owner_of), scores)


def _severities(buckets: Iterable[tuple[Bucket, int]], triage: Triage) -> tuple[SeverityCounts, ...]:
    parts: defaultdict[Severity, list[tuple[Bucket, int]]] = defaultdict(list)
    for bucket, number in buckets:
        parts[triage.severity(bucket.policy, bucket.expression)].append((bucket, number))
    return tuple(
        SeverityCounts(severity, count_findings(parts[severity])) for severity in Severity if severity in parts
    )
