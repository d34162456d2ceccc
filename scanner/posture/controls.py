"""Controls of a framework, the policies that serve each of them, and what a scan shows about a control.

A control is met only if all of its policies were evaluated on every object that they can match, and nothing is open. Everything
else that is neither violated nor errored is *not shown*: silence is never success.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import assert_never

from scanner.model.json import dig, text_map
from scanner.model.policy import Policy, PolicyKey
from scanner.model.scans.scan import OutcomeName


class SelectorKind(StrEnum):
    """The parts of a policy by which a mapping selects."""

    NAME = "name"
    GLOB = "glob"
    LABEL = "label"
    ANNOTATION = "annotation"


@dataclass(frozen=True, slots=True, order=True)
class PolicySelector:
    """Selects policies by name, by a glob of names, or by a label or annotation.

    `text` is the name, the glob or the key. `value` is that of the label or annotation; None stands for any value. An empty
    `language` stands for every language.
    """

    by: SelectorKind
    text: str
    value: str | None = None
    language: str = ""

    def selects(self, policy: Policy) -> bool:
        """Return whether a policy is selected."""
        if self.language not in ("", policy.language):
            return False
        match self.by:
            case SelectorKind.NAME:
                return policy.name == self.text
            case SelectorKind.GLOB:
                return fnmatchcase(policy.name, self.text)
            case SelectorKind.LABEL:
                return self._has(policy, "labels")
            case SelectorKind.ANNOTATION:
                return self._has(policy, "annotations")
            case _ as never:
                assert_never(never)

    def _has(self, policy: Policy, field_name: str) -> bool:
        pairs = text_map(dig(policy.manifest, "metadata", field_name))
        return self.text in pairs and self.value in (None, pairs[self.text])

    def __str__(self) -> str:
        """The selector in words: `name host-access`, `label example.com/control=5.2.2`."""
        value = "" if self.value is None else f"={self.value}"
        language = f" ({self.language})" if self.language else ""
        return f"{self.by} {self.text}{value}{language}"


@dataclass(frozen=True, slots=True)
class Control:
    """A requirement of a framework, and the policies that show together whether it is met. Without a selector, none does."""

    id: str
    title: str
    policies: tuple[PolicySelector, ...] = ()


@dataclass(frozen=True, slots=True)
class Framework:
    """A set of controls, such as a benchmark. `name` has no slash, so that `name/id` names a control among all frameworks."""

    name: str
    title: str
    version: str
    controls: tuple[Control, ...]


class ControlState(StrEnum):
    """The state of a control in a scan."""

    MET = "met"
    VIOLATED = "violated"
    ERRORED = "errored"
    NOT_SHOWN = "notShown"
    NOT_COVERED = "notCovered"


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """The facts of a scan about one policy, without the bindings that `--assume-bound` added.

    `outcomes` counts its checks. `passed` are the validations and mutations among them that passed for every user, and
    `requester` the passed and skipped checks that may fail for another user. `accepted` counts the checks whose findings are
    waived, by outcome. `obstacles` are reasons why not every object was evaluated, as clauses.
    """

    bound: bool = False
    outcomes: Mapping[OutcomeName, int] = field(default_factory=dict)
    passed: int = 0
    requester: int = 0
    accepted: Mapping[OutcomeName, int] = field(default_factory=dict)
    obstacles: tuple[str, ...] = ()

    def count_open(self, *outcomes: OutcomeName, accepting: bool) -> int:
        """The number of checks with one of some outcomes, if `accepting` without those whose findings are waived."""
        every = sum(self.outcomes.get(outcome, 0) for outcome in outcomes)
        return every - (sum(self.accepted.get(outcome, 0) for outcome in outcomes) if accepting else 0)


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """The facts of a scan about all of its policies.

    `obstacles` are reasons why it shows no control as met, and `unread` reasons why policies or bindings may be missing from it.
    """

    policies: Mapping[PolicyKey, PolicyFacts]
    obstacles: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlResult:
    """The state of a control in a scan.

    `state_with_waivers` is the state if waivers and exceptions are accepted. `policies` are those that the control selects, in
    order of language and name, and `unbound` those among them that no binding puts into force. `unmatched` are its selectors that
    select no policy. `why` are the reasons why it is not shown or not covered, as clauses; empty in every other state.
    """

    control: Control
    state: ControlState
    state_with_waivers: ControlState
    policies: tuple[PolicyKey, ...]
    unbound: tuple[PolicyKey, ...]
    unmatched: tuple[PolicySelector, ...]
    why: tuple[str, ...]

    @property
    def policies_in_force(self) -> tuple[PolicyKey, ...]:
        """The policies of the control that are in force."""
        return tuple(policy for policy in self.policies if policy not in self.unbound)


_VIOLATED = (OutcomeName.VIOLATED,)
_ERRORED = (OutcomeName.ERRORED_DENY, OutcomeName.ERRORED_ADMIT)


def evaluate_controls(
    controls: Iterable[Control], policies: Collection[Policy], facts: ScanFacts
) -> Iterator[ControlResult]:
    """The result of each control in a scan, in the order of the controls. The order of policies does not matter."""
    for control in controls:
        yield _result(control, policies, facts)


def controls_by_policy(
    frameworks: Iterable[Framework], policies: Collection[Policy]
) -> dict[PolicyKey, tuple[str, ...]]:
    """The controls that each policy serves, as `framework/id`, in the order of the mappings."""
    served: dict[PolicyKey, list[str]] = {}
    for framework in frameworks:
        for control in framework.controls:
            for policy in select_policies(control, policies):
                served.setdefault(policy, []).append(f"{framework.name}/{control.id}")
    return {policy: tuple(ids) for policy, ids in served.items()}


def select_policies(control: Control, policies: Iterable[Policy]) -> tuple[PolicyKey, ...]:
    """The policies that a control selects, each once, in order of language and name."""
    return tuple(
        sorted({policy.key for policy in policies if any(selector.selects(policy) for selector in control.policies)})
    )


def _result(control: Control, policies: Collection[Policy], facts: ScanFacts) -> ControlResult:
    keys = select_policies(control, policies)
    unbound = tuple(key for key in keys if not facts.policies.get(key, PolicyFacts()).bound)
    bound = [facts.policies[key] for key in keys if key not in unbound]
    unmatched = tuple(
        selector
        for selector in dict.fromkeys(control.policies)
        if not any(selector.selects(policy) for policy in policies)
    )
    missing = tuple(_list_missing(unmatched, unbound))
    if bound:
        state, why = _state(bound, (*missing, *facts.obstacles), accepting=False)
        state_with_waivers, _ = _state(bound, (*missing, *facts.obstacles), accepting=True)
    else:
        unread = facts.unread if control.policies else ()
        state = state_with_waivers = ControlState.NOT_SHOWN if unread else ControlState.NOT_COVERED
        why = (*missing, *unread)
    return ControlResult(control, state, state_with_waivers, keys, unbound, unmatched, why)


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


def _list_missing(unmatched: Iterable[PolicySelector], unbound: Iterable[PolicyKey]) -> Iterator[str]:
    for selector in unmatched:
        yield f"no policy has the {selector}"
    for _, name in unbound:
        yield f"policy {name} is not bound"


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
