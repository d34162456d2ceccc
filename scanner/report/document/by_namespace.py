"""The results of a scan by namespace; the empty name stands for cluster-scoped objects."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from scanner.model.policy import VALIDATING, PolicyKey
from scanner.model.scans.census import Census
from scanner.model.scans.scan import ScanRecord
from scanner.posture.score import NO_SCORE, Score, Scores
from scanner.report.document.counts import (
    NO_FINDINGS,
    NOTHING,
    CheckCounts,
    FindingCounts,
    OutcomeCounts,
    counts_by,
    findings_by,
)


@dataclass(frozen=True, slots=True)
class PolicyCounts:
    """The results of one policy in a namespace."""

    policy: str
    counts: CheckCounts
    language: str = VALIDATING

    @property
    def key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.language, self.policy


@dataclass(frozen=True, slots=True)
class NamespaceSection:
    """Everything about one namespace except its findings; the empty name stands for cluster-scoped objects."""

    namespace: str
    counts: CheckCounts
    findings: FindingCounts
    policies: tuple[PolicyCounts, ...]
    score: Score


def namespaces_of(
    record: ScanRecord, outcomes: OutcomeCounts, census: Census, scores: Scores
) -> tuple[NamespaceSection, ...]:
    """Every namespace with outcomes or findings, by name."""
    totals = counts_by(record.tallies, lambda key: key.namespace)
    findings = findings_by(census, lambda bucket: bucket.namespace)
    policies: defaultdict[str, list[PolicyCounts]] = defaultdict(list)
    for (namespace, policy, language), counts in outcomes.places.items():
        policies[namespace].append(PolicyCounts(policy, counts, language))
    scored = scores.score_by_namespace()
    return tuple(
        NamespaceSection(
            name,
            totals.get(name, NOTHING),
            findings.get(name, NO_FINDINGS),
            tuple(policies.get(name, ())),
            scored.get(name, NO_SCORE),
        )
        for name in sorted(totals.keys() | findings.keys())
    )
