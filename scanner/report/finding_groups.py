"""The findings of a report by problem, each problem as the facts of one row: the workload, the worst of its findings, its age.

A problem that is still open also lists the findings of it that the scan resolved, and those that the scan did not check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, groupby

from scanner.model.policy import PolicyKey
from scanner.model.scan import ProblemFinding, StoredFinding
from scanner.posture.triage import Triage
from scanner.report.chips import outcome_name
from scanner.report.document import Document
from scanner.report.problem_facts import FindingFacts, FindingOrder, ProblemFacts, problem_facts


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of a problem, the worst first, and what their row shows of the problem.

    `opened_at` is the beginning of the problem's latest episode, `severity` the rank of its policy.
    """

    findings: tuple[ProblemFinding, ...]
    facts: ProblemFacts
    opened_at: datetime
    severity: int

    @property
    def example(self) -> StoredFinding:
        """The worst finding, for which the row stands."""
        return self.findings[0].stored

    @property
    def order(self) -> FindingOrder:
        """The place of the problem in a report."""
        return self.facts.order(self.severity)


def groups_of(document: Document, policies: frozenset[PolicyKey]) -> Iterator[FindingGroup]:
    """Every problem of some policies with its findings, previews included, ordered by policy."""
    for _, members in groupby(_findings(document, policies), key=lambda each: each.stored.problem or each.stored.id):
        yield group_of(list(members), document.triage)


def _findings(document: Document, policies: frozenset[PolicyKey]) -> Iterable[ProblemFinding]:
    findings = document.by_problem(policies)
    if not document.findings_total.preview:
        return findings
    previews = (
        ProblemFinding(stored, checked=True, episode="open")
        for stored in document.findings()
        if stored.status == "preview" and stored.finding.policy_key in policies
    )
    return chain(findings, previews)


def group_of(members: Sequence[ProblemFinding], triage: Triage) -> FindingGroup:
    """The findings of one problem, of which there is one at least."""
    own = [(_facts(each, triage), each) for each in members]
    if len(own) > 1:
        own.sort(key=lambda pair: pair[0].badness)
    return FindingGroup(
        findings=tuple(each for _, each in own),
        facts=problem_facts([facts for facts, _ in own]),
        opened_at=min(each.stored.problem_opened_at or each.stored.first_seen for each in members),
        severity=triage.severity(members[0].stored.finding.policy_key).rank,
    )


def _facts(each: ProblemFinding, triage: Triage) -> FindingFacts:
    stored, finding = each.stored, each.stored.finding
    return FindingFacts(
        status=stored.status,
        episode=each.episode,
        checked=each.checked,
        outcome=outcome_name(finding.outcome),
        denies=finding.denies,
        actions=finding.actions,
        excepted=bool(finding.excepted_by),
        waived=triage.waiver(stored) is not None,
    )
