"""What a change of rules would change for an object: the decisions of both sides, policy by policy.

A difference of A against B mirrors that of B against A: each difference has a name for both directions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from scanner.model.outcome import Errored, Finding, Violated, WouldChange
from scanner.model.policy import Action, PolicyKey
from scanner.model.population import PopulationMember
from scanner.model.texts import clean


class SideEffect(StrEnum):
    """The effect of one policy on a request, the strictest first. `failed` is an error that failurePolicy Ignore admits."""

    DENIED = "denied"
    PODS_DENIED = "podsDenied"
    WARNED = "warned"
    AUDITED = "audited"
    FAILED = "failed"
    CHANGED = "changed"
    NONE = "none"


class Difference(StrEnum):
    """The difference that a change of rules makes for an object, the worst first.

    `alreadyDenied` and `stillDenied`: a policy begins or ceases to deny an object that another policy denies before and after.
    `undecided`: a check that was not evaluated could decide otherwise.
    """

    NEWLY_DENIED = "newlyDenied"
    PODS_NEWLY_DENIED = "podsNewlyDenied"
    UNDECIDED = "undecided"
    NEWLY_WARNED = "newlyWarned"
    NEWLY_AUDITED = "newlyAudited"
    NEWLY_FAILED = "newlyFailed"
    ALREADY_DENIED = "alreadyDenied"
    MUTATED_OTHERWISE = "mutatedOtherwise"
    OTHER_MESSAGE = "otherMessage"
    NEWLY_ADMITTED = "newlyAdmitted"
    PODS_NEWLY_ADMITTED = "podsNewlyAdmitted"
    NO_LONGER_WARNED = "noLongerWarned"
    NO_LONGER_AUDITED = "noLongerAudited"
    NO_LONGER_FAILED = "noLongerFailed"
    STILL_DENIED = "stillDenied"

    @property
    def mirrored(self) -> Difference:
        """The difference of the opposite change."""
        return _MIRRORED.get(self, self)


_BEGINS: Final[Mapping[SideEffect, Difference]] = {
    SideEffect.DENIED: Difference.NEWLY_DENIED,
    SideEffect.PODS_DENIED: Difference.PODS_NEWLY_DENIED,
    SideEffect.WARNED: Difference.NEWLY_WARNED,
    SideEffect.AUDITED: Difference.NEWLY_AUDITED,
    SideEffect.FAILED: Difference.NEWLY_FAILED,
    SideEffect.CHANGED: Difference.MUTATED_OTHERWISE,
}
_PAIRS: Final = (
    (Difference.NEWLY_DENIED, Difference.NEWLY_ADMITTED),
    (Difference.PODS_NEWLY_DENIED, Difference.PODS_NEWLY_ADMITTED),
    (Difference.NEWLY_WARNED, Difference.NO_LONGER_WARNED),
    (Difference.NEWLY_AUDITED, Difference.NO_LONGER_AUDITED),
    (Difference.NEWLY_FAILED, Difference.NO_LONGER_FAILED),
    (Difference.ALREADY_DENIED, Difference.STILL_DENIED),
)
_MIRRORED: Final = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_SEVERITY: Final = tuple(SideEffect)
_WORST: Final = tuple(Difference)


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """The difference that one policy makes for an object, with the findings of both sides, redacted."""

    policy: PolicyKey
    difference: Difference
    before: tuple[Finding, ...] = ()
    after: tuple[Finding, ...] = ()


class ContestedField(NamedTuple):
    """A field of an object, as a JSON pointer, that two mutating policies set in turn, each to its own value, as JSON and redacted.

    Every apply of the object changes the field again.
    """

    path: str
    one: PolicyKey
    value_of_one: str
    other: PolicyKey
    value_of_other: str


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """An object for which the change of rules changes something, and its policies, the worst difference first.

    `denied_by` are the policies that the change leaves alone and that deny the object, before and after. `contested` are the fields
    that policies newly set in turn.
    """

    object: PopulationMember
    policies: tuple[PolicyDifference, ...]
    denied_by: tuple[str, ...] = ()
    contested: tuple[ContestedField, ...] = ()

    @property
    def worst(self) -> Difference:
        """The worst difference."""
        return self.policies[0].difference


class Identity(NamedTuple):
    """An object, by its names and its UID."""

    namespace: str
    name: str
    uid: str


Found: TypeAlias = Mapping[Identity, Mapping[PolicyKey, list[Finding]]]
"""The findings of each object by policy."""
Possible: TypeAlias = Mapping[PolicyKey, Sequence[tuple[int, SideEffect]]]
"""The effects that checks without an outcome could have, by policy, each with the set of its objects: a bit for each of the page."""


@dataclass(frozen=True, slots=True)
class SideFindings:
    """The findings of one side about the objects of a page, and what the checks without an outcome could be."""

    found: Found
    possible: Possible

    def find_possible(self, key: PolicyKey, place: int) -> SideEffect:
        """The strictest effect that checks without an outcome could have on the object at a place of the page."""
        effects = (effect for bits, effect in self.possible.get(key, ()) if bits >> place & 1)
        return min(effects, key=_SEVERITY.index, default=SideEffect.NONE)


def group_findings(findings: Iterable[Finding]) -> Found:
    """The findings of each object by policy; those of exempted objects have no effect, and are left out."""
    grouped: defaultdict[Identity, defaultdict[PolicyKey, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for finding in findings:
        if not finding.excepted_by:
            key = Identity(*map(clean, (finding.namespace, finding.name, finding.uid)))  # as its record has them
            grouped[key][finding.policy_key].append(finding)
    return grouped


def compare(
    members: Iterable[PopulationMember], before: SideFindings, after: SideFindings, others: Found
) -> Iterator[ObjectDifference]:
    """The differences of the objects of a page that have some.

    `others` are the findings of the policies that the change leaves alone.
    """
    for place, member in enumerate(members):
        identity = Identity(member.namespace, member.name, member.uid)
        found = before.found.get(identity, {}), after.found.get(identity, {})
        keys = sorted({*found[0], *found[1], *before.possible, *after.possible})
        differences = [each for key in keys if (each := _compare_policy(key, place, before, after, identity))]
        if differences:
            denied_by = sorted(key[1] for key, each in others.get(identity, {}).items() if _denies(each))
            denied_before, denied_after = (bool(denied_by) or any(map(_denies, each.values())) for each in found)
            final = [_weigh(each) if denied_before and denied_after else each for each in differences]
            yield ObjectDifference(member, tuple(sorted(final, key=_rank)), tuple(denied_by))


def _compare_policy(
    key: PolicyKey, place: int, before: SideFindings, after: SideFindings, identity: Identity
) -> PolicyDifference | None:
    """The difference that a policy makes for an object, None without one."""
    was, becomes = (tuple(side.found.get(identity, {}).get(key, ())) for side in (before, after))
    possible = before.find_possible(key, place), after.find_possible(key, place)
    difference = _compare_sides(was, becomes, *possible)
    if difference is None:
        return None
    kept = (tuple(_keep_shown(finding, identity) for finding in side) for side in (was, becomes))
    return PolicyDifference(key, difference, *kept)


def _keep_shown(finding: Finding, identity: Identity) -> Finding:
    """The finding of an object without what no preview shows. Its names are those of the record of the object, in memory as well."""
    namespace, name, uid = identity
    return finding._replace(fingerprint="", namespace=namespace, name=name, uid=uid, resource_version="")


def _compare_sides(
    before: tuple[Finding, ...], after: tuple[Finding, ...], may_have_been: SideEffect, may_become: SideEffect
) -> Difference | None:
    """The difference between the findings of one policy, None without one.

    The last two are the strictest effects that checks without an outcome could have on each side.
    """
    was, becomes = find_effect(before), find_effect(after)
    worst = min(was, becomes, key=_SEVERITY.index)
    doubts = [each for each in (may_have_been, may_become) if _is_stricter(each, worst)]
    doubts += [
        each for each, side in ((may_have_been, was), (may_become, becomes)) if each is worst and side is not worst
    ]
    if doubts:
        return Difference.UNDECIDED
    if was is becomes:
        if {each.outcome.message for each in before} == {each.outcome.message for each in after}:
            return None
        return Difference.MUTATED_OTHERWISE if was is SideEffect.CHANGED else Difference.OTHER_MESSAGE
    return _BEGINS[becomes] if _is_stricter(becomes, was) else _BEGINS[was].mirrored


def _is_stricter(one: SideEffect, other: SideEffect) -> bool:
    return _SEVERITY.index(one) < _SEVERITY.index(other)


def find_effect(findings: Iterable[Finding]) -> SideEffect:
    """The strictest effect of the findings of one policy."""
    return min(map(_find_effect, findings), key=_SEVERITY.index, default=SideEffect.NONE)


def _find_effect(finding: Finding) -> SideEffect:
    match finding.outcome:
        case WouldChange():
            return SideEffect.CHANGED
        case Errored() | Violated() as outcome:
            if finding.denies:
                return SideEffect.DENIED
            if isinstance(outcome, Errored) and not outcome.would_deny:
                return SideEffect.FAILED
            return find_strictest(finding.actions)


def find_strictest(actions: Iterable[Action]) -> SideEffect:
    """The strictest effect of a violation under some actions."""
    return min((_BY_ACTION[action] for action in actions), key=_SEVERITY.index, default=SideEffect.NONE)


_BY_ACTION: Final[Mapping[Action, SideEffect]] = {
    "Deny": SideEffect.DENIED,
    "RefusePods": SideEffect.PODS_DENIED,
    "Warn": SideEffect.WARNED,
    "Audit": SideEffect.AUDITED,
}


def _denies(findings: Iterable[Finding]) -> bool:
    return any(finding.denies for finding in findings)


def _weigh(each: PolicyDifference) -> PolicyDifference:
    """The difference for an object that is denied before and after: it is neither newly denied nor newly admitted."""
    return replace(each, difference=_WEIGHED.get(each.difference, each.difference))


_WEIGHED: Final = {
    Difference.NEWLY_DENIED: Difference.ALREADY_DENIED,
    Difference.NEWLY_ADMITTED: Difference.STILL_DENIED,
}


def _rank(each: PolicyDifference) -> tuple[int, PolicyKey]:
    return _WORST.index(each.difference), each.policy
