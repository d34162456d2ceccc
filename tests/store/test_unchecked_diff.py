"""A difference marks what one of the scans did not check: an incomplete scan resolves nothing that it did not see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.scan import CoverageState, ScanState, Scope
from scanner.posture.history.scan_diff import FindingChange, ProblemChange, ProblemState, ScanDiff
from scanner.store import SqlStore
from tests.store.made import Round, finding, listed
from tests.store.test_previews import PREVIEW, previewed
from tests.store.test_scan_diff import changes, diff, only, problems

NEW, REOPENED, CHANGED, RESOLVED, NOT_CHECKED = ProblemChange
FORBIDDEN = Gap(GapKind.LIST, "v1/Pod", "forbidden")
WEB, POD, OTHER = finding("web"), finding("pod", kind="Pod"), finding("other", kind="Pod")


def partial(*findings: object, **more: object) -> Round:
    """An incomplete scan that could list no Pod."""
    coverage = (listed("Deployment"), listed("Pod", CoverageState.FORBIDDEN))
    made = Round(tuple(findings), coverage=coverage, gaps=(FORBIDDEN,), state=ScanState.INCOMPLETE)  # type: ignore[arg-type]
    return replace(made, **more)  # type: ignore[arg-type]


def numbers(difference: ScanDiff) -> dict[tuple[str, str], int]:
    """The numbers of problems by cause and change."""
    return {(kind.value, change.value): number for (kind, change), number in difference.problems.items()}


def test_an_open_problem_that_the_later_scan_did_not_check_is_marked(store: SqlStore) -> None:
    """It is neither resolved nor silent: its row, its numbers and its state say so."""
    Round((WEB, POD)).record(store, 1)
    partial(WEB).record(store, 2)
    found = diff(store, 1, 2)
    problem = only(found)

    assert ("pod", NOT_CHECKED, CauseKind.COVERAGE, "") == (
        problem.workload.name,
        problem.change,
        problem.cause.kind,
        problem.resolution,
    )
    assert ((1, 0), (0, 1)) == (_checked(problem.before), _checked(problem.now))
    assert {("coverage", "notChecked"): 1} == numbers(found)
    assert {(CauseKind.COVERAGE, FindingChange.NOT_CHECKED): 1} == found.findings
    assert (1, ((), (FORBIDDEN,))) == (found.unchecked, found.gaps)


def _checked(state: ProblemState | None) -> tuple[int, int] | None:
    return None if state is None else (state.findings, state.unchecked)


def test_two_incomplete_scans_mark_what_neither_checked(store: SqlStore) -> None:
    """The problem stays in each difference until a scan checks it."""
    Round((WEB, POD)).record(store, 1)
    for number in (2, 3):
        partial(WEB).record(store, number)
    problem = only(diff(store, 2, 3))

    assert NOT_CHECKED is problem.change
    assert ((0, 1), (0, 1)) == (_checked(problem.before), _checked(problem.now))


def test_a_problem_between_the_scans_that_the_later_one_did_not_check_is_marked(store: SqlStore) -> None:
    """It appeared in a scan between both, and may be open or not."""
    Round((WEB,)).record(store, 1)
    Round((WEB, POD)).record(store, 2)
    partial(WEB).record(store, 3)
    problem = only(diff(store, 1, 3))

    assert ("pod", NOT_CHECKED, None) == (problem.workload.name, problem.change, problem.before)


def test_a_new_problem_that_the_earlier_scan_did_not_check_is_marked(store: SqlStore) -> None:
    """It may have existed then: the cause is coverage."""
    partial(WEB).record(store, 1)
    Round((WEB, POD)).record(store, 2)
    found = diff(store, 1, 2)
    problem = only(found)

    assert (NEW, CauseKind.COVERAGE, True) == (problem.change, problem.cause.kind, problem.unchecked_before)
    assert ((FORBIDDEN,), ()) == found.gaps


def test_a_new_problem_of_a_new_object_is_not_marked(store: SqlStore) -> None:
    """The earlier scan listed its kind, and the object was not there."""
    partial(WEB).record(store, 1)
    partial(WEB, finding("cart")).record(store, 2)
    problem = only(diff(store, 1, 2))

    assert ("cart", NEW, False) == (problem.workload.name, problem.change, problem.unchecked_before)


def test_a_problem_that_the_next_scan_checks_again_does_not_differ(store: SqlStore) -> None:
    """The incomplete scan left it open: compared with that scan, nothing is new and nothing is resolved."""
    Round((WEB, POD)).record(store, 1)
    partial(WEB).record(store, 2)
    Round((WEB, POD)).record(store, 3)

    assert {} == changes(diff(store, 2, 3))


def test_a_problem_that_was_gone_meanwhile_is_resolved_when_it_is_checked(store: SqlStore) -> None:
    """The earlier scan of both did not check it, and left it open."""
    Round((WEB, POD)).record(store, 1)
    partial(WEB).record(store, 2)
    Round((WEB,)).record(store, 3)
    problem = only(diff(store, 2, 3))

    assert ("pod", RESOLVED, (0, 1)) == (problem.workload.name, problem.change, _checked(problem.before))


def test_what_changed_is_listed_beside_what_was_not_checked(store: SqlStore) -> None:
    """The later scan checked Deployments alone: those are new and resolved as ever."""
    Round((WEB, POD, OTHER)).record(store, 1)
    partial(finding("cart")).record(store, 2)

    assert {
        "web": ("resolved", "objectDeleted"),
        "cart": ("new", "objectCreated"),
        "pod": ("notChecked", "coverage"),
        "other": ("notChecked", "coverage"),
    } == changes(diff(store, 1, 2))


@pytest.mark.parametrize(
    "scope",
    [
        Scope(namespaces=("shop",)),
        Scope(exclude_namespaces=("bank",)),
        Scope(policies=("replicas",)),
        Scope(selector="app=web"),
    ],
    ids=["namespaces", "excluded namespaces", "policies", "labels"],
)
def test_what_is_outside_the_scope_of_the_later_scan_is_counted_and_not_listed(store: SqlStore, scope: Scope) -> None:
    """The user left it out on purpose."""
    outside = finding("bank", namespace="bank", policy="labels")
    Round((WEB, outside)).record(store, 1)
    for number in (2, 3):
        Round((WEB,), scope=scope).record(store, number)
    found = diff(store, 2, 3)

    assert ([], 1) == (problems(found), found.unchecked)


def test_a_kind_that_the_user_skips_is_outside_the_scope(store: SqlStore) -> None:
    """A kind that the scanner may not list is inside."""
    Round((WEB, POD)).record(store, 1)
    skipped = (listed("Deployment"), listed("Pod", CoverageState.SKIPPED))
    for number in (2, 3):
        Round((WEB,), scope=Scope(skip_kinds=("pods",)), coverage=skipped).record(store, number)

    assert ([], 1) == (problems(diff(store, 2, 3)), diff(store, 2, 3).unchecked)


def test_a_gap_within_a_limited_scope_is_marked(store: SqlStore) -> None:
    """Of one namespace, the pods could not be listed."""
    Round((WEB, POD, finding("far", kind="Pod", namespace="bank"))).record(store, 1)
    for number in (2, 3):
        partial(WEB, scope=Scope(namespaces=("shop",))).record(store, number)

    assert {"pod": ("notChecked", "coverage")} == changes(diff(store, 2, 3))


def test_the_numbers_agree_with_the_lists(store: SqlStore) -> None:
    """Every problem that is counted is listed once, and every unchecked finding is counted."""
    pods = tuple(finding(f"pod-{number}", kind="Pod") for number in range(30))
    Round((WEB, *pods)).record(store, 1)
    partial(WEB).record(store, 2)
    found = diff(store, 1, 2)

    assert 30 == found.unchecked == found.findings[CauseKind.COVERAGE, FindingChange.NOT_CHECKED]
    assert 30 == found.problems[CauseKind.COVERAGE, NOT_CHECKED] == len(problems(found))
    assert 7 == len(list(found.list_problems(CauseKind.COVERAGE, 7)))


def test_previews_are_never_not_checked(store: SqlStore) -> None:
    """A preview is no open finding of any later scan."""
    previewed(WEB, PREVIEW).record(store, 1)
    partial(WEB).record(store, 2)

    assert {} == changes(diff(store, 1, 2))
