"""The findings of a report by problem, each problem as the facts of one row: the workload, the worst of its findings, its age.

A problem that is still open also lists the findings of it that the scan resolved, and those that the scan did not check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, groupby
from typing import TypeAlias

from scanner.model.policy import PolicyKey
from scanner.model.scan import ProblemFinding, StoredFinding
from scanner.posture.problem_rows import strictest
from scanner.report.document import Document

FindingOrder: TypeAlias = tuple[int, bool, int, int]
"""The place of a problem in a report: smaller ones come first."""
_ACTIONS = ("Deny", "Warn", "Audit", "")
_UNCHECKED, _RESOLVED = 1, 2


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of a problem, the worst first. `status` is that of the problem: also `preview`, `unchecked` or `resolved`.

    `opened_at` is the beginning of the problem's latest episode; `action` the strictest of its open findings, or empty.
    """

    findings: tuple[ProblemFinding, ...]
    status: str
    action: str
    refused: bool
    opened_at: datetime
    severity: int

    @property
    def example(self) -> StoredFinding:
        """The worst finding, for which the row stands."""
        return self.findings[0].stored

    @property
    def order(self) -> FindingOrder:
        """The place of the problem in a report."""
        return order_of(self.status, self.action, refused=self.refused, severity=self.severity)


def order_of(status: str, action: str, *, refused: bool, severity: int) -> FindingOrder:
    """The place of a problem in a report: open ones, refusals and severe ones first."""
    phase = {"unchecked": _UNCHECKED, "resolved": _RESOLVED}.get(status, 0)
    return phase, not refused, severity, _ACTIONS.index(action)


def groups_of(document: Document, policies: frozenset[PolicyKey]) -> Iterator[FindingGroup]:
    """Every problem of some policies with its findings, previews included, ordered by policy."""
    rank = document.triage.severity
    for _, members in groupby(_findings(document, policies), key=lambda each: each.stored.problem or each.stored.id):
        own = tuple(members)
        yield _group(
            own if len(own) == 1 else tuple(sorted(own, key=_badness)), rank(own[0].stored.finding.policy_key).rank
        )


def _findings(document: Document, policies: frozenset[PolicyKey]) -> Iterable[ProblemFinding]:
    findings = document.problem_findings(policies)
    if not document.findings_total.preview:
        return findings
    previews = (
        ProblemFinding(stored, checked=True, episode="open")
        for stored in document.findings()
        if stored.status == "preview" and stored.finding.policy_key in policies
    )
    return chain(findings, previews)


def _badness(each: ProblemFinding) -> tuple[bool, bool, bool]:
    return each.stored.status == "resolved", not each.checked, not each.stored.finding.denies


def _group(own: tuple[ProblemFinding, ...], severity: int) -> FindingGroup:
    first = own[0]
    still_open = [each.stored.finding for each in own if each.stored.status != "resolved"]
    actions = {action for finding in still_open for action in finding.actions}
    opened = min(each.stored.problem_opened_at or each.stored.first_seen for each in own)
    refused = any(finding.denies for finding in still_open)
    return FindingGroup(own, _status(first), strictest(actions), refused, opened, severity)


def _status(first: ProblemFinding) -> str:
    if first.stored.status in ("resolved", "preview"):
        return first.stored.status
    return first.episode if first.checked else "unchecked"
