"""What a list shows of a problem, given the facts of its findings: which of these count, its chip, and its place in the list.

The numbers of a report leave out waived, excepted and previewed findings, and those that the scan did not check
(`posture.worst_problems`): a problem that has others is what these are, and comes before the problems that have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from scanner.model.policy import PolicyKey
from scanner.model.scan import ALONE
from scanner.posture.problem_rows import strictest
from scanner.report.chips import chip_of

FindingOrder: TypeAlias = tuple[int, bool, int, int]
"""The place of a problem in a report: smaller ones come first."""
_ACTIONS: Final = ("Deny", "Warn", "Audit", "")
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
    def badness(self) -> tuple[bool, bool, bool, bool]:
        """The place of a finding among those of its problem: smaller ones come first."""
        return self.status == "resolved", not self.checked, self.excepted or self.waived, not self.denies


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
        return _PHASES.get(self.status, set_aside), not self.refused, severity, _ACTIONS.index(self.action)


class CommonProblem(NamedTuple):
    """What many problems of a list have in common. `severity` is a rank, 0 for the worst."""

    policy: PolicyKey
    severity: int
    facts: ProblemFacts

    @property
    def order(self) -> tuple[FindingOrder, str, str]:
        """The place of such problems in the list: those of one place are ordered by their objects."""
        language, policy = self.policy
        return self.facts.order(self.severity), policy, language

    @property
    def is_preview(self) -> bool:
        """Whether such problems are those of an assumed binding."""
        return self.facts.status in ALONE

    @property
    def counted(self) -> bool:
        """Whether the verdict counts such problems."""
        return self.facts.status in COUNTED and not self.facts.waived and not self.facts.excepted


def problem_facts(findings: Sequence[FindingFacts]) -> ProblemFacts:
    """The facts of the problem that some findings have, the worst of which come first."""
    return _of_one(findings[0]) if len(findings) == 1 else _of_several(findings)


@lru_cache(maxsize=_MOST)
def _of_one(finding: FindingFacts) -> ProblemFacts:
    """The facts of a problem with one finding, as most have: thousands have the same."""
    return _of_several((finding,))


def _of_several(findings: Sequence[FindingFacts]) -> ProblemFacts:
    first = findings[0]
    still_open = [each for each in findings if each.status != "resolved"]
    counted = [each for each in still_open if not each.excepted and not each.waived]
    deciding = counted or still_open
    action = strictest({action for each in deciding for action in each.actions})
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
    if first.status in (*ALONE, "resolved"):
        return first.status
    return first.episode if first.checked else "unchecked"
