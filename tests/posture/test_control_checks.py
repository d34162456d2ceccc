"""The checks that serve a control: selectors as tables, and no control is violated by a check that is not its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import PolicyKey
from scanner.model.scans.tally import OutcomeName
from scanner.posture.control_checks import (
    CheckSelector,
    CheckSelectorKind,
    Control,
    ControlsOfChecks,
    Framework,
    PolicySelector,
    SelectorKind,
    find_checks,
)
from scanner.posture.controls import CheckFacts, ControlResult, ControlState, PolicyFacts, ScanFacts, evaluate_controls
from tests.report.records import policy

MET, VIOLATED, ERRORED = ControlState.MET, ControlState.VIOLATED, ControlState.ERRORED
NOT_SHOWN, NOT_COVERED = ControlState.NOT_SHOWN, ControlState.NOT_COVERED
PASSED, FAILED, DENIED = OutcomeName.PASSED, OutcomeName.VIOLATED, OutcomeName.ERRORED_DENY
POD = ("v1", "Pod", "shop")
LEVELS = replace(policy("pod-security", "hostPathVolumes", "restrictedVolumes", "privileged"), language="PodSecurity")
HOUSE = policy("house", " object.spec.a ", "object.spec.b")
IDS = {(HOUSE.key, Check(CheckKind.VALIDATION, 0, " object.spec.a ")): "c-0123456789ab"}
NAMED_HOUSE = PolicySelector(SelectorKind.NAME, "house")
HOST_PATH = CheckSelector(
    CheckSelectorKind.POD_SECURITY,
    "hostPathVolumes",
    names=("hostPathVolumes",),
    replaced_by=("restrictedVolumes",),
    optional=True,
)


@pytest.mark.parametrize(
    ("selector", "own", "stricter"),
    [
        (CheckSelector(CheckSelectorKind.ID, "c-0123456789ab", NAMED_HOUSE), {"house": {"object.spec.a"}}, {}),
        (CheckSelector(CheckSelectorKind.ID, "c-ffffffffffff", NAMED_HOUSE), {}, {}),
        (CheckSelector(CheckSelectorKind.EXPRESSION, "\n object.spec.a\n"), {"house": {"object.spec.a"}}, {}),
        (CheckSelector(CheckSelectorKind.EXPRESSION, "object.spec"), {}, {}),
        (CheckSelector(CheckSelectorKind.EXPRESSION, "privileged", NAMED_HOUSE), {}, {}),
        (HOST_PATH, {"pod-security": {"hostPathVolumes"}}, {"pod-security": {"restrictedVolumes"}}),
        (
            replace(HOST_PATH, stricter=True),
            {},
            {"pod-security": {"hostPathVolumes", "restrictedVolumes"}},
        ),
    ],
)
def test_selectors_of_checks(selector: CheckSelector, own: dict[str, set[str]], stricter: dict[str, set[str]]) -> None:
    """By id, by trimmed expression and by the name of a Pod Security check."""
    found = find_checks(Control("1", "One", checks=(selector,)), [LEVELS, HOUSE], IDS)
    assert own == {name: {*(texts or ())} for (_, name), texts in found.own.items()}
    assert stricter == {name: {*texts} for (_, name), texts in found.stricter.items()}


def test_a_policy_that_is_selected_as_a_whole_has_all_its_checks() -> None:
    """Also beside a selector of one of them, and those of an invocation as a whole."""
    selector = CheckSelector(CheckSelectorKind.EXPRESSION, "object.spec.a")
    found = find_checks(Control("1", "One", (NAMED_HOUSE,), (selector,)), [HOUSE], {})
    assert (HOUSE.key,) == found.whole_policies
    assert all(found.has(HOUSE.key, text) for text in ("object.spec.a", "object.spec.b", ""))


def facts(policy_key: PolicyKey = LEVELS.key, **checks: CheckFacts) -> ScanFacts:
    """A scan of one policy in force with some checks; `whole` are the match conditions."""
    return ScanFacts(
        {policy_key: PolicyFacts(bound=True, checks={k.replace("whole", ""): v for k, v in checks.items()})}
    )


def passed(number: int = 2) -> CheckFacts:
    """A check that some Pods passed."""
    return CheckFacts({PASSED: number}, passed=number, evaluated={POD: number})


def failed(passes: int = 0, number: int = 1) -> CheckFacts:
    """A check that some Pods do not pass."""
    return CheckFacts(
        {PASSED: passes, FAILED: number}, passed=passes, evaluated={POD: passes + number}, unproved={POD: number}
    )


def shown(control: Control, scan: ScanFacts) -> ControlResult:
    """What the scan shows about a control."""
    [result] = evaluate_controls([control], [LEVELS, HOUSE], scan, IDS)
    return result


HOST_PATHS = Control("1", "No paths", checks=(HOST_PATH,))
MORE = "1 check fails restrictedVolumes, which demands more"


@pytest.mark.parametrize(
    ("scan", "state", "why"),
    [
        (facts(hostPathVolumes=passed(), privileged=failed()), MET, ()),
        (facts(hostPathVolumes=failed(), privileged=passed()), VIOLATED, ()),
        (facts(restrictedVolumes=passed(), privileged=failed()), MET, ()),
        (facts(restrictedVolumes=failed(1), privileged=passed()), NOT_SHOWN, (MORE,)),
        (facts(hostPathVolumes=passed(), restrictedVolumes=failed(1)), MET, ()),
        (facts(hostPathVolumes=passed(1), restrictedVolumes=failed(1)), NOT_SHOWN, (MORE,)),
        (facts(hostPathVolumes=failed(1), restrictedVolumes=failed(1)), VIOLATED, ()),
        (facts(privileged=failed()), NOT_COVERED, ()),
        (facts(hostPathVolumes=passed(), whole=CheckFacts({DENIED: 1})), ERRORED, ()),
        (ScanFacts({}), NOT_COVERED, ()),
    ],
)
def test_a_stricter_check_can_show_that_a_control_is_met_and_never_that_it_is_violated(
    scan: ScanFacts, state: ControlState, why: tuple[str, ...]
) -> None:
    """The level restricted replaces a check; other checks of the policy count nowhere."""
    result = shown(HOST_PATHS, scan)
    assert (state, why) == (result.state, result.why)


def test_a_check_that_no_binding_has_is_named_unless_it_is_optional() -> None:
    """`enforce=baseline` evaluates no check of restricted."""
    required = replace(HOST_PATHS, checks=(replace(HOST_PATH, optional=False),))
    result = shown(required, facts(privileged=passed()))
    assert (NOT_COVERED, ("no binding has the Pod Security check hostPathVolumes",)) == (result.state, result.why)


def test_a_control_that_admission_cannot_show_has_the_reason() -> None:
    """It is not covered."""
    result = shown(Control("1", "TLS", cannot_show="flags decide it"), ScanFacts({}))
    assert (NOT_COVERED, ("flags decide it",)) == (result.state, result.why)


CHECKS = ("object.spec.a", "object.spec.b", "privileged", "hostPathVolumes")
outcomes = st.dictionaries(st.sampled_from([PASSED, FAILED, DENIED, OutcomeName.SKIPPED]), st.integers(1, 2))
selections = st.sets(st.sampled_from(CHECKS), min_size=1)


@given(st.dictionaries(st.sampled_from(CHECKS), outcomes), selections)
def test_no_control_is_violated_by_a_check_that_is_not_its_own(
    checks: dict[str, dict[OutcomeName, int]], selected: set[str]
) -> None:
    """For any outcomes of any checks: violated if, and only if, a selected check is."""
    selectors = tuple(CheckSelector(CheckSelectorKind.EXPRESSION, text, optional=True) for text in sorted(selected))
    control = Control("1", "One", checks=selectors)
    by_policy = {
        each.key: PolicyFacts(
            bound=True,
            outcomes=Counter(),
            checks={
                text: CheckFacts(checks[text]) for text in CHECKS if text in checks and (text[0] == "o") is of_house
            },
        )
        for each, of_house in ((HOUSE, True), (LEVELS, False))
    }
    own = [checks[text] for text in selected if text in checks]
    assert any(FAILED in each for each in own) is (shown(control, ScanFacts(by_policy)).state is VIOLATED)


@given(selections, st.sampled_from(CHECKS))
def test_a_finding_names_the_controls_of_its_check(selected: set[str], failing: str) -> None:
    """And no control of another check of its policy."""
    selectors = tuple(CheckSelector(CheckSelectorKind.EXPRESSION, text) for text in sorted(selected))
    controls = ControlsOfChecks(
        [Framework("f", "F", "", (Control("1", "One", checks=selectors),))], [LEVELS, HOUSE], {}
    )
    key = HOUSE.key if failing.startswith("object") else LEVELS.key
    assert (("f/1",) if failing in selected else ()) == controls.of_check(key, failing)
