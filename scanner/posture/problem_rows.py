"""Findings joined to problems: one for each check and workload, with the strictest action of its bindings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Final, TypeAlias

from scanner.model.outcome import Check, Finding
from scanner.model.policy import ACTIONS, PolicyKey
from scanner.model.population import KeptOfObject, Workload
from scanner.model.scans.cause import Cause, cause_of
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES, ProblemFinding, StoredFinding
from scanner.posture.waivers.waivers import AppliedWaiver

REFUSE_PODS: Final = "RefusePods"
WEAKEST: Final = ("rulesChanged", "unbound", "notMatched", "objectGone", "noObjects", "moved", "fixed")
"""The reasons of resolutions, the first of which counts for a problem: it is fixed only if all its findings are."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem. `findings` is the number of its open findings, `unchecked` of those that the scan did not check.

    `first_seen` never moves; `opened_at` is the beginning of the latest episode, which goes on while one finding is open. `action`
    is the strictest one, empty for a policy whose bindings have none. `cause` is None if the scan changed nothing about the problem.
    `moved_to` are the ids of the problems in which its findings go on, if it ended because they moved.
    `example` is its first finding, the first open one if there is any, and `kept` are the kept labels of the object. `waiver` is None unless all its open findings are waived: it is the
    waiver that ends first.
    """

    id: str
    policy: str
    language: str
    check: Check
    workload: Workload
    first_seen: datetime
    last_seen: datetime
    status: str
    opened_at: datetime
    resolved_at: datetime | None
    resolution: str
    action: str
    denies: bool
    findings: int
    unchecked: int
    cause: Cause | None
    example: Finding
    kept: KeptOfObject | None = None
    waiver: AppliedWaiver | None = None
    moved_to: tuple[str, ...] = ()

    @property
    def policy_key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.language, self.policy

    @property
    def severity_key(self) -> tuple[PolicyKey, str]:
        """The policy and the expression of the check, which have the severity."""
        return self.policy_key, self.check.expression

    @property
    def refuses_pods(self) -> bool:
        """Return whether admission would admit the objects and refuse pods of them."""
        return not self.denies and self.action == REFUSE_PODS


WaiverOf: TypeAlias = Callable[[StoredFinding], AppliedWaiver | None]


def problems(findings: Iterable[ProblemFinding], waiver_of: WaiverOf = lambda _: None) -> Iterator[Problem]:
    """The problems of the findings of a scan, of which those of a problem follow each other; none without a checked finding.

    A problem is new or reopened if none of its findings was open before, resolved if none is open now, and otherwise open: a
    rollout, which resolves some findings and opens others, leaves it open. A finding of an older version, whose problem is not
    known, is a problem of its own.
    """
    for key, group in groupby(findings, key=lambda each: each.stored.problem or each.stored.id):
        group_findings = list(group)
        if any(each.checked for each in group_findings):
            yield problem_of(key, group_findings, waiver_of)


def select_counted(
    findings: Iterable[ProblemFinding], is_waived: Callable[[StoredFinding], bool]
) -> Iterator[list[ProblemFinding]]:
    """The findings of each problem that count: those that keep it open, or else those with which it ended.

    Previewed, outdated, excepted, unchecked and waived findings do not count. The store has the same rule: `store.read.open_problems`.
    """
    for _, group in groupby(findings, key=lambda each: each.stored.problem or each.stored.id):
        group_findings = list(group)
        still_open = [each for each in group_findings if each.stored.status != "resolved"]
        counted = [each for each in still_open or group_findings if _counts(each) and not is_waived(each.stored)]
        if counted:
            yield counted


def select_open(
    findings: Iterable[ProblemFinding], is_waived: Callable[[StoredFinding], bool]
) -> Iterator[list[ProblemFinding]]:
    """The findings that count of each problem that is open."""
    return (problem for problem in select_counted(findings, is_waived) if problem[0].stored.status != "resolved")


def _counts(each: ProblemFinding) -> bool:
    return each.checked and each.stored.status not in SINGLE_SCAN_STATUSES and not each.stored.finding.excepted_by


def order_effect(finding: Finding) -> int:
    """The place of a finding among those of a problem by what it does: refuses the object, refuses its pods, or less."""
    if finding.denies:
        return 0
    return 1 if REFUSE_PODS in finding.actions else 2


def select_alone(findings: Iterable[StoredFinding]) -> Iterator[list[ProblemFinding]]:
    """The findings of one scan alone, previews and outdated ones, by the problem that they would be, in the order of their ids.

    They are no part of a problem of the same id that is open.
    """
    lone_findings = sorted(
        (stored for stored in findings if stored.status in SINGLE_SCAN_STATUSES),
        key=lambda each: (each.problem or each.id, each.status),
    )
    for _, group in groupby(lone_findings, key=lambda each: (each.problem or each.id, each.status)):
        yield [ProblemFinding(stored, checked=True, episode="open") for stored in group]


def join_findings(group: Sequence[ProblemFinding], waiver_of: WaiverOf) -> Problem:
    """The problem of some findings as a list shows it: findings of one scan alone, and unchecked ones, have statuses of their own."""
    first = group[0].stored
    problem = problem_of(first.problem or first.id, group, waiver_of)
    if first.status in SINGLE_SCAN_STATUSES:
        return replace(problem, status=first.status, waiver=None)
    return problem if any(each.checked for each in group) else replace(problem, status="unchecked")


def choose_strictest(actions: Collection[str]) -> str:
    """The strictest of some actions; empty if there is none."""
    return next((action for action in ACTIONS if action in actions), "")


def choose_weakest(resolutions: Collection[str]) -> str:
    """The reason of a resolved problem, given those of its findings; empty if none is known."""
    return next((reason for reason in WEAKEST if reason in resolutions), "")


def problem_of(key: str, group: Sequence[ProblemFinding], waiver_of: WaiverOf) -> Problem:
    """The problem of some findings, of which there is one at least, in the order of their rows."""
    findings = [each.stored for each in group]
    first = findings[0]
    still_open = [stored for stored in findings if stored.status != "resolved"]
    status = group[0].episode if still_open else "resolved"
    actions = {action for stored in still_open for action in stored.finding.actions}
    ended = [] if still_open else findings
    return Problem(
        id=key,
        policy=first.finding.policy,
        language=first.finding.language,
        check=(still_open or findings)[0].finding.check,
        workload=first.workload or _own_workload(first),
        first_seen=min(stored.problem_first_seen or stored.first_seen for stored in findings),
        last_seen=max(stored.last_seen for stored in findings),
        status=status,
        opened_at=min(stored.problem_opened_at or stored.first_seen for stored in findings),
        resolved_at=max((stored.resolved_at for stored in ended if stored.resolved_at), default=None),
        resolution=choose_weakest({stored.resolution for stored in ended}),
        action=choose_strictest(actions),
        denies=any(stored.finding.denies for stored in still_open),
        findings=len(still_open),
        unchecked=sum(not each.checked for each in group),
        cause=_cause(status, findings),
        example=(still_open or findings)[0].finding,
        kept=(still_open or findings)[0].kept,
        moved_to=tuple(sorted({stored.moved_to for stored in ended if stored.moved_to})),
        waiver=_waiver([stored for stored in still_open if not stored.finding.excepted_by], waiver_of),
    )


def _waiver(still_open: Sequence[StoredFinding], waiver_of: WaiverOf) -> AppliedWaiver | None:
    waivers = list(map(waiver_of, still_open))
    applied = [waiver for waiver in waivers if waiver is not None]
    if not applied or len(applied) < len(waivers):
        return None
    return min(applied, key=lambda waiver: (waiver.until, waiver.name))


def _own_workload(stored: StoredFinding) -> Workload:
    finding = stored.finding
    return Workload(finding.api_version, finding.kind, finding.namespace, finding.name)


def _cause(status: str, findings: Iterable[StoredFinding]) -> Cause | None:
    """The parts that changed for any finding; of a problem that goes on, for the findings that went on."""
    changed = [stored for stored in findings if stored.cause and (status != "open" or stored.status == "open")]
    kinds = {kind for stored in changed if stored.cause for kind in stored.cause.kinds}
    return cause_of(kinds) if kinds else None
