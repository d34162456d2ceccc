"""What a scan shows about a control: a truth table, and properties for any facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.policy import Policy, PolicyKey
from scanner.model.scans.tally import OutcomeName
from scanner.posture.control_checks import Control, ControlsOfChecks, Framework, PolicySelector, SelectorKind
from scanner.posture.controls import ControlResult, ControlState, PolicyFacts, ScanFacts, evaluate_controls
from tests.report.records import policy

MET, VIOLATED, ERRORED = ControlState.MET, ControlState.VIOLATED, ControlState.ERRORED
NOT_SHOWN, NOT_COVERED = ControlState.NOT_SHOWN, ControlState.NOT_COVERED
PASSED, FAILED = OutcomeName.PASSED, OutcomeName.VIOLATED
DENIED, ADMITTED = OutcomeName.ERRORED_DENY, OutcomeName.ERRORED_ADMIT
DRIFT, EXCEPTED = OutcomeName.WOULD_CHANGE, OutcomeName.EXCEPTED
SKIPPED, UNDECIDED = OutcomeName.SKIPPED, OutcomeName.NOT_AUDITABLE
CLEAN = PolicyFacts(bound=True, outcomes={PASSED: 3}, passed=3)


def named(*names: str) -> Control:
    """A control that names policies."""
    return Control("1", "One", tuple(PolicySelector(SelectorKind.NAME, name) for name in names))


def key(name: str) -> PolicyKey:
    """The key of a policy."""
    return "ValidatingAdmissionPolicy", name


def result(control: Control, facts: ScanFacts) -> ControlResult:
    """What a scan with the policies of some facts shows about a control."""
    [only] = evaluate_controls([control], [policy(name) for _, name in facts.policies], facts)
    return only


def clean(**changed: object) -> PolicyFacts:
    """A policy that three objects passed, with other facts beside."""
    outcomes = {PASSED: 3, **changed.pop("outcomes", {})}  # type: ignore[dict-item]
    return replace(CLEAN, outcomes=outcomes, **changed)  # type: ignore[arg-type]


TABLE: list[tuple[str, PolicyFacts, ControlState, ControlState, tuple[str, ...]]] = [
    ("passed", CLEAN, MET, MET, ()),
    ("skipped too", clean(outcomes={SKIPPED: 2}), MET, MET, ()),
    ("not bound", PolicyFacts(), NOT_COVERED, NOT_COVERED, ("policy a is not bound",)),
    ("nothing matched", PolicyFacts(bound=True), NOT_SHOWN, NOT_SHOWN, ("no object was evaluated",)),
    (
        "all skipped",
        PolicyFacts(bound=True, outcomes={SKIPPED: 2}),
        NOT_SHOWN,
        NOT_SHOWN,
        ("no object was evaluated with success",),
    ),
    ("violated", clean(outcomes={FAILED: 1}), VIOLATED, VIOLATED, ()),
    ("violated before errored", clean(outcomes={FAILED: 1, DENIED: 5}), VIOLATED, VIOLATED, ()),
    ("an error that denies", clean(outcomes={DENIED: 1}), ERRORED, ERRORED, ()),
    ("an error that admits", clean(outcomes={ADMITTED: 1}), ERRORED, ERRORED, ()),
    ("waived", clean(outcomes={FAILED: 1}, accepted={FAILED: 1}), VIOLATED, MET, ()),
    ("one of two waived", clean(outcomes={FAILED: 2}, accepted={FAILED: 1}), VIOLATED, VIOLATED, ()),
    (
        "a waived violation and an error",
        clean(outcomes={FAILED: 1, DENIED: 1}, accepted={FAILED: 1}),
        VIOLATED,
        ERRORED,
        (),
    ),
    ("a waived error", clean(outcomes={ADMITTED: 1}, accepted={ADMITTED: 1}), ERRORED, MET, ()),
    (
        "only a waived violation",
        PolicyFacts(bound=True, outcomes={FAILED: 1}, accepted={FAILED: 1}),
        VIOLATED,
        NOT_SHOWN,
        (),
    ),
    ("excepted", clean(outcomes={EXCEPTED: 1}), NOT_SHOWN, MET, ("1 check would not pass without an exception",)),
    ("drift", clean(outcomes={DRIFT: 2}), NOT_SHOWN, NOT_SHOWN, ("2 mutations would change an object",)),
    (
        "waived drift",
        clean(outcomes={DRIFT: 1}, accepted={DRIFT: 1}),
        NOT_SHOWN,
        MET,
        ("1 mutation would change an object",),
    ),
    ("not auditable", clean(outcomes={UNDECIDED: 1}), NOT_SHOWN, NOT_SHOWN, ("1 check cannot be audited",)),
    ("another user", clean(requester=3), NOT_SHOWN, NOT_SHOWN, ("3 checks may fail for another user",)),
    ("a kind is missing", clean(obstacles=("Pod was not listed",)), NOT_SHOWN, NOT_SHOWN, ("Pod was not listed",)),
    ("a violation and a missing kind", clean(outcomes={FAILED: 1}, obstacles=("Pod",)), VIOLATED, VIOLATED, ()),
    (
        "waived, and a kind is missing",
        clean(outcomes={FAILED: 1}, accepted={FAILED: 1}, obstacles=("Pod",)),
        VIOLATED,
        NOT_SHOWN,
        (),
    ),
]


@pytest.mark.parametrize(
    ("facts", "state", "with_waivers", "why"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_states_of_a_control_with_one_policy(
    facts: PolicyFacts, state: ControlState, with_waivers: ControlState, why: tuple[str, ...]
) -> None:
    """Each fact about a policy gives a state, the state with waivers, and the reasons."""
    shown = result(named("a"), ScanFacts({key("a"): facts}))
    assert (state, with_waivers, why) == (shown.state, shown.state_with_waivers, shown.why)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (CLEAN, MET),
        (PolicyFacts(bound=True), MET),
        (PolicyFacts(), NOT_SHOWN),
        (clean(outcomes={FAILED: 1}), VIOLATED),
        (clean(outcomes={DENIED: 1}), ERRORED),
        (clean(obstacles=("Pod",)), NOT_SHOWN),
    ],
)
def test_a_second_policy_can_only_take_away(facts: PolicyFacts, state: ControlState) -> None:
    """Both policies serve the control together, and one passed object is enough for both."""
    assert state is result(named("a", "b"), ScanFacts({key("a"): CLEAN, key("b"): facts})).state


def test_a_named_policy_that_does_not_exist_is_named() -> None:
    """The control is not shown, although its other policy is clean."""
    shown = result(named("a", "gone"), ScanFacts({key("a"): CLEAN}))
    assert (NOT_SHOWN, ("no policy has the name gone",)) == (shown.state, shown.why)
    assert ("name gone",) == tuple(map(str, shown.unmatched))


def test_a_control_whose_policies_do_not_exist_is_not_covered() -> None:
    """The missing policy is named there, too."""
    shown = result(named("gone"), ScanFacts({key("a"): CLEAN}))
    assert (NOT_COVERED, ("no policy has the name gone",)) == (shown.state, shown.why)


def test_a_control_is_not_called_uncovered_if_policies_may_be_missing() -> None:
    """A list of policies that failed may have had the policy."""
    unread = ScanFacts({}, unread=("policies may be missing",))
    assert (NOT_SHOWN, NOT_COVERED) == (result(named("gone"), unread).state, result(named(), unread).state)


def test_a_narrowed_scan_shows_no_control_as_met_but_violations() -> None:
    """The reason names the limit."""
    limit = "the scan was limited to namespaces shop"
    shown = result(named("a"), ScanFacts({key("a"): CLEAN}, (limit,)))
    violated = result(named("a"), ScanFacts({key("a"): clean(outcomes={FAILED: 1})}, (limit,)))
    assert (NOT_SHOWN, (limit,), VIOLATED) == (shown.state, shown.why, violated.state)


LABELLED = replace(
    policy("team-limits"),
    manifest={"metadata": {"labels": {"control": "5.2"}, "annotations": {"note": "x"}}},
)


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        (PolicySelector(SelectorKind.NAME, "team-limits"), True),
        (PolicySelector(SelectorKind.NAME, "team-*"), False),
        (PolicySelector(SelectorKind.GLOB, "team-*"), True),
        (PolicySelector(SelectorKind.GLOB, "TEAM-*"), False),
        (PolicySelector(SelectorKind.GLOB, "team-*", language="ValidatingPolicy"), False),
        (PolicySelector(SelectorKind.GLOB, "team-*", language="ValidatingAdmissionPolicy"), True),
        (PolicySelector(SelectorKind.LABEL, "control"), True),
        (PolicySelector(SelectorKind.LABEL, "control", "5.2"), True),
        (PolicySelector(SelectorKind.LABEL, "control", "5.3"), False),
        (PolicySelector(SelectorKind.LABEL, "note"), False),
        (PolicySelector(SelectorKind.ANNOTATION, "note", "x"), True),
        (PolicySelector(SelectorKind.ANNOTATION, "note", ""), False),
    ],
)
def test_selectors(selector: PolicySelector, *, selects: bool) -> None:
    """By exact name, by glob, by label and by annotation, of one language or of all."""
    assert selects is selector.selects(LABELLED)


def test_a_policy_serves_many_controls() -> None:
    """Its findings name all of them, by framework."""
    frameworks = [Framework(name, name, "", (named("a"), replace(named("a", "b"), id="2"))) for name in ("x", "y")]
    controls = ControlsOfChecks(frameworks, [policy("a"), policy("b"), policy("c")], {})
    assert ("x/1", "x/2", "y/1", "y/2") == controls.of_policy(key("a")) == controls.of_check(key("a"), "any")
    assert ("x/2", "y/2") == controls.of_policy(key("b"))
    assert () == controls.of_policy(key("c"))


counts = st.dictionaries(st.sampled_from(OutcomeName), st.integers(0, 2), max_size=3)


@st.composite
def any_facts(draw: st.DrawFn) -> PolicyFacts:
    """Any facts about a policy: no more checks passed, or are waived, than there are."""
    outcomes = draw(counts)
    passed = draw(st.integers(0, outcomes.get(PASSED, 0)))
    waivable = (FAILED, DENIED, ADMITTED, DRIFT)
    return PolicyFacts(
        bound=draw(st.booleans()) or draw(st.booleans()),
        outcomes=outcomes,
        passed=passed,
        requester=draw(st.sampled_from([0, 0, 0, 1])),
        accepted={name: draw(st.integers(0, number)) for name, number in outcomes.items() if name in waivable},
        obstacles=draw(st.sampled_from([(), (), (), ("Pod was not listed",)])),
    )


scans = st.builds(
    ScanFacts,
    policies=st.dictionaries(st.sampled_from("abc").map(key), any_facts(), max_size=3),
    obstacles=st.sampled_from([(), (), ("limited",)]),
    unread=st.sampled_from([(), ("unread",)]),
)
controls = st.lists(st.sampled_from("abcd"), max_size=4, unique=True).map(lambda names: named(*names))


@given(controls, scans)
def test_a_control_is_met_only_if_a_naive_evaluation_finds_nothing_against_it(
    control: Control, facts: ScanFacts
) -> None:
    """Every policy exists, is bound and saw everything; something passed; every other outcome is a skip."""
    own = [facts.policies.get(key(selector.text)) for selector in control.policies]
    met = bool(own) and not facts.obstacles and _nothing_against([each or PolicyFacts() for each in own])
    assert met is (result(control, facts).state is MET)


def _nothing_against(policies: list[PolicyFacts]) -> bool:
    outcomes = [name for facts in policies for name, number in facts.outcomes.items() for _ in range(number)]
    return (
        all(facts.bound and not facts.obstacles and not facts.requester for facts in policies)
        and set(outcomes) <= {PASSED, SKIPPED}
        and sum(facts.passed for facts in policies) > 0
    )


@given(controls, scans)
def test_waivers_change_no_state_but_the_one_with_waivers(control: Control, facts: ScanFacts) -> None:
    """Without any waiver the state is the same, and nothing that was met before is lost with one."""
    bare = replace(facts, policies={name: replace(each, accepted={}) for name, each in facts.policies.items()})
    shown, without = result(control, facts), result(control, bare)
    assert (without.state, without.why) == (shown.state, shown.why)
    assert shown.state is not MET or shown.state_with_waivers is MET


@given(controls, scans, st.randoms(use_true_random=False))
def test_the_order_of_policies_and_selectors_does_not_matter(
    control: Control, facts: ScanFacts, random: Random
) -> None:
    """Shuffled policies, facts and selectors give the same state and the same policies."""
    policies: list[Policy] = [policy(name) for _, name in facts.policies]
    shuffled = dict(random.sample(sorted(facts.policies.items()), len(facts.policies)))
    selectors = tuple(random.sample(control.policies, len(control.policies)))
    random.shuffle(policies)
    [other] = evaluate_controls([replace(control, policies=selectors)], policies, replace(facts, policies=shuffled))
    shown = result(control, facts)
    assert (shown.state, shown.state_with_waivers, shown.policies, sorted(shown.why)) == (
        other.state,
        other.state_with_waivers,
        other.policies,
        sorted(other.why),
    )


def test_the_order_of_controls_does_not_matter() -> None:
    """Each control has the same result beside any others."""
    facts = ScanFacts({key("a"): CLEAN, key("b"): clean(outcomes={FAILED: 1})})
    wanted: Mapping[str, ControlState] = {"1": MET, "2": VIOLATED, "3": NOT_COVERED}
    several = [replace(named(name), id=number) for number, name in (("1", "a"), ("2", "b"), ("3", "gone"))]
    for order in permutations(several):
        results = evaluate_controls(order, [policy("a"), policy("b")], facts)
        assert wanted == {each.control.id: each.state for each in results}
