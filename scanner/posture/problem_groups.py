"""The numbers of a scan's open problems by policy, action and outcome.

The database answers the same question for a stored scan (`store.problem_groups`); a test compares both.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from typing import Final

from scanner.model.outcome import Errored, Violated, WouldChange
from scanner.model.problem_group import ProblemGroup
from scanner.model.scan import ALONE, ProblemFinding, ScanRecord
from scanner.posture.problem_rows import problems
from scanner.posture.triage import Triage

_OUTCOMES: Final = ((Violated, "violated"), (Errored, "errored"), (WouldChange, "wouldChange"))


def problem_groups(record: ScanRecord, triage: Triage) -> tuple[ProblemGroup, ...]:
    """The groups, in ascending order. Previewed, excepted, waived and unchecked findings belong to no problem."""
    if record.problem_groups is not None:
        return record.problem_groups(triage.waived.rows)
    numbers: defaultdict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for _, group in groupby(record.by_problem(), key=lambda each: each.stored.problem or each.stored.id):
        counted = [each for each in group if counts(each, triage)]
        if not counted:
            continue
        problem = next(problems(counted))
        outcome = next(
            name for kind, name in _OUTCOMES for each in counted if isinstance(each.stored.finding.outcome, kind)
        )
        sums = numbers[problem.language, problem.policy, problem.action, outcome]
        for place, number in enumerate((1, int(problem.denies), int(problem.status == "new"))):
            sums[place] += number
    return tuple(ProblemGroup(*key, *sums) for key, sums in sorted(numbers.items()))


def counts(each: ProblemFinding, triage: Triage) -> bool:
    """Return whether a finding belongs to an open problem."""
    stored = each.stored
    if not each.checked or stored.status in (*ALONE, "resolved") or stored.finding.excepted_by:
        return False
    return triage.waiver(stored) is None
