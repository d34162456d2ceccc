"""The numbers of a scan's problems, and the worst of them: refusals first, then by severity, then the oldest.

The database answers the same question for a stored scan (`store.problem_totals`); a test compares both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from itertools import groupby
from typing import Final

from scanner.model.policy import PolicyKey
from scanner.model.problem_totals import ProblemTotals
from scanner.model.scan import ALONE, ProblemFinding, ScanRecord, StoredFinding
from scanner.posture.problem_rows import Problem, problems
from scanner.posture.severity import DEFAULT_SEVERITY
from scanner.posture.triage import Triage

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
        return self.problem.language, self.problem.policy


def problems_of(record: ScanRecord, triage: Triage) -> tuple[ProblemTotals, tuple[WorstProblem, ...]]:
    """The numbers of the problems of a scan, and the worst of them, at most `MOST`."""
    ranks = ranks_of(record, triage)
    if record.problem_totals is None:
        totals, worst = _counted(record, triage, ranks)
    else:
        totals, findings = record.problem_totals(ranks, triage.waived.rows, MOST)
        worst = [_worst(group, triage) for group in _grouped(findings, triage)]
    return totals, tuple(sorted(worst, key=lambda each: _order(each.problem, ranks)))


def new_problems(
    record: ScanRecord, triage: Triage, below: Collection[PolicyKey], most: int
) -> tuple[WorstProblem, ...]:
    """The worst of the new problems of a scan, without those of the policies in `below`."""
    every = open_problems(record.by_problem(), triage)
    new = (worst for worst in every if worst.problem.status in NEW and worst.policy_key not in below)
    return worst_first(new, triage, most)


def open_problems(findings: Iterable[ProblemFinding], triage: Triage) -> Iterator[WorstProblem]:
    """The open problems of the findings of a scan, in their order."""
    every = (_worst(group, triage) for group in _grouped(findings, triage))
    return (worst for worst in every if worst.problem.status != "resolved")


def worst_first(given: Iterable[WorstProblem], triage: Triage, most: int = MOST) -> tuple[WorstProblem, ...]:
    """The worst of some problems, the worst one first."""

    def order(each: WorstProblem) -> tuple[object, ...]:
        return _order(each.problem, {each.policy_key: triage.severity(each.policy_key).rank})

    return tuple(nsmallest(most, given, key=order))


def ranks_of(record: ScanRecord, triage: Triage) -> dict[PolicyKey, int]:
    """The rank of each policy's severity, 0 for the worst."""
    return {used.policy.key: triage.severity(used.policy.key).rank for used in record.policies}


def _counted(
    record: ScanRecord, triage: Triage, ranks: Mapping[PolicyKey, int]
) -> tuple[ProblemTotals, list[WorstProblem]]:
    """The same from the stream of findings, for a record that no database answers."""
    numbers = Counter[str]()
    open_problems = []
    for group in _grouped(record.by_problem(), triage):
        worst = _worst(group, triage)
        numbers.update(_facts(worst.problem))
        if worst.problem.status != "resolved":
            open_problems.append(worst)
    return ProblemTotals(**numbers), nsmallest(MOST, open_problems, key=lambda each: _order(each.problem, ranks))


def _grouped(findings: Iterable[ProblemFinding], triage: Triage) -> Iterable[list[ProblemFinding]]:
    """The findings of each problem that count; a problem that is still open has no resolved ones."""
    for _, group in groupby(findings, key=lambda each: each.stored.problem or each.stored.id):
        own = list(group)
        still_open = [each for each in own if each.stored.status != "resolved"]
        counted = [each for each in still_open or own if _counts(each, triage)]
        if counted:
            yield counted


def _counts(each: ProblemFinding, triage: Triage) -> bool:
    stored = each.stored
    if not each.checked or stored.status in ALONE or stored.finding.excepted_by:
        return False
    return triage.waiver(stored) is None


def _worst(group: list[ProblemFinding], triage: Triage) -> WorstProblem:
    refused = [each.stored for each in group if each.stored.finding.denies]
    return WorstProblem(next(problems(group, triage.waiver)), refused[0] if refused else group[0].stored)


def _facts(problem: Problem) -> dict[str, int]:
    if problem.status == "resolved":
        return {"resolved": 1, "fixed": int(problem.resolution == "fixed")}
    return {
        "open": 1,
        "refused": int(problem.denies),
        "new": int(problem.status == "new"),
        "reopened": int(problem.status == "reopened"),
    }


def _order(problem: Problem, ranks: Mapping[PolicyKey, int]) -> tuple[object, ...]:
    policy = problem.language, problem.policy
    return not problem.denies, ranks.get(policy, DEFAULT_SEVERITY.rank), problem.opened_at, problem.id
