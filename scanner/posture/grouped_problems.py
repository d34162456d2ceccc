"""The open problems of a scan by namespace, by owner, by policy and by control, and their numbers by action and outcome.

A problem is in each group that has one of its findings, so it can be in several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from scanner.model.outcome import Errored, Violated, WouldChange
from scanner.model.policy import PolicyKey
from scanner.model.scans.problem_numbers import (
    NO_PROBLEMS,
    GroupedProblems,
    OpenProblems,
    ProblemGroup,
    ProblemsByCheck,
    SeverityRanks,
)
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.model.scans.stored_scan import ReportCounts, StoredScan
from scanner.posture.control_checks import ServingChecks
from scanner.posture.problem_rows import problems, select_open
from scanner.posture.since_baseline import follows_baseline, problems_since
from scanner.posture.triage import Triage


def problems_by_namespace(scan: StoredScan, triage: Triage, counts: ReportCounts | None = None) -> GroupedProblems:
    """The open problems by the namespace of their objects; the empty name stands for cluster-scoped ones.

    `counts` answers for the scan, if it is given; here and below.
    """
    if follows_baseline(scan):
        return group_problems(problems_since(scan), triage.waives, lambda stored: stored.finding.namespace)
    return (counts or scan).problems_by_namespace(triage.waived.rows)


def problems_by_owner(scan: StoredScan, triage: Triage, counts: ReportCounts | None = None) -> GroupedProblems:
    """The open problems by the owner of their objects; the empty name stands for objects without an owner."""
    if follows_baseline(scan):
        return group_problems(problems_since(scan), triage.waives, triage.owner)
    return (counts or scan).problems_by_owner(triage.owner_of, triage.waived.rows)


def group_problems(
    findings: Iterable[ProblemFinding],
    is_waived: Callable[[StoredFinding], bool],
    name_of: Callable[[StoredFinding], str],
) -> GroupedProblems:
    """The open problems with some findings, of which those of a problem follow each other, by the group of each finding."""
    return join_groups(_places(select_open(findings, is_waived), name_of))


def problems_by_policy(groups: Iterable[ProblemGroup]) -> Mapping[PolicyKey, OpenProblems]:
    """The open problems by policy. A problem has one policy."""
    sums: defaultdict[PolicyKey, OpenProblems] = defaultdict(OpenProblems)
    for group in groups:
        policy = group.language, group.policy
        sums[policy] = sums[policy].add(OpenProblems(group.number, group.refused, group.new, group.pods_refused))
    return dict(sums)


def problems_by_check(scan: StoredScan, triage: Triage) -> ProblemsByCheck:
    """The open problems by policy and expression of their check."""
    if follows_baseline(scan):
        return count_by_check(problems_since(scan), triage.waives)
    return scan.problems_by_check(triage.waived.rows)


def count_by_check(
    findings: Iterable[ProblemFinding], is_waived: Callable[[StoredFinding], bool]
) -> dict[tuple[PolicyKey, str], OpenProblems]:
    """The open problems with some findings, of which those of a problem follow each other, by policy and expression of their check."""
    sums: defaultdict[tuple[PolicyKey, str], OpenProblems] = defaultdict(OpenProblems)
    for counted in select_open(findings, is_waived):
        # Like the database: a problem can have findings of two versions of its check.
        key = counted[0].stored.finding.severity_key
        sums[key] = sums[key].add(_count_one(counted))
    return dict(sums)


def problems_by_control(by_check: ProblemsByCheck, controls: Mapping[str, ServingChecks]) -> GroupedProblems:
    """The open problems of the checks of each control of a framework. A check can belong to several controls, or to none."""
    serving = {key: [name for name, checks in controls.items() if checks.has(*key)] for key in by_check}
    groups = dict.fromkeys(controls, NO_PROBLEMS)
    for key, names in serving.items():
        groups |= {name: groups[name].add(by_check[key]) for name in names}
    return GroupedProblems(
        groups=groups,
        several=_sum(numbers for key, numbers in by_check.items() if len(serving[key]) > 1),
        repeated=_sum(numbers for key, numbers in by_check.items() for _ in serving[key][1:]),
        outside=_sum(numbers for key, numbers in by_check.items() if not serving[key]),
    )


def join_groups(counted: Iterable[tuple[str, int, OpenProblems]]) -> GroupedProblems:
    """Join numbers of problems: the name of a group, the number of groups that each of these problems is in, and the numbers."""
    groups: defaultdict[str, OpenProblems] = defaultdict(OpenProblems)
    of_size: defaultdict[int, OpenProblems] = defaultdict(OpenProblems)
    for name, size, numbers in counted:
        groups[name] = groups[name].add(numbers)
        of_size[size] = of_size[size].add(numbers)
    # Each of them was counted once for each of its groups.
    once = {size: OpenProblems(*(number // size for number in numbers)) for size, numbers in of_size.items()}
    return GroupedProblems(
        groups={name: groups[name] for name in sorted(groups)},
        several=_sum(numbers for size, numbers in once.items() if size > 1),
        repeated=_sum(numbers for size, numbers in once.items() for _ in range(1, size)),
    )


def _places(
    every: Iterable[list[ProblemFinding]], name_of: Callable[[StoredFinding], str]
) -> Iterator[tuple[str, int, OpenProblems]]:
    """The groups of each problem."""
    for counted in every:
        names = {name_of(each.stored) for each in counted}
        numbers = _count_one(counted)
        yield from ((name, len(names), numbers) for name in names)


def _count_one(counted: list[ProblemFinding]) -> OpenProblems:
    problem = next(problems(counted))
    return OpenProblems(1, int(problem.denies), int(problem.status == "new"), int(problem.refuses_pods))


def _sum(several: Iterable[OpenProblems]) -> OpenProblems:
    total = NO_PROBLEMS
    for numbers in several:
        total = total.add(numbers)
    return total


# The numbers of a scan's open problems by policy, severity, action and outcome.

_OUTCOMES: Final = ((Violated, "violated"), (Errored, "errored"), (WouldChange, "wouldChange"))


def problem_groups(scan: StoredScan, triage: Triage, counts: ReportCounts | None = None) -> tuple[ProblemGroup, ...]:
    """The groups, in ascending order. Previewed, excepted, waived and unchecked findings belong to no problem."""
    if follows_baseline(scan):
        return count_groups(problems_since(scan), triage.ranks, triage.waives)
    return (counts or scan).problem_groups(triage.ranks, triage.waived.rows)


def count_groups(
    findings: Iterable[ProblemFinding], ranks: SeverityRanks, is_waived: Callable[[StoredFinding], bool]
) -> tuple[ProblemGroup, ...]:
    """The groups of the problems with some findings, of which those of a problem follow each other."""
    numbers: defaultdict[tuple[str, str, int, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for counted in select_open(findings, is_waived):
        problem = next(problems(counted))
        outcome = next(
            name for kind, name in _OUTCOMES for each in counted if isinstance(each.stored.finding.outcome, kind)
        )
        rank = ranks.of(*problem.severity_key)
        sums = numbers[*problem.policy_key, rank, problem.action, outcome]
        for place, number in enumerate((1, int(problem.denies), int(problem.status == "new"))):
            sums[place] += number
    return tuple(ProblemGroup(*key, *sums) for key, sums in sorted(numbers.items()))
