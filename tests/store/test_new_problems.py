"""The problems that are new since a baseline: those that a gate counts, by their ids."""

from __future__ import annotations

import pytest

from scanner.store import SqlStore

from .made import Round, finding

A, B, C = finding("a"), finding("b"), finding("c")


@pytest.fixture
def filled(store: SqlStore) -> SqlStore:
    """Three scans, each with a problem more than the one before."""
    for number, findings in enumerate(((A,), (A, B), (A, B, C)), start=1):
        Round(findings).record(store, number)
    return store


def problems(store: SqlStore, number: int) -> dict[str, str]:
    """The problem of each object of a scan."""
    return {stored.finding.name: stored.problem for stored in store.read_scan(f"scan-{number}").findings()}


@pytest.mark.parametrize(("baseline", "new"), [("", {"c"}), ("scan-2", {"c"}), ("scan-1", {"b", "c"})])
def test_the_ids_are_those_of_the_problems_that_a_gate_counts(filled: SqlStore, baseline: str, new: set[str]) -> None:
    """As many, and without those of the baseline."""
    found = filled.find_new_problems("scan-3", baseline)

    assert {problems(filled, 3)[name] for name in new} == found.ids
    assert len(new) == filled.count_problems("scan-3", baseline).new


def test_without_an_earlier_scan_every_problem_is_new(filled: SqlStore) -> None:
    """The gate states that there is none."""
    found = filled.find_new_problems("scan-1")

    assert (frozenset(problems(filled, 1).values()), None, True) == (found.ids, found.baseline, found.as_recorded)


@pytest.mark.parametrize(("baseline", "agrees"), [("", True), ("scan-2", True), ("scan-1", False)])
def test_the_previous_scan_agrees_with_the_statuses(filled: SqlStore, baseline: str, agrees: bool) -> None:  # noqa: FBT001 - a parameter
    """Then reports need no other statuses, and are as fast as without a baseline."""
    assert agrees == filled.find_new_problems("scan-3", baseline).as_recorded


def test_ids_of_a_report_are_a_baseline(filled: SqlStore) -> None:
    """Problems of it that are not open are counted, and so are those that were waived then."""
    ids = problems(filled, 3)
    found = filled.find_new_problems("scan-3", ids={ids["a"], "p-000000000000"}, waived_ids={ids["b"]})

    assert (frozenset({ids["b"], ids["c"]}), 1) == (found.ids, found.gone)


def test_a_waived_problem_is_new_only_if_the_baseline_has_it_neither_open_nor_waived(filled: SqlStore) -> None:
    """Its waiver is no reason to call it new."""
    ids = problems(filled, 3)
    waived = {"scan-3": frozenset(range(1, 100))}

    assert {ids["c"]} == filled.find_new_problems("scan-3", ids={ids["a"]}, waived=waived, waived_ids={ids["b"]}).ids
