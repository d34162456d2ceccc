"""The kinds to list, their versions, and the policies that evaluate each of them.

A policy evaluates an object in the version that its rule names (`matchPolicy: Equivalent`), so a kind can be listed in several
versions; every policy evaluates an object in exactly one of them. Versions that differ in the apiVersion alone (`relabelled`) are
evaluated on the list of the version of the request: a policy reads the fields and the defaults of that version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from msgspec import Struct

from scanner.admission.auditability import AUDITABLE
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match, is_exempt
from scanner.model.policy import Binding, MatchResources, Operation, Policy, PolicyKey, Rule
from scanner.model.resource import Kind
from scanner.model.scans.scan import UncoveredKind
from scanner.mutate.versions import is_builtin

# Group-resources whose objects are served under another group as well.
_COHABITANTS = {("events.k8s.io", "events"): ("", "events")}


class KindPlan(Struct, frozen=True):
    """One list to make, and the policies that may evaluate its objects, each with the kind of the request."""

    kind: Kind
    policies: tuple[tuple[BoundPolicy, Kind], ...]


class _Viewpoint(NamedTuple):
    """The kind that a request names, the kind that a policy evaluates, and the bindings that the request reaches."""

    original: Kind
    evaluated: Kind
    bindings: tuple[Binding, ...]


def group_families(kinds: Iterable[Kind]) -> tuple[tuple[Kind, ...], ...]:
    """Served kinds in groups of the same objects, each group's preferred kind first.

    Mirrors the `EquivalentResourceRegistry` of apiserver: all versions of a kind, and kinds of two groups that share their
    storage.
    """
    grouped: dict[tuple[str, str], list[Kind]] = {}
    for kind in dict.fromkeys(kinds):
        key = (kind.group, kind.plural)
        grouped.setdefault(_COHABITANTS.get(key, key), []).append(kind)
    return tuple(tuple(sorted(family, key=lambda kind: kind.group != family[0].group)) for family in grouped.values())


def find_equivalents(kinds: Iterable[Kind]) -> dict[Kind, tuple[Kind, ...]]:
    """The other kinds of each kind's family, in registration order."""
    return {kind: tuple(k for k in family if k != kind) for family in group_families(kinds) for kind in family}


def plan(
    kinds: Iterable[Kind],
    bound: Iterable[BoundPolicy],
    operations: tuple[Operation, ...] = AUDITABLE,
    relabelled: Collection[Kind] = (),
) -> tuple[KindPlan, ...]:
    """The lists to make, ordered by kind, for policies that are in force.

    A policy has on each list the bindings that requests for this list reach.
    """
    policies = tuple(bound)
    lists: dict[Kind, list[tuple[BoundPolicy, Kind]]] = {}
    for family in group_families(kinds):
        for bound_policy in policies:
            views = _list_viewpoints(bound_policy.policy, bound_policy.bindings, family, operations)
            found = {(view.original, _find_list(view, relabelled)): view.bindings for view in views}
            for (original, listed), bindings in found.items():
                lists.setdefault(listed, []).append((_narrow(bound_policy, bindings), original))
    return tuple(KindPlan(kind, tuple(lists[kind])) for kind in sorted(lists))


def _narrow(bound_policy: BoundPolicy, bindings: tuple[Binding, ...]) -> BoundPolicy:
    """The policy with some of its bindings: it stays the same object with all of them."""
    return bound_policy if bindings == bound_policy.bindings else replace(bound_policy, bindings=bindings)


def plan_lists(
    kinds: Iterable[Kind],
    policies: Iterable[tuple[Policy, tuple[Binding, ...]]],
    operations: tuple[Operation, ...] = AUDITABLE,
    relabelled: Collection[Kind] = (),
) -> tuple[Kind, ...]:
    """The kinds of the lists that `plan` will make, before the policies are compiled; each policy with its bindings."""
    pairs = product(group_families(kinds), tuple(policies))
    views = (view for family, each in pairs for view in _list_viewpoints(*each, family, operations))
    return tuple(sorted({_find_list(view, relabelled) for view in views}))


def _find_list(view: _Viewpoint, relabelled: Collection[Kind]) -> Kind:
    """The kind of the list for a policy that evaluates the object of a request."""
    return view.original if view.evaluated in relabelled else view.evaluated


