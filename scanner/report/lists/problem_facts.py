"""The facts of a problem in a list, by the facts of its findings: which of these count, its chip, and its place in the list.

The numbers of a report leave out waived, excepted and previewed findings, and those that the scan did not check
(`posture.worst_problems`): a problem that has others is what these are, and comes before the problems that have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, groupby
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

from scanner.model.outcome import Errored, Finding, Violated, WouldChange
from scanner.model.policy import ACTIONS, PolicyKey
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES, ProblemFinding, StoredFinding
from scanner.posture.problem_rows import REFUSE_PODS, choose_strictest
from scanner.posture.triage import Triage
from scanner.report.document.document import Document

# The chip with which a row begins: the strictest action, or what is different from a violation.

REFUSED: Final = ("deny", "refused-error")
"""The chips of what would be refused."""
_RESULTS: Final = (*REFUSED, "error", "pods", "drift", "warn", "audit", "none")
CHIPS: Final = (*_RESULTS, *(f"preview-{result}" for result in _RESULTS), "excepted", "resolved")
"""The names of all chips; those of previews stand for what is not in force."""

STATUSES: Final = ("new", "open", "reopened", "preview", "outdated", "unchecked", "resolved", "waived")
"""The names of the chips beside an age; `open` has none."""


def chip_of(outcome: str, *, refused: bool, action: str, status: str = "open", excepted: bool = False) -> str:
    """The chip of an outcome, which `outcome_name` names; what is resolved or excepted has no action."""
    if status == "resolved":
        return "resolved"
    if excepted:
        return "excepted"
    result = _result(outcome, refused=refused, action=action)
    return f"preview-{result}" if status in SINGLE_SCAN_STATUSES else result


def _result(outcome: str, *, refused: bool, action: str) -> str:
    if outcome == "errored":
        return "refused-error" if refused else "error"
    if outcome == "wouldChange":
        return "drift"
    return "deny" if refused else {"RefusePods": "pods", "Warn": "warn", "Audit": "audit"}.get(action, "none")


_EFFECTS: Final = {
    "Deny": "refused",
    REFUSE_PODS: "pods refused",
    "Warn": "warned",
    "Audit": "audited",
    "": "recorded",
}


def effect_of(outcome: Violated | WouldChange | Errored, *, denies: bool, action: str) -> str:
    """What an object would be: `refused`, `pods refused`, `warned`, `audited`, `changed`, or `admitted` despite an error.

    `action` is the strictest one. Without an action, a violation is `recorded`.
    """
    if denies:
        return "refused"
    match outcome:
        case WouldChange():
            return "changed"
        case Errored():
            return "admitted"
        case _:
            return "admitted" if action == "Deny" else _EFFECTS[action]


def effect_of_finding(finding: Finding) -> str:
    """What the object of a finding would be, as `effect_of` has it, or `excepted`."""
    if finding.excepted_by:
        return "excepted"
    return effect_of(finding.outcome, denies=finding.denies, action=choose_strictest(finding.actions))


def outcome_name(outcome: Violated | WouldChange | Errored) -> str:
    """The name that the store has for an outcome: violated, wouldChange or errored."""
    match outcome:
        case Errored():
            return "errored"
        case WouldChange():
            return "wouldChange"
        case Violated():
            return "violated"
        case _ as never:
            assert_never(never)


FindingOrder: TypeAlias = tuple[int, bool, int, int]
"""The place of a problem in a report: smaller ones come first."""
_ORDER: Final = (*ACTIONS, "")
_MOST: Final = 4096
_OPEN, _SET_ASIDE, _PREVIEW, _UNCHECKED, _RESOLVED = range(5)
COUNTED: Final = ("new", "open", "reopened")
"""The statuses of problems that the verdict counts, if they are neither waived nor excepted."""
_PHASES: Final = {"preview": _PREVIEW, "outdated": _PREVIEW, "unchecked": _UNCHECKED, "resolved": _RESOLVED}


class FindingFacts(NamedTuple):
    """The facts of a finding that decide about the row of its problem. `status` and `episode` are as in `ProblemFinding`."""

    status: str
    episode: str
    checked: bool
    outcome: str
    denies: bool
    actions: tuple[str, ...]
    excepted: bool
    waived: bool

    @property
    def badness(self) -> tuple[bool, bool, bool, int]:
        """The place of a finding among those of its problem: smaller ones come first."""
        effect = 0 if self.denies else 1 if REFUSE_PODS in self.actions else 2
        return self.status == "resolved", not self.checked, self.excepted or self.waived, effect


class ProblemFacts(NamedTuple):
    """The facts of a problem. `status` may be `preview`, `unchecked` or `resolved`; `action` is the strictest one, or empty.

    A problem is `waived` or `excepted` if no open finding of it is neither of both.
    """

    status: str
    action: str
    refused: bool
    chip: str
    waived: bool
    excepted: bool

    def order(self, severity: int) -> FindingOrder:
        """The place in a report of a problem with a severity, given as its rank: what the numbers count, refusals, severe ones first."""
        set_aside = _SET_ASIDE if self.waived or self.excepted else _OPEN
        return _PHASES.get(self.status, set_aside), not self.refused, severity, _ORDER.index(self.action)


class CommonProblem(NamedTuple):
    """The facts that many problems of a list share. `severity` is a rank, 0 for the worst. `expression` is that of the check."""

    policy: PolicyKey
    severity: int
    facts: ProblemFacts
    expression: str

    @property
    def order(self) -> tuple[FindingOrder, str, str]:
        """The place of such problems in the list: those of one place are ordered by their objects."""
        language, policy = self.policy
        return self.facts.order(self.severity), policy, language

    @property
    def is_preview(self) -> bool:
        """Return whether such problems are those of an assumed binding."""
        return self.facts.status in SINGLE_SCAN_STATUSES

    @property
    def is_counted(self) -> bool:
        """Return whether the verdict counts such problems."""
        return self.facts.status in COUNTED and not self.facts.waived and not self.facts.excepted


def workload_order(path: str, kind: str) -> str:
    """The text by which workloads are ordered, given `namespace/name` and a kind."""
    return f"{path}\t{kind}"


def order_by_workload(orders: Sequence[FindingOrder], workloads: Sequence[str], others: Sequence[Any]) -> list[int]:
    """The places of problems in the order of the list: the problems of a workload together, the worst workload and problem first.

    A problem that the numbers of a report count is never among those that they leave out. `others` decides between problems of one
    workload that are as bad, and is unique.
    """
    # Orders have few values: their places among them are compared faster.
    values = sorted(set(orders))
    place_of = {order: place for place, order in enumerate(values)}
    phases = [phase for phase, *_ in values]
    places = [place_of[order] for order in orders]
    best: dict[tuple[int, str], int] = {}
    for place, workload in zip(places, workloads, strict=True):
        phase = phases[place]
        best[phase, workload] = min(place, best.get((phase, workload), place))
    keys = [
        (best[phases[place], workload], workload, place, other)
        for place, workload, other in zip(places, workloads, others, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


def problem_facts(findings: Sequence[FindingFacts]) -> ProblemFacts:
    """The facts of the problem that some findings have, the worst of which come first."""
    return _join_one(findings[0]) if len(findings) == 1 else _join_several(findings)


@lru_cache(maxsize=_MOST)
def _join_one(finding: FindingFacts) -> ProblemFacts:
    """The facts of a problem with one finding, as most have: thousands have the same."""
    return _join_several((finding,))


def _join_several(findings: Sequence[FindingFacts]) -> ProblemFacts:
    first = findings[0]
    still_open = [each for each in findings if each.status != "resolved"]
    counted = [each for each in still_open if not each.excepted and not each.waived]
    deciding = counted or still_open
    action = choose_strictest({action for each in deciding for action in each.actions})
    refused = any(each.denies for each in deciding)
    excepted = bool(deciding) and all(each.excepted for each in deciding)
    status = _status(first)
    return ProblemFacts(
        status=status,
        action=action,
        refused=refused,
        chip=chip_of(first.outcome, refused=refused, action=action, status=status, excepted=excepted),
        waived=bool(still_open) and not counted and not excepted,
        excepted=excepted,
    )


def _status(first: FindingFacts) -> str:
    if first.status in (*SINGLE_SCAN_STATUSES, "resolved"):
        return first.status
    return first.episode if first.checked else "unchecked"


# The findings of a report by problem, each problem as the facts of one row: the workload, the worst of its findings,
# its age.
#
# A problem that is still open also lists the findings of it that the scan resolved, and those that the scan did not
# check.


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of a problem, the worst first, and what their row shows of the problem.

    `opened_at` is the beginning of the problem's latest episode, `severity` the rank of its check.
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
    pairs = [(_facts(each, triage), each) for each in members]
    if len(pairs) > 1:
        pairs.sort(key=lambda pair: pair[0].badness)
    return FindingGroup(
        findings=tuple(each for _, each in pairs),
        facts=problem_facts([facts for facts, _ in pairs]),
        opened_at=min(each.stored.problem_opened_at or each.stored.first_seen for each in members),
        severity=triage.severity(*members[0].stored.finding.severity_key).rank,
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
