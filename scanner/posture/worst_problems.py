"""The numbers of a scan's problems, and the worst of them: refusals first, then by severity, then the oldest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from operator import itemgetter
from typing import Final

from scanner.model.policy import PolicyKey
from scanner.model.scans.problem_numbers import ProblemTotals, SeverityRanks
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.model.scans.stored_scan import ReportCounts, StoredScan
from scanner.posture.problem_rows import Problem, order_effect, problems, select_counted, select_open
from scanner.posture.since_baseline import follows_baseline, problems_since
from scanner.posture.triage import BelowSeverity, Triage

NEW: Final = ("new", "reopened")
"""The statuses of problems that were not open before."""
MOST: Final = 10
"""The number of worst problems that a report names on its first page."""


@dataclass(frozen=True, slots=True)
class WorstProblem:
    """A problem, and one of its open findings: one that admission would refuse, if there is any."""

    problem: Problem
    example: StoredFinding

    @property
    def policy_key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.problem.policy_key

    @property
    def severity_key(self) -> tuple[PolicyKey, str]:
        """The policy and the expression of the check, which have the severity."""
        return self.problem.severity_key


def problems_of(
    scan: StoredScan, triage: Triage, counts: ReportCounts | None = None
) -> tuple[ProblemTotals, tuple[WorstProblem, ...]]:
    """The numbers of the problems of a scan, and the worst of them, at most `MOST`. `counts` answers for the scan, if it is given."""
    ranks = triage.ranks
    if follows_baseline(scan):
        totals, findings = count_problems(problems_since(scan), ranks, triage.waives, MOST)
    else:
        totals, findings = (counts or scan).problem_totals(ranks, triage.waived.rows, MOST)
    worst = (_make_worst(group, triage) for group in select_counted(findings, triage.waives))
    return totals, tuple(sorted(worst, key=lambda each: _order(each.problem, ranks)))


def count_problems(
    findings: Iterable[ProblemFinding],
    ranks: SeverityRanks,
    is_waived: Callable[[StoredFinding], bool],
    most: int,
) -> tuple[ProblemTotals, tuple[ProblemFinding, ...]]:
    """The numbers of the problems with some findings, of which those of a problem follow each other, and the findings of the worst."""
    numbers = Counter[str]()
    counted = ((next(problems(own)), own) for own in select_counted(findings, is_waived))
    keyed = ((_order(problem, ranks), own) for problem, own in counted if _count(problem, numbers))
    worst = nsmallest(most, keyed, key=itemgetter(0))
    return ProblemTotals(**numbers), tuple(each for _, own in worst for each in own)


def find_new_problems(scan: StoredScan, triage: Triage, below: BelowSeverity, most: int) -> tuple[WorstProblem, ...]:
    """The worst of the new problems of a scan, without those that are `below` a severity."""
    every = list_worst_problems(problems_since(scan), triage)
    new = (worst for worst in every if worst.problem.status in NEW and not below(*worst.severity_key))
    return choose_worst(new, triage, most)


def list_worst_problems(findings: Iterable[ProblemFinding], triage: Triage) -> Iterator[WorstProblem]:
    """The open problems of the findings of a scan, in their order."""
    return (_make_worst(group, triage) for group in select_open(findings, triage.waives))


def choose_worst(
    problems_of_scan: Iterable[WorstProblem], triage: Triage, most: int = MOST
) -> tuple[WorstProblem, ...]:
    """The worst of some problems, the worst one first."""
    ranks = triage.ranks

    def order(each: WorstProblem) -> tuple[object, ...]:
        return _order(each.problem, ranks)

    return tuple(nsmallest(most, problems_of_scan, key=order))


def _make_worst(group: list[ProblemFinding], triage: Triage) -> WorstProblem:
    example = min((each.stored for each in group), key=lambda stored: order_effect(stored.finding))
    return WorstProblem(next(problems(group, triage.waiver)), example)


def _count(problem: Problem, numbers: Counter[str]) -> bool:
    """Count a problem; return whether it is open."""
    if problem.status == "resolved":
        numbers.update(resolved=1, fixed=int(problem.resolution == "fixed"))
        return False
    new, reopened = int(problem.status == "new"), int(problem.status == "reopened")
    numbers.update(
        open=1, refused=int(problem.denies), new=new, reopened=reopened, pods_refused=int(problem.refuses_pods)
    )
    return True


def _order(problem: Problem, ranks: SeverityRanks) -> tuple[object, ...]:
    return (
        not problem.denies,
        not problem.refuses_pods,
        ranks.of(*problem.severity_key),
        problem.opened_at,
        problem.id,
    )
