"""Joins the findings of a scan to problems, in the order of the list, as columns of numbers.

A scan has many findings and few combinations of what they have in common: facts of findings and problems are decided once for each
combination.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from scanner.model.policy import PolicyKey
from scanner.model.scans.finding_index import CombinationNumbers, CommonFacts, FindingIndex
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES
from scanner.report.html.change_counts import ChangeCounts
from scanner.report.lists.problem_facts import (
    CommonProblem,
    FindingFacts,
    order_by_workload,
    problem_facts,
    workload_order,
)

_ValueT = TypeVar("_ValueT")
_SEVERAL: Final = 2
Ranks = Callable[[PolicyKey, str], int]
"""The rank of the severity of a check of a policy, given its expression; 0 for the worst."""


class ProblemColumns:
    """The problems of a list, and their findings in the order of the problems, those of a problem the worst first.

    Of each problem: `numbers`, `common` (a place in `common_problems`), `opened` in seconds since 1970, `sizes` (the number of its findings),
    `open` (how many of them, its first ones, are not resolved), `workloads` (`namespace/name`), and `firsts`, the place of its first
    finding, which is also the one that tells where the problem is.
    Of each finding: `rows`, `objects`, `ids`, `facts` and `places` as in `FindingIndex`, and `counted`, 1 for one that is open and checked.
    """

    def __init__(self, index: FindingIndex, ranks: Ranks, waived: Collection[int] = frozenset()) -> None:
        """Join the findings of an index; `waived` are the rows of waived findings."""
        states = _States(index, waived)
        joined = _JoinedProblems(index, states, ranks)
        order = joined.order()
        places = [place for problem in order for place in joined.members(problem)]
        self.changes: Final = states.changes()
        self.common_facts: Final = index.common_facts
        self.common_places: Final = index.common_places
        self.common_problems: Final = tuple(joined.common_problems)
        ordered, listed = partial(_take, order), partial(_take, places)
        self.numbers: Final = array("q", ordered(joined.numbers))
        self.common: Final = array("l", ordered(joined.common))
        self.opened: Final = array("q", ordered(joined.opened))
        self.sizes: Final = array("l", ordered(joined.sizes))
        self.open: Final = array("l", ordered(joined.open))
        self.firsts: Final = array("l", accumulate(self.sizes, initial=0))[: len(order)]
        self.rows: Final = array("q", listed(index.rows))
        self.objects: Final = array("q", listed(index.objects))
        self.ids: Final = array("q", listed(index.ids))
        self.facts: Final = array("l", listed(index.facts))
        self.places: Final = array("l", listed(index.places))
        counted = [state.facts.checked and state.is_open for state in states.known]
        self.counted: Final = array("b", _take(listed(states.of), counted))
        self.where: Final = array("l", _take(self.firsts, self.places))
        self.workloads: Final = [*ordered(joined.workloads)]


def _take(places: Sequence[int], values: Sequence[_ValueT]) -> Sequence[_ValueT]:
    """The values at some places."""
    if len(places) < _SEVERAL:
        return [values[place] for place in places]
    # Twice as fast, but no sequence for one place.
    taken: tuple[_ValueT, ...] = itemgetter(*places)(values)
    return taken


class _State(NamedTuple):
    """The facts of all findings that are checked alike and waived alike."""

    facts: FindingFacts
    common: CommonFacts

    @property
    def is_open(self) -> bool:
        return self.facts.status != "resolved"


class _States:
    """The states of the findings of an index: `of` has a place in `known` for each finding."""

    def __init__(self, index: FindingIndex, waived: Collection[int]) -> None:
        numbered, unchecked = CombinationNumbers(), index.unchecked
        seldom = unchecked.union(waived)
        usual = [numbered[facts, False, False] for facts in range(len(index.common_facts))]
        self.of: Final = [usual[facts] for facts in index.facts]
        for place, row in enumerate(index.rows) if seldom else ():
            if row in seldom:
                self.of[place] = numbered[index.facts[place], row in unchecked, row in waived]
        self.known: Final = [
            _state(index.common_facts[facts], is_checked=not is_unchecked, is_waived=is_waived)
            for facts, is_unchecked, is_waived in numbered
        ]

    def changes(self) -> ChangeCounts:
        """The numbers of changed findings."""
        changes = ChangeCounts()
        for code, number in Counter(self.of).items():
            state = self.known[code]
            if state.facts.checked:
                changes.count(state.common.status, state.common.cause, state.common.resolution, number)
        return changes


def _state(common: CommonFacts, *, is_checked: bool, is_waived: bool) -> _State:
    is_resolved = common.status == "resolved"
    facts = FindingFacts(
        status=common.status,
        episode=common.episode,
        checked=is_checked or is_resolved,
        outcome=common.outcome,
        denies=common.denies,
        actions=common.actions,
        excepted=common.excepted,
        waived=is_waived and not is_resolved,
    )
    return _State(facts, common)


class _JoinedProblems:
    """The problems of an index as columns, in no order: each is some findings that follow each other in an order of all findings."""

    def __init__(self, index: FindingIndex, states: _States, ranks: Ranks) -> None:
        """Order the findings by problem. Most problems have one finding: their columns are made at once, the others one by one."""
        known = states.known
        is_preview = [state.common.status in SINGLE_SCAN_STATUSES for state in known]
        # A preview is no part of the problem that it would be.
        keys = [2 * number + is_preview[state] for number, state in zip(index.problems, states.of, strict=True)]
        self._findings: Final = sorted(range(len(keys)), key=keys.__getitem__)
        ordered = [keys[place] for place in self._findings]
        begins = [place for place, (one, other) in enumerate(pairwise([None, *ordered])) if one != other]
        self._begins: Final = [*begins, len(ordered)]
        self._numbered: Final[dict[CommonProblem, int]] = {}
        worst = _take(begins, self._findings)
        codes = _take(worst, states.of)
        of_one = [self._common(state.common, [state.facts], ranks) for state in known]
        self._index: Final = index
        self.numbers: Final = _take(worst, index.problems)
        self.sizes: Final = [end - first for first, end in pairwise(self._begins)]
        self.common: Final = [*_take(codes, of_one)]
        self.opened: Final = [*_take(codes, [state.common.opened for state in known])]
        self.open: Final = [*_take(codes, [int(state.is_open) for state in known])]
        for problem, size in enumerate(self.sizes):
            if size > 1:
                self._join(problem, index, states, ranks)
        self._worst: Final = _take(self._begins[:-1], self._findings)
        self.workloads: Final = _workloads(index, self._worst)

    @property
    def common_problems(self) -> Collection[CommonProblem]:
        """Return the facts that problems share."""
        return self._numbered

    def members(self, problem: int) -> Sequence[int]:
        """The places of the findings of a problem in the index, the worst first."""
        return self._findings[self._begins[problem] : self._begins[problem + 1]]

    def order(self) -> list[int]:
        """The problems in the order of the list."""
        orders = [common.facts.order(common.severity) for common in self._numbered]
        policies = rank_values([(*reversed(common.policy),) for common in self._numbered])
        kinds = _take(_take(self._worst, self._index.places), [place.kind for place in self._index.common_places])
        names = [workload_order(path, kind) for path, kind in zip(self.workloads, kinds, strict=True)]
        others = list(zip(_take(self.common, policies), self.numbers, strict=True))
        return order_by_workload(_take(self.common, orders), names, others)

    def _join(self, problem: int, index: FindingIndex, states: _States, ranks: Ranks) -> None:
        """Order the findings of a problem that has several, and find what it is."""
        known = states.known
        first, end = self._begins[problem : problem + 2]
        members = sorted(
            self._findings[first:end], key=lambda place: (known[states.of[place]].facts.badness, index.rows[place])
        )
        self._findings[first:end] = members
        members_states = [known[states.of[place]] for place in members]
        self.common[problem] = self._common(members_states[0].common, [state.facts for state in members_states], ranks)
        self.opened[problem] = min(state.common.opened for state in members_states)
        self.open[problem] = sum(state.is_open for state in members_states)

    def _common(self, shared: CommonFacts, facts: Sequence[FindingFacts], ranks: Ranks) -> int:
        rank = ranks(shared.policy, shared.expression)
        common = CommonProblem(shared.policy, rank, problem_facts(facts), shared.expression)
        return self._numbered.setdefault(common, len(self._numbered))


def _workloads(index: FindingIndex, findings: Sequence[int]) -> list[str]:
    """The workloads of some findings; equal ones are one text."""
    tops = [place.workload for place in index.common_places]
    folders = [f"{place.namespace}/" if place.namespace else "" for place in index.common_places]
    columns = zip(_take(findings, index.places), _take(findings, index.names), strict=True)
    texts: dict[str, str] = {}
    return [tops[place] or texts.setdefault(text := folders[place] + name, text) for place, name in columns]


def rank_values(values: Sequence[Any]) -> list[int]:
    """The place of each value among the different ones, ascending."""
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return [places[value] for value in values]
