"""The problems and findings that a filter chooses: for the list, for its downloads and for the API."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.report.lists.filters import ListFilter
from scanner.store.catalog.clusters import StoredCluster
from scanner.web.views.library import ScanLibrary
from scanner.web.views.problem_list import ListedProblem, ListedProblems
from scanner.web.views.scan_view import ScanView

_PORTION: Final = 500
"""The findings whose texts are in memory at a time."""


class ChosenProblems(NamedTuple):
    """The problems that a filter chooses, and the number of their findings that it chooses."""

    problems: ListedProblems
    findings: int


def choose_problems(library: ScanLibrary, cluster: StoredCluster, view: ScanView, wanted: ListFilter) -> ChosenProblems:
    """The problems that a filter chooses, in its order, and the number of their findings.

    A status besides resolved leaves resolved findings out.
    """
    words = library.words(cluster, wanted.text) if wanted.text else ()
    problems = view.problems.choose(wanted, words)
    return ChosenProblems(problems, problems.count_findings(resolved=wanted.has_resolved))


@dataclass(frozen=True)
class FindingChoice:
    """Chooses findings of problems: a status besides resolved leaves resolved findings out; `ids` are of problems and findings."""

    view: ScanView
    wanted: ListFilter
    ids: Collection[str] = ()
    _problems: frozenset[int] = field(init=False)
    _findings: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        """Decode the ids."""
        numbers = {each: int(each.removeprefix("p-"), 16) for each in self.ids}
        of_problems = frozenset(number for each, number in numbers.items() if each.startswith("p-"))
        object.__setattr__(self, "_problems", of_problems)
        object.__setattr__(self, "_findings", frozenset(numbers[each] for each in numbers if not each.startswith("p-")))

    def problems(self, problems: ListedProblems) -> ListedProblems:
        """The problems with a chosen finding."""
        return problems.select(lambda each: bool(self.rows(each))) if self.ids else problems

    def number(self, chosen: ChosenProblems) -> int:
        """The number of chosen findings of problems."""
        return sum(len(self.rows(each)) for each in chosen.problems) if self.ids else chosen.findings

    def rows(self, problem: ListedProblem) -> Sequence[int]:
        """The rows of the chosen findings of a problem, the worst first."""
        rows = problem.rows if self.wanted.has_resolved else problem.rows[: problem.open]
        if not self.ids or problem.number in self._problems:
            return rows
        numbers = self.view.problems.ids(problem)
        return [row for row, number in zip(rows, numbers, strict=False) if number in self._findings]


def findings_of(view: ScanView, rows: Sequence[int]) -> list[ProblemFinding]:
    """The findings of some rows with their texts, in the order of the rows."""
    by_row = dict(view.record.findings_of_rows(rows))
    return [by_row[row] for row in rows if row in by_row]


def stream(view: ScanView, rows: Sequence[int]) -> Iterator[StoredFinding]:
    """The findings of any number of rows, of which some are in memory at a time."""
    for start in range(0, len(rows), _PORTION):
        yield from (each.stored for each in findings_of(view, rows[start : start + _PORTION]))
