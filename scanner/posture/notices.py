"""The content of a notification: the changes between two scans that concern its teams, severities and clusters.

A problem counts here as in gates: one that is excepted or waived is no news. Changes of rules and lost coverage belong to no team: a
notification of any route has them, and they alone are a reason to notify only routes for all teams.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from scanner.model.outcome import Gap
from scanner.posture.history.scan_diff import DifferingProblem, ProblemChange, ScanDiff
from scanner.posture.owners import UNOWNED
from scanner.posture.routes import Route
from scanner.posture.score import SeverityOf
from scanner.posture.severity import Severity

MOST_PROBLEMS: Final = 200
"""The problems that one notification lists; its totals count all."""
_REPORTED: Final = (ProblemChange.NEW, ProblemChange.REOPENED, ProblemChange.RESOLVED)

Totals: TypeAlias = Counter[tuple[ProblemChange, str]]
"""The numbers of problems by change and, for resolved ones, by resolution, which is empty if it is not known."""


@dataclass(frozen=True, slots=True)
class NotedProblem:
    """A problem in a notification."""

    problem: DifferingProblem
    severity: Severity


@dataclass(slots=True)
class OwnerNotice:
    """The changes for an owner. `problems` are the first ones, `totals` count all."""

    totals: Totals = field(default_factory=Counter)
    problems: list[NotedProblem] = field(default_factory=list)


@dataclass(slots=True)
class Notice:
    """The changes between two scans for a route. `left_out` problems are counted and not listed.

    `lost` are the gaps of the later scan that the earlier one did not have.
    """

    route: Route
    diff: ScanDiff
    lost: tuple[Gap, ...]
    gaps: tuple[Gap, ...]
    owners: defaultdict[str, OwnerNotice] = field(default_factory=lambda: defaultdict(OwnerNotice))
    listed: int = 0
    left_out: int = 0

    @property
    def totals(self) -> Totals:
        """The numbers of all owners."""
        return sum((each.totals for each in self.owners.values()), Counter())

    @property
    def has_changes(self) -> bool:
        """Return whether there is something to notify about."""
        return bool(self.owners) or (not self.route.owners and bool(self.lost or self.diff.rules))

    def add(self, problem: DifferingProblem, severity: Severity) -> None:
        """Count a problem, and list it as long as there is room."""
        owner = self.owners[problem.owner or UNOWNED]
        owner.totals[problem.change, problem.resolution] += 1
        if self.listed < MOST_PROBLEMS:
            self.listed += 1
            owner.problems.append(NotedProblem(problem, severity))
        else:
            self.left_out += 1


def make_notices(
    diff: ScanDiff,
    routes: Iterable[Route],
    severity: SeverityOf,
    waived: Collection[str],
    gaps_before: Collection[Gap],
    gaps: Collection[Gap],
) -> Mapping[str, Notice]:
    """The notice of each route by its name. `waived` are the ids of the problems of the later scan that are waived."""
    known = {(gap.kind, gap.where) for gap in gaps_before}
    lost = tuple(sorted(gap for gap in gaps if (gap.kind, gap.where) not in known))
    of_routes = {route.name: Notice(route, diff, lost, tuple(sorted(gaps))) for route in routes}
    for problem in _problems(diff):
        if not _counts(problem, waived):
            continue
        problem_severity = severity(*problem.severity_key)
        for notice in of_routes.values():
            if notice.route.takes(problem.owner, problem_severity):
                notice.add(problem, problem_severity)
    return of_routes


def _problems(diff: ScanDiff) -> Iterable[DifferingProblem]:
    return (problem for cause in diff.causes for problem in diff.list_problems(cause, None))


def _counts(problem: DifferingProblem, waived: Collection[str]) -> bool:
    if problem.change not in _REPORTED:
        return False
    state = problem.before if problem.change is ProblemChange.RESOLVED else problem.now
    return not (state is not None and state.excepted) and problem.id not in waived
