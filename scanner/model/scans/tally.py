"""The names under which outcomes are counted, and the keys of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from scanner.model.outcome import Check
from scanner.model.policy import VALIDATING, BindingKey, PolicyKey


class OutcomeName(StrEnum):
    """The names under which outcomes are counted. The two names for errors differ in the decision of admission.

    `notAuditable` are checks that only a server can decide, during a request.
    """

    __hash__ = str.__hash__  # that of an enum is slow, and every page has hundreds of counts

    PASSED = "passed"
    VIOLATED = "violated"
    ERRORED_DENY = "erroredWouldDeny"
    ERRORED_ADMIT = "erroredWouldAdmit"
    SKIPPED = "skipped"
    NOT_AUDITABLE = "notAuditable"
    WOULD_CHANGE = "wouldChange"
    EXCEPTED = "excepted"


class TallyKey(NamedTuple):
    """The key under which outcomes are counted: invocation, check, kind, namespace and outcome.

    A tuple, because every page has hundreds: a frozen dataclass of so many fields takes several times as long.

    `requester` marks outcomes that may differ for another user; `language` is the policy's.
    """

    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check: Check
    api_version: str
    kind: str
    namespace: str
    outcome: OutcomeName
    requester: bool = False
    language: str = VALIDATING

    @property
    def policy_key(self) -> PolicyKey:
        """Language and name of the policy."""
        return self.language, self.policy

    @property
    def severity_key(self) -> tuple[PolicyKey, str]:
        """The policy and the expression of the check, which have the severity."""
        return self.policy_key, self.check.expression

    @property
    def binding_key(self) -> BindingKey:
        """Language, policy and name of the binding."""
        return self.language, self.policy, self.binding


class TallyGroup(NamedTuple):
    """Tallies whose keys differ in the namespace alone: their key without it, and the number of each namespace."""

    key: TallyKey
    numbers: list[tuple[str, int]]


def group_tallies(tallies: Mapping[TallyKey, int]) -> Iterable[TallyGroup]:
    """The tallies of a scan in groups, so that sums decide once about each group. Several groups may have equal keys."""
    groups: dict[tuple[object, ...], TallyGroup] = {}
    for key, number in tallies.items():
        policy, binding, param_namespace, param_name, check, api_version, kind, namespace, *others = key
        # The id stands for the check, whose hash is slow: most keys share the object.
        alike = policy, binding, param_namespace, param_name, id(check), api_version, kind, *others
        if (group := groups.get(alike)) is None:
            group = groups[alike] = TallyGroup(key._replace(namespace=""), [])
        group.numbers.append((namespace, number))
    return groups.values()


class OwnedTally(NamedTuple):
    """The numbers of checks with one outcome by owner, empty for none. The key has no namespace: all of them are added up."""

    key: TallyKey
    numbers: Mapping[str, int]


def name_outcome(outcome: str, *, would_deny: bool, excepted_by: str) -> OutcomeName:
    """The name under which the outcome of a finding is counted: `outcome` is violated, wouldChange or errored."""
    if excepted_by:
        return OutcomeName.EXCEPTED
    if outcome == "errored":
        return OutcomeName.ERRORED_DENY if would_deny else OutcomeName.ERRORED_ADMIT
    return OutcomeName(outcome)
