"""The numbers of a scan's open problems by policy, action and outcome."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from scanner.model.outcome import Errored, Violated, WouldChange
from scanner.model.problem_group import ProblemGroup
from scanner.model.scan import ProblemFinding, StoredFinding
from scanner.model.stored_scan import StoredScan
from scanner.posture.problem_rows import open_problems, problems
from scanner.posture.since_baseline import follows_baseline, problems_since
from scanner.posture.triage import Triage

_OUTCOMES: Final = ((Violated, "violated"), (Errored, "errored"), (WouldChange, "wouldChange"))


def problem_groups(scan: StoredScan, triage: Triage) -> tuple[ProblemGroup, ...]:
    """The groups, in ascending order. Previewed, excepted, waived and unchecked findings belong to no problem."""
    if follows_baseline(scan):
        return groups_among(problems_since(scan), triage.waives)
    return scan.problem_groups(triage.waived.rows)


def groups_among(
    findings: Iterable[ProblemFinding], is_waived: Callable[[StoredFinding], bool]
) -> tuple[ProblemGroup, ...]:
    """The groups of the problems with some findings, of which those of a problem follow each other."""
    numbers: defaultdict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for counted in open_problems(findings, is_waived):
        problem = next(problems(counted))
        outcome = next(
            name for kind, name in _OUTCOMES for each in counted if isinstance(each.stored.finding.outcome, kind)
        )
        sums = numbers[problem.language, problem.policy, problem.action, outcome]
        for place, number in enumerate((1, int(problem.denies), int(problem.status == "new"))):
            sums[place] += number
    return tuple(ProblemGroup(*key, *sums) for key, sums in sorted(numbers.items()))
