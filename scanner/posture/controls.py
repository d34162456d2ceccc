"""The state of a control in a scan, given the facts about the checks that serve it.

A control is met only if all of its checks were evaluated on every object that their policies can match, nothing is open, and
admission would refuse a violation. Everything else that is neither violated nor errored is *not shown*: silence is never success.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeVar

from scanner.model.policy import Policy, PolicyKey
from scanner.model.scans.tally import OutcomeName
from scanner.posture.control_checks import (
    WHOLE_INVOCATION,
    CheckIds,
    CheckSelector,
    Control,
    PolicySelector,
    ServingChecks,
    find_checks,
)

Place: TypeAlias = tuple[str, str, str]
"""API version, kind and namespace of some objects."""


class ControlState(StrEnum):
    """The state of a control in a scan."""

    MET = "met"
    VIOLATED = "violated"
    ERRORED = "errored"
    NOT_SHOWN = "notShown"
    NOT_COVERED = "notCovered"


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """The facts of a scan about the checks with one expression; see `PolicyFacts`.

    `evaluated` has the number of objects that one binding evaluated, and `unproved` the number of checks that neither passed nor were
    skipped, by place.
    """

    outcomes: Mapping[OutcomeName, int] = field(default_factory=dict)
    passed: int = 0
    requester: int = 0
    accepted: Mapping[OutcomeName, int] = field(default_factory=dict)
    evaluated: Mapping[Place, int] = field(default_factory=dict)
    unproved: Mapping[Place, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """The facts of a scan about one policy, without the bindings that `--assume-bound` added.

    `outcomes` counts its checks. `passed` are the validations and mutations among them that passed for every user, and
    `requester` the passed and skipped checks that may fail for another user. `accepted` counts the checks whose findings are
    waived, by outcome. `obstacles` are reasons why not every object was evaluated, as clauses. `checks` has the same by the trimmed
    expression of the check.
    """

    bound: bool = False
    outcomes: Mapping[OutcomeName, int] = field(default_factory=dict)
    passed: int = 0
    requester: int = 0
    accepted: Mapping[OutcomeName, int] = field(default_factory=dict)
    obstacles: tuple[str, ...] = ()
    checks: Mapping[str, CheckFacts] = field(default_factory=dict)

    def count_open(self, *outcomes: OutcomeName, accepting: bool) -> int:
        """The number of checks with one of some outcomes, if `accepting` without those whose findings are waived."""
        every = sum(self.outcomes.get(outcome, 0) for outcome in outcomes)
        return every - (sum(self.accepted.get(outcome, 0) for outcome in outcomes) if accepting else 0)

    def lacks(self, expressions: Collection[str]) -> bool:
        """Return whether no binding has one of some checks, although bindings evaluated others on objects."""
        evaluated = self.checks.keys() - {WHOLE_INVOCATION}
        return bool(evaluated) and evaluated.isdisjoint(expressions)

    def narrow(self, own: frozenset[str], stricter: frozenset[str]) -> PolicyFacts:
        """The facts about some checks of the policy alone, and about `stricter` ones, of which only passes count.

        A stricter check that does not pass shows nothing, unless a check of the control itself evaluated the same objects.
        """
        names = own | {WHOLE_INVOCATION}
        several = [facts for name, facts in self.checks.items() if name in names]
        demanding = [facts for name, facts in self.checks.items() if name in stricter - own]
        unproved = {name: self._count_unproved(name, own) for name in sorted(stricter - own)}
        more = (
            f"{_checks(number)} {'fails' if number == 1 else 'fail'} {name}, which demands more"
            for name, number in unproved.items()
            if number
        )
        passes = {OutcomeName.PASSED: sum(facts.outcomes.get(OutcomeName.PASSED, 0) for facts in demanding)}
        return PolicyFacts(
            bound=self.bound and not self.lacks(own | stricter),
            outcomes=_add_up([*(facts.outcomes for facts in several), *([passes] if demanding else [])]),
            passed=sum(facts.passed for facts in (*several, *demanding)),
            requester=sum(facts.requester for facts in (*several, *demanding)),
            accepted=_add_up(facts.accepted for facts in several),
            obstacles=(*self.obstacles, *more),
        )

    def _count_unproved(self, name: str, own: frozenset[str]) -> int:
        """The stricter checks that show nothing: where a check of the control itself evaluated fewer objects."""
        facts = self.checks.get(name, CheckFacts())
        own_checks = [self.checks.get(each, CheckFacts()) for each in own]
        return sum(
            number
            for place, number in facts.unproved.items()
            if min((each.evaluated.get(place, 0) for each in own_checks), default=0)
            < max(1, facts.evaluated.get(place, 0))
        )


_NumberedT = TypeVar("_NumberedT")


def _add_up(several: Iterable[Mapping[_NumberedT, int]]) -> dict[_NumberedT, int]:
    sums: dict[_NumberedT, int] = {}
    for numbers in several:
        for name, number in numbers.items():
            sums[name] = sums.get(name, 0) + number
    return sums


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """The facts of a scan about all of its policies.

    `obstacles` are reasons why it shows no control as met, and `unread` reasons why policies or bindings may be missing from it.
    `unrefused` gives the reasons why admission would not refuse every violation of some checks.
    """

    policies: Mapping[PolicyKey, PolicyFacts]
    obstacles: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    unrefused: Callable[[ServingChecks], tuple[str, ...]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class ControlResult:
    """The state of a control in a scan.

    `state_with_waivers` is the state if waivers and exceptions are accepted. `policies` are those that have a check of the control, in
    order of language and name, and `unbound` those among them of which no binding puts such a check into force. `unmatched` are its
    selectors that select nothing. `why` are the reasons why it is not shown or not covered, as clauses; empty in every other state.
    """

    control: Control
    checks: ServingChecks
    state: ControlState
    state_with_waivers: ControlState
    policies: tuple[PolicyKey, ...]
    unbound: tuple[PolicyKey, ...]
    why: tuple[str, ...]

    @property
    def unmatched(self) -> tuple[PolicySelector | CheckSelector, ...]:
        """The selectors that select nothing, and need to."""
        return self.checks.unmatched

    @property
    def policies_in_force(self) -> tuple[PolicyKey, ...]:
        """The policies of the control that are in force."""
        return tuple(policy for policy in self.policies if policy not in self.unbound)


_VIOLATED = (OutcomeName.VIOLATED,)
_ERRORED = (OutcomeName.ERRORED_DENY, OutcomeName.ERRORED_ADMIT)


def evaluate_controls(
    controls: Iterable[Control], policies: Collection[Policy], facts: ScanFacts, ids: CheckIds | None = None
) -> Iterator[ControlResult]:
    """The result of each control in a scan, in the order of the controls. The order of policies does not matter."""
    for control in controls:
        yield _result(control, find_checks(control, policies, ids or {}), facts)


def _result(control: Control, checks: ServingChecks, facts: ScanFacts) -> ControlResult:
    keys = checks.policies
    own = {key: _narrow(facts.policies.get(key, PolicyFacts()), checks, key) for key in keys}
    unbound = tuple(key for key in keys if not own[key].bound)
    bound = [own[key] for key in keys if key not in unbound]
    missing = tuple(_list_missing(checks, unbound, facts))
    if bound:
        reasons = (*missing, *facts.obstacles, *facts.unrefused(checks))
        state, why = _state(bound, reasons, accepting=False)
        state_with_waivers, _ = _state(bound, reasons, accepting=True)
    else:
        unread = facts.unread if control.policies or control.checks else ()
        state = state_with_waivers = ControlState.NOT_SHOWN if unread else ControlState.NOT_COVERED
        why = (*([control.cannot_show] if control.cannot_show else []), *missing, *unread)
    return ControlResult(control, checks, state, state_with_waivers, keys, unbound, why)


def _narrow(facts: PolicyFacts, checks: ServingChecks, policy: PolicyKey) -> PolicyFacts:
    own = checks.own.get(policy, frozenset())
    return facts if own is None else facts.narrow(own, checks.stricter.get(policy, frozenset()))


def _state(
    policies: Collection[PolicyFacts], missing: tuple[str, ...], *, accepting: bool
) -> tuple[ControlState, tuple[str, ...]]:
    """The state of a control, given its policies in force, and the reasons why it is not shown."""
    if any(policy.count_open(*_VIOLATED, accepting=accepting) for policy in policies):
        return ControlState.VIOLATED, ()
    if any(policy.count_open(*_ERRORED, accepting=accepting) for policy in policies):
        return ControlState.ERRORED, ()
    why = tuple(dict.fromkeys([*missing, *_obstacles(policies, accepting=accepting)]))
    return (ControlState.NOT_SHOWN, why) if why else (ControlState.MET, ())


def _list_missing(checks: ServingChecks, unbound: Iterable[PolicyKey], facts: ScanFacts) -> Iterator[str]:
    for selector in checks.unmatched:
        yield f"no policy has the {selector}"
    in_force = {key for key, policy in facts.policies.items() if policy.bound}
    for key in unbound:
        if key in checks.required and key not in in_force:
            yield f"policy {key[1]} is not bound"
    for selector, found in checks.selected:
        lacking = [key for key, names in found.items() if key in in_force and facts.policies[key].lacks(names)]
        if lacking and not selector.optional:
            yield f"no binding has the {selector}"


def _obstacles(policies: Collection[PolicyFacts], *, accepting: bool) -> Iterator[str]:
    """The reasons why policies without an open violation or error do not show that a control is met."""
    yield from sorted({obstacle for policy in policies for obstacle in policy.obstacles})
    if drift := _sum(policies, OutcomeName.WOULD_CHANGE, accepting=accepting):
        yield f"{_checks(drift, 'mutation')} would change an object"
    if excepted := 0 if accepting else _sum(policies, OutcomeName.EXCEPTED, accepting=False):
        yield f"{_checks(excepted)} would not pass without an exception"
    if undecided := _sum(policies, OutcomeName.NOT_AUDITABLE, accepting=False):
        yield f"{_checks(undecided)} cannot be audited"
    if requester := sum(policy.requester for policy in policies):
        yield f"{_checks(requester)} may fail for another user"
    if not any(policy.passed for policy in policies):
        yield (
            "no object was evaluated with success"
            if any(policy.outcomes for policy in policies)
            else "no object was evaluated"
        )


def _sum(policies: Iterable[PolicyFacts], outcome: OutcomeName, *, accepting: bool) -> int:
    return sum(policy.count_open(outcome, accepting=accepting) for policy in policies)


def _checks(number: int, noun: str = "check") -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
