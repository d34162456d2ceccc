"""What a route is notified about, and that nothing is in a notice that did not change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import VALIDATING, PolicyKey
from scanner.model.population import Workload
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.method import Method
from scanner.model.scans.scan import ClusterIdentity, Scan, ScanState, Scope
from scanner.posture.history.scan_diff import (
    DifferingProblem,
    ProblemChange,
    ProblemState,
    RuleDifference,
    RuleKind,
    ScanDiff,
)
from scanner.posture.notices import MOST_PROBLEMS, Notice, make_notices
from scanner.posture.routes import Route
from scanner.posture.severity import Severity
from tests.store.made import CHECK

NEW, REOPENED, CHANGED, RESOLVED, _ = ProblemChange
NOW = datetime(2026, 3, 1, tzinfo=UTC)
POLICY = RuleDifference(RuleKind.POLICY, VALIDATING, "hosts", None, {"spec": {}})
GAP = Gap(GapKind.LIST, "v1/Secret", "forbidden")


def scan(number: int, state: ScanState = ScanState.COMPLETE) -> Scan:
    """A scan of prod."""
    return Scan(f"scan-{number}", ClusterIdentity("prod", "6d1c", "v1.36.0"), NOW, NOW, state, Scope(), "0.1.0")


def problem(
    name: str, change: ProblemChange = NEW, owner: str = "", policy: str = "hosts", *, excepted: bool = False
) -> DifferingProblem:
    """A problem that differs."""
    state = ProblemState(1, ("violated",), "Deny", denies=True, excepted=excepted, message="no host network")
    before, now = (None if change in {NEW, REOPENED} else state), (None if change is RESOLVED else state)
    return DifferingProblem(
        id=f"p-{name}",
        change=change,
        cause=Cause(CauseKind.POLICY),
        language=VALIDATING,
        policy=policy,
        check=CHECK,
        workload=Workload("apps/v1", "Deployment", "shop", name),
        first_seen=NOW,
        resolved_at=NOW if change is RESOLVED else None,
        resolution="fixed" if change is RESOLVED else "",
        parts=(),
        before=before,
        now=now,
        owner=owner,
    )


def difference(
    problems: Iterable[DifferingProblem] = (), rules: tuple[RuleDifference, ...] = (), *, complete: bool = True
) -> ScanDiff:
    """The difference of two scans."""
    known = tuple(problems)

    def listed(kind: CauseKind, _: int | None) -> Iterator[DifferingProblem]:
        return (each for each in known if each.cause.kind is kind)

    return ScanDiff(
        before=scan(1),
        now=scan(2, ScanState.COMPLETE if complete else ScanState.INCOMPLETE),
        methods=(Method(), Method()),
        incomparable=(),
        rules_changed=(),
        rules=rules,
        problems=Counter((each.cause.kind, each.change) for each in known),
        findings={},
        unchecked=0 if complete else 3,
        list_problems=listed,
    )


def severity(policy: PolicyKey, _: str) -> Severity:
    """The severity of a policy is its name, or medium."""
    return Severity(policy[1]) if policy[1] in set(Severity) else Severity.MEDIUM


def route(name: str = "all", **more: Any) -> Route:
    """A route about everything."""
    return Route(name, "https://hooks.example.com", key_file="key", **more)


def noticed(
    diff: ScanDiff, to: Route, *, waived: Iterable[str] = (), before: tuple[Gap, ...] = (), gaps: tuple[Gap, ...] = ()
) -> Notice:
    """The notice of a route."""
    return make_notices(diff, [to], severity, set(waived), before, gaps)[to.name]


def names(notice: Notice) -> dict[str, list[str]]:
    """The names of the listed problems by owner."""
    return {owner: [each.problem.workload.name for each in own.problems] for owner, own in notice.owners.items()}


def test_problems_are_grouped_by_owner() -> None:
    """Those without an owner are together."""
    diff = difference([problem("a", owner="pay"), problem("b"), problem("c", owner="pay")])

    assert {"pay": ["a", "c"], "": ["b"]} == names(noticed(diff, route()))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, {"pay": ["high"], "ship": ["critical"], "": ["low"]}),
        ({"owners": ("pay",)}, {"pay": ["high"]}),
        ({"owners": ("p*", "s*")}, {"pay": ["high"], "ship": ["critical"]}),
        ({"owners": ("unowned",)}, {"": ["low"]}),
        ({"min_severity": Severity.HIGH}, {"pay": ["high"], "ship": ["critical"]}),
        ({"owners": ("pay",), "min_severity": Severity.CRITICAL}, {}),
    ],
)
def test_a_route_takes_owners_and_severities(facts: dict[str, Any], expected: dict[str, list[str]]) -> None:
    """Owners are globs, and an object without an owner is unowned."""
    made = [("high", "pay"), ("critical", "ship"), ("low", "")]
    diff = difference(problem(name, owner=owner, policy=name) for name, owner in made)
    notice = noticed(diff, route(**facts))

    assert expected == names(notice)
    assert bool(expected) is notice.has_changes


@pytest.mark.parametrize(
    ("clusters", "about"), [((), True), (("prod",), True), (("p*",), True), (("dev", "stage-*"), False)]
)
def test_a_route_is_about_clusters(clusters: tuple[str, ...], about: bool) -> None:  # noqa: FBT001
    """Globs of their names."""
    assert about is route(clusters=clusters).is_about("prod")


@pytest.mark.parametrize(
    "silent",
    [
        problem("a", CHANGED),
        problem("a", NEW, excepted=True),
        problem("a", RESOLVED, excepted=True),
        problem("waived"),
    ],
)
def test_what_gates_leave_out_is_no_news(silent: DifferingProblem) -> None:
    """And neither is another message of the same problem."""
    assert not noticed(difference([silent]), route(), waived=["p-waived"]).has_changes


def test_changed_rules_and_lost_coverage_are_news_for_routes_of_all_teams() -> None:
    """A route of a team has them with changes of its problems."""
    diff = difference(rules=(POLICY,))

    assert noticed(diff, route()).has_changes
    assert not noticed(diff, route(owners=("pay",))).has_changes
    assert noticed(difference(), route(), gaps=(GAP,)).has_changes
    assert not noticed(difference(), route(owners=("pay",)), gaps=(GAP,)).has_changes


def test_a_gap_that_stays_is_no_news() -> None:
    """Also with other words; it is still among what was not checked."""
    notice = noticed(
        difference(complete=False), route(), before=(Gap(GapKind.LIST, "v1/Secret", "time out"),), gaps=(GAP,)
    )

    assert not notice.has_changes
    assert ((), (GAP,)) == (notice.lost, notice.gaps)


def test_many_problems_are_counted_and_not_all_listed() -> None:
    """A body has a limit."""
    notice = noticed(difference(problem(f"n{number}") for number in range(MOST_PROBLEMS + 7)), route())

    assert {(NEW, ""): MOST_PROBLEMS + 7} == notice.totals
    assert (MOST_PROBLEMS, 7) == (len(names(notice)[""]), notice.left_out)


changes = st.builds(
    problem,
    st.text("abc", min_size=1, max_size=4),
    st.sampled_from(list(ProblemChange)),
    st.sampled_from(["", "pay", "ship"]),
    st.sampled_from(["critical", "high", "hosts", "info"]),
    excepted=st.booleans(),
)
routes = st.builds(
    route,
    st.just("all"),
    owners=st.sampled_from([(), ("pay",), ("*",), ("unowned", "s*")]),
    min_severity=st.sampled_from(list(Severity)),
)


@given(st.lists(changes, max_size=8), routes, st.sets(st.sampled_from(["p-a", "p-b", "p-c"])))
def test_nothing_is_in_a_notice_that_did_not_change(made: list[DifferingProblem], to: Route, waived: set[str]) -> None:
    """Every listed problem is one of the difference, and every one that a route takes is counted once."""
    notice = noticed(difference(made), to, waived=waived)
    listed = [each.problem for own in notice.owners.values() for each in own.problems]
    expected = [
        each
        for each in made
        if each.change in (NEW, REOPENED, RESOLVED)
        and each.id not in waived
        and not any(state.excepted for state in (each.before, each.now) if state)
        and to.takes(each.owner, severity(*each.severity_key))
    ]

    assert Counter(map(id, expected)) == Counter(map(id, listed))
    assert len(expected) == notice.totals.total()
    assert bool(expected) is notice.has_changes
