"""What admission answers to a violation of a control in a namespace: a table, and what every state of a control follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from scanner.model.outcome import Check, CheckKind
from scanner.model.policy import Action, MatchResources, Policy, Rule
from scanner.model.population import RecordedObject, Workload
from scanner.model.scans.scan import Coverage, CoverageState, PolicyRecord, ScanState
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.model.selector import EVERYTHING
from scanner.posture.control_checks import Control, PolicySelector, SelectorKind, find_checks
from scanner.posture.control_facts import needs_of
from scanner.posture.control_namespaces import ControlInNamespace, ControlNamespaces, NamespaceState
from tests.report.in_memory import ScanInMemory
from tests.report.records import binding, policy, scan

TEXT = "object.spec.a"
PASSED, FAILED, SKIPPED = OutcomeName.PASSED, OutcomeName.VIOLATED, OutcomeName.SKIPPED
ENFORCED, PODS_REFUSED, WARNED = NamespaceState.ENFORCED, NamespaceState.PODS_REFUSED, NamespaceState.WARNED
ACCEPTED, NO_POLICY, NO_OBJECT = NamespaceState.ACCEPTED, NamespaceState.NO_POLICY, NamespaceState.NO_OBJECT
Outcomes = dict[tuple[str, OutcomeName], int]


def pods(name: str) -> Policy:
    """A policy on Pods with one check."""
    match = MatchResources((Rule(("CREATE",), ("",), ("v1",), ("pods",)),), (), EVERYTHING, EVERYTHING)
    return replace(policy(name, TEXT), match=match)


def forms(each: Policy) -> Iterator[MatchResources]:
    """The match constraints of a policy."""
    if each.match:
        yield each.match


def tally(by: str, outcome: OutcomeName) -> TallyKey:
    """The key of the outcomes of the only check of a policy in `shop`; bindings have the name of their policy and action."""
    name = by.partition("-")[0]
    return TallyKey(name, by, "", "", Check(CheckKind.VALIDATION, 0, TEXT), "v1", "Pod", "shop", outcome)


def answer(outcomes: Outcomes, waived: Outcomes | None = None, *, optional: bool = False) -> ControlInNamespace:
    """The answer in `shop`, where a Pod is, about a control of the policies `a` and `b`."""
    actions: dict[str, tuple[Action, ...]] = {
        "Deny": ("Deny", "Audit"),
        "RefusePods": ("RefusePods",),
        "Warn": ("Warn",),
        "Audit": ("Audit",),
    }
    record = _Populated(
        scan=scan(ScanState.COMPLETE),
        previous=None,
        policies=tuple(
            PolicyRecord(
                pods(name), tuple(binding(f"{name}-{by}", name, *given) for by, given in actions.items()), matched=1
            )
            for name in "ab"
        ),
        coverage=(Coverage("v1", "Pod", CoverageState.LISTED, 1),),
        health=(),
        gaps=(),
        tallies={tally(by, outcome): number for (by, outcome), number in outcomes.items()},
        found=lambda: (()),
        ended=lambda: (()),
    )
    accepted = {tally(by, outcome): number for (by, outcome), number in (waived or {}).items()}
    names = [PolicySelector(SelectorKind.NAME, name, optional=optional) for name in "ab"]
    checks = find_checks(Control("1", "One", tuple(names)), [used.policy for used in record.policies], {})
    shown = ControlNamespaces(record, needs_of(record, forms), accepted).find_states(checks)
    by_name = {each.namespace: each for each in shown}
    assert NO_OBJECT is by_name["empty"].state
    return by_name["shop"]


class _Populated(ScanInMemory):
    """A scan with a Pod in `shop`, and an empty namespace."""

    def namespaces(self) -> Iterator[str]:
        """Both namespaces."""
        return iter(("shop", "empty"))

    def population(self) -> Iterator[RecordedObject]:
        """The Pod."""
        yield RecordedObject(1, "v1", "Pod", "shop", "web", "", Workload("v1", "Pod", "shop", "web"))


@pytest.mark.parametrize(
    ("outcomes", "waived", "wanted"),
    [
        ({}, {}, (NO_POLICY, 0, 0, 0)),
        ({("a-Deny", SKIPPED): 1}, {}, (NO_OBJECT, 0, 0, 0)),
        ({("a-Deny", PASSED): 2}, {}, (ENFORCED, 2, 0, 0)),
        ({("a-Deny", FAILED): 2}, {}, (ENFORCED, 2, 2, 0)),
        ({("a-RefusePods", FAILED): 1}, {}, (PODS_REFUSED, 1, 1, 0)),
        ({("a-RefusePods", PASSED): 1, ("a-Deny", PASSED): 1}, {}, (ENFORCED, 2, 0, 0)),
        ({("a-Warn", PASSED): 1}, {}, (WARNED, 1, 0, 0)),
        ({("a-Audit", FAILED): 1}, {}, (WARNED, 1, 1, 0)),
        ({("a-Warn", PASSED): 1, ("a-Deny", PASSED): 1}, {}, (ENFORCED, 2, 0, 0)),
        ({("a-Deny", OutcomeName.ERRORED_DENY): 1}, {}, (ENFORCED, 1, 1, 0)),
        ({("a-Deny", OutcomeName.ERRORED_ADMIT): 1}, {}, (WARNED, 1, 1, 0)),
        ({("a-Deny", OutcomeName.EXCEPTED): 1, ("a-Deny", PASSED): 1}, {}, (ACCEPTED, 2, 0, 1)),
        ({("a-Deny", FAILED): 2}, {("a-Deny", FAILED): 1}, (ACCEPTED, 2, 1, 1)),
        ({("a-Deny", PASSED): 1, ("b-Warn", PASSED): 1}, {}, (WARNED, 2, 0, 0)),
    ],
)
def test_answers(outcomes: Outcomes, waived: Outcomes, wanted: tuple[NamespaceState, int, int, int]) -> None:
    """The strongest action of a check, the weakest of the checks that the control needs; exempt objects before all of them."""
    shown = answer(outcomes, waived)
    assert wanted == (shown.state, shown.checks, shown.open, shown.accepted)


def test_one_of_the_checks_of_optional_selectors_is_enough() -> None:
    """The strongest answer counts."""
    assert ENFORCED is answer({("a-Deny", PASSED): 1, ("b-Warn", PASSED): 1}, optional=True).state
