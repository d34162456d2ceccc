"""The problems of the last days: how many were open, what came and went, how old they are, and where."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

import pytest

from scanner.model.policy import VALIDATING
from scanner.model.scans.problem_history import HistoryDay, ProblemCell, ProblemHistory
from scanner.model.scans.problem_numbers import SeverityRanks
from scanner.model.scans.scan import ScanState
from scanner.model.waiver import CandidateFilter
from scanner.store import SqlStore, prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.made import Round, ended, finding
from tests.store.test_fixes import fixing

FIRST = date(2026, 3, 2)
A, B, C = finding("a"), finding("b"), finding("c", namespace="bank", policy="labels")
RANKS = SeverityRanks({(VALIDATING, "labels"): 0, (VALIDATING, "replicas"): 2}, {}, 2)
INCOMPLETE = ScanState.INCOMPLETE


def history(store: SqlStore, number: int, waived: frozenset[int] = frozenset()) -> ProblemHistory:
    """The history up to a scan."""
    return store.read_scan(f"scan-{number}").problem_history(RANKS, waived)


def day(number: int) -> date:
    """The day of a scan."""
    return FIRST + timedelta(days=number - 1)


def test_each_day_has_its_open_problems_by_severity(store: SqlStore) -> None:
    """What the first scan found is not new; a problem that comes back is reopened."""
    for number, fixed in enumerate(((), (C,), ()), 1):
        fixing((A, C, *([B] if number == 3 else [])), fixed).record(store, number)

    assert (
        HistoryDay(day(1), (1, 0, 1, 0, 0)),
        HistoryDay(day(2), (0, 0, 1, 0, 0), fixed=1),
        HistoryDay(day(3), (1, 0, 2, 0, 0), new=1, reopened=1),
    ) == history(store, 3).days


def test_a_day_without_a_complete_scan_has_no_number(store: SqlStore) -> None:
    """It is not the number of the day before."""
    Round((A,)).record(store, 1)
    Round((A, B), state=INCOMPLETE).record(store, 2)
    Round((A,)).record(store, 3)

    assert [(0, 0, 1, 0, 0), None, (0, 0, 1, 0, 0)] == [each.open for each in history(store, 3).days]


def test_a_report_of_an_old_scan_ends_with_its_day(store: SqlStore) -> None:
    """Later scans are no part of it."""
    for number, findings in enumerate(((A,), (A, B)), 1):
        Round(findings).record(store, number)

    assert (HistoryDay(day(1), (0, 0, 1, 0, 0)),) == history(store, 1).days


def test_ages_and_places_are_those_of_open_problems(store: SqlStore) -> None:
    """A problem has the age of the scan that opened it."""
    Round((A, C)).record(store, 1)
    Round((A, B, C)).record(store, 2)
    made = history(store, 2)

    assert {(0, ended(1), 1), (2, ended(1), 1), (2, ended(2), 1)} == {tuple(each) for each in made.ages}
    assert {
        ProblemCell("bank", (VALIDATING, "labels"), 1),
        ProblemCell("shop", (VALIDATING, "replicas"), 2),
    } == set(made.cells)


def test_a_fix_has_the_time_for_which_the_problem_was_open(store: SqlStore) -> None:
    """From the scan that opened the problem to the one that saw it fixed."""
    for number, fixed in enumerate(((), (), (C,)), 1):
        fixing((A, C), fixed).record(store, number)

    assert [((VALIDATING, "labels"), timedelta(days=2), 1)] == [tuple(each) for each in history(store, 3).fixed]


def test_a_pruned_day_says_so(store: SqlStore, url: str) -> None:
    """Its rows are gone, so its problems cannot be counted."""
    for number, findings in enumerate(((A,), (A, B), (A, B)), 1):
        Round(findings).record(store, number)
    prune(url, RetentionRule(days=1), ended(3))
    first, *_, last = history(store, 3).days

    assert (None, True) == (first.open, first.pruned)
    assert ((0, 0, 2, 0, 0), False) == (last.open, last.pruned)


@pytest.mark.parametrize("seed", range(4))
def test_the_number_of_every_day_is_that_of_its_scan(store: SqlStore, seed: int) -> None:
    """After all changes of findings, the sum over severities is the number of open problems that the scan's own report has."""
    random = Random(seed)
    every = [*(finding(name) for name in "abcdef"), *(finding(name, policy="labels") for name in "abc")]
    excepted = [each._replace(excepted_by="an exception") for each in every[:2]]
    for number in range(1, 9):
        chosen = random.sample(every, random.randint(0, len(every)))
        kept = [each for each in chosen if random.random() < 0.8 or each not in every[:2]]
        swapped = [excepted[every.index(each)] if each in every[:2] and number % 3 == 0 else each for each in kept]
        Round(tuple(swapped)).record(store, number)
    counted = {each.day: sum(each.open) for each in history(store, 8).days if each.open is not None}

    assert {
        day(number): store.read_scan(f"scan-{number}").problem_totals(RANKS, frozenset(), 0)[0].open
        for number in range(1, 9)
    } == counted


def test_waived_problems_are_in_the_history_alone(store: SqlStore) -> None:
    """A waiver of today says nothing about the days before; ages and places have open problems without waivers."""
    Round((A,)).record(store, 1)
    Round((A, B)).record(store, 2)
    nothing = frozenset[str]()
    every = CandidateFilter(frozenset({"replicas"}), nothing, nothing, nothing, frozenset(), any=True)
    rows = frozenset(each.row for each in store.read_scan("scan-2").candidates(every) if each.name == "b")
    made = history(store, 2, rows)

    assert 1 == len(rows)
    assert (0, 0, 2, 0, 0) == made.days[-1].open
    assert [1] == [cell.problems for cell in made.cells]