def find_other_versions(
    kinds: Iterable[Kind],
    policies: Iterable[tuple[Policy, tuple[Binding, ...]]],
    operations: tuple[Operation, ...] = AUDITABLE,
) -> dict[Kind, tuple[Policy, ...]]:
    """The kinds that are not built in and that policies may evaluate in another version than that of the request.

    Each policy comes with its bindings.
    """
    several = (family for family in group_families(kinds) if len(family) > 1)
    users: dict[Kind, dict[PolicyKey, Policy]] = {}
    for family, (policy, bindings) in product(several, tuple(policies)):
        for view in _list_viewpoints(policy, bindings, family, operations):
            if view.original != view.evaluated:
                users.setdefault(view.evaluated, {})[policy.key] = policy
    return {kind: tuple(of_kind.values()) for kind, of_kind in users.items() if not is_builtin(kind)}


def find_uncovered(
    kinds: Iterable[Kind],
    plans: Iterable[KindPlan],
    others: Iterable[BoundPolicy] = (),
    operations: tuple[Operation, ...] = AUDITABLE,
) -> tuple[UncoveredKind, ...]:
    """The served kinds that no bound policy can match in any version, sorted, each in its preferred version.

    `others` are bound policies that the plans lack, because they cannot be evaluated.
    """
    planned, unplanned = {plan.kind for plan in plans}, tuple(others)
    missing = (
        family[0]
        for family in group_families(kinds)
        if planned.isdisjoint(family)
        and not any(any(_list_viewpoints(each.policy, each.bindings, family, operations)) for each in unplanned)
    )
    return tuple(sorted(UncoveredKind(kind.api_version, kind.kind) for kind in missing))


def _list_viewpoints(
    policy: Policy, bindings: Iterable[Binding], family: tuple[Kind, ...], operations: tuple[Operation, ...]
) -> Iterator[_Viewpoint]:
    """The requests on objects of a family that reach a policy through its bindings, and the kinds that it evaluates for them.

    There is none if the policy never matches these objects. A request names the preferred kind, unless only requests in another
    version can reach a policy or a binding that is `Exact`. A binding that no request reaches has those of its policy.
    """
    match = policy.match
    if match is None or is_exempt(family[0], static=policy.static):
        return
    if not any(could_match(rule, kind, operations) for rule in match.rules for kind in family):
        return  # as for most kinds, so that the questions below cost little
    own = next((kind for kind in family if _may_reach((match,), kind, family, operations)), None)
    if own is None:
        return
    requests: dict[Kind, list[Binding]] = {}
    for binding in bindings:
        both = (match, binding.match) if binding.match else None
        reaching = (kind for kind in family if both and _may_reach(both, kind, family, operations))
        # A policy with an error in its configuration denies what it matches, also where its binding does not.
        requests.setdefault(next(reaching, own), []).append(binding)
    for original, reached in requests.items():
        candidates = family if match.match_policy == "Equivalent" else (original,)
        for kind in candidates:
            if _is_evaluated(match, kind, original, operations):
                yield _Viewpoint(original, kind, tuple(reached))


def _may_reach(
    matches: Iterable[MatchResources], requested: Kind, family: tuple[Kind, ...], operations: tuple[Operation, ...]
) -> bool:
    """Return whether one request in a kind may match a policy and its binding."""
    return any(
        all(
            _may_match(match, family if match.match_policy == "Equivalent" else (requested,), operation)
            for match in matches
        )
        for operation in operations
    )


def _is_evaluated(match: MatchResources, kind: Kind, requested: Kind, operations: tuple[Operation, ...]) -> bool:
    """Return whether a policy may evaluate objects in a kind: a rule that always matches the requested kind excludes others."""
    return any(
        _may_match(match, (kind,), operation)
        and (kind == requested or not _certainly_matches(match.rules, requested, operation))
        for operation in operations
    )


def _may_match(match: MatchResources, kinds: tuple[Kind, ...], operation: Operation) -> bool:
    """Return whether a request may match as one of some kinds; a binding without rules narrows nothing."""
    excluded = any(_certainly_matches(match.exclude_rules, kind, operation) for kind in kinds)
    rules = product(match.rules, kinds)
    return not excluded and (not match.rules or any(could_match(rule, kind, (operation,)) for rule, kind in rules))


def _certainly_matches(rules: tuple[Rule, ...], kind: Kind, operation: Operation) -> bool:
    return any(not rule.resource_names and could_match(rule, kind, (operation,)) for rule in rules)
