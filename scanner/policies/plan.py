"""The kinds to list, their versions, and the policies that evaluate each of them.

A policy evaluates an object in the version that its rule names (`matchPolicy: Equivalent`), so a kind can be listed in several
versions; every policy evaluates an object in exactly one of them. Versions that differ in the apiVersion alone (`relabelled`) are
evaluated on the list of the version of the request: a policy reads the fields and the defaults of that version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from scanner.admission.auditability import AUDITABLE
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match, is_exempt
from scanner.model.policy import Binding, MatchResources, Operation, Policy, PolicyKey, Rule
from scanner.model.resource import Kind
from scanner.model.scans.scan import UncoveredKind
from scanner.mutate.versions import is_builtin

# Group-resources whose objects are served under another group as well.
_COHABITANTS = {("events.k8s.io", "events"): ("", "events")}


@dataclass(frozen=True, slots=True)
class KindPlan:
    """One list to make, and the policies that may evaluate its objects, each with the kind of the request."""

    kind: Kind
    policies: tuple[tuple[BoundPolicy, Kind], ...]


class _Request(NamedTuple):
    """The kind that a request names, and those of the requests that come first."""

    kind: Kind
    before: tuple[Kind, ...] = ()


class _Viewpoint(NamedTuple):
    """A request, the kind that a policy evaluates, and the bindings that the request reaches."""

    request: _Request
    evaluated: Kind
    bindings: tuple[Binding, ...]

    @property
    def original(self) -> Kind:
        """The kind that the request names."""
        return self.request.kind


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
            found = {(view.request, _find_list(view, relabelled)): view.bindings for view in views}
            for (request, listed), bindings in found.items():
                lists.setdefault(listed, []).append((_narrow(bound_policy, bindings, request.before), request.kind))
    return tuple(KindPlan(kind, tuple(lists[kind])) for kind in sorted(lists))


def _narrow(bound_policy: BoundPolicy, bindings: tuple[Binding, ...], before: tuple[Kind, ...]) -> BoundPolicy:
    """The policy with some of its bindings for a request: it stays the same object with all of them for the first one."""
    if bindings == bound_policy.bindings and not before:
        return bound_policy
    return replace(bound_policy, bindings=bindings, asked_before=before)


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

    There is none if the policy never matches these objects. A request names the preferred kind. Others follow if only they may
    reach some or all objects through a policy or a binding that is `Exact`. A binding that no request reaches has those of its
    policy.
    """
    match = policy.match
    if match is None or is_exempt(family[0], static=policy.static):
        return
    if not any(could_match(rule, kind, operations) for rule in match.rules for kind in family):
        return  # as for most kinds, so that the questions below cost little
    own = _list_reaching((match,), family, operations)
    requests: dict[_Request, list[Binding]] = {}
    for binding in bindings:
        reaching = _list_reaching((match, binding.match), family, operations) if binding.match else own
        # A policy with an error in its configuration denies what it matches, also where its binding does not.
        for request in reaching or own:
            requests.setdefault(request, []).append(binding)
    for request, reached in requests.items():
        candidates = family if match.match_policy == "Equivalent" else (request.kind,)
        for kind in candidates:
            if _is_evaluated(match, kind, request.kind, operations):
                yield _Viewpoint(request, kind, tuple(reached))


def _list_reaching(
    matches: tuple[MatchResources, ...], family: tuple[Kind, ...], operations: tuple[Operation, ...]
) -> list[_Request]:
    """The requests that together reach all objects of a family that a policy and its binding can match."""
    reaching = [kind for kind in family if _is_reaching(_may_match, matches, kind, family, operations)]
    if all(match.match_policy == "Equivalent" for match in matches):
        reaching = reaching[:1]  # every request matches the same objects
    enough = (i for i, kind in enumerate(reaching, 1) if _is_reaching(_matches_all, matches, kind, family, operations))
    return [_Request(kind, tuple(reaching[:i])) for i, kind in enumerate(reaching[: next(enough, None)])]


def _is_reaching(
    matching: Callable[[MatchResources, tuple[Kind, ...], Operation], bool],
    matches: Iterable[MatchResources],
    requested: Kind,
    family: tuple[Kind, ...],
    operations: tuple[Operation, ...],
) -> bool:
    """Return whether a request in a kind matches a policy and its binding, as far as one of the functions below can tell."""
    return any(
        all(
            matching(match, family if match.match_policy == "Equivalent" else (requested,), operation)
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


def _matches_all(match: MatchResources, kinds: tuple[Kind, ...], operation: Operation) -> bool:
    """Return whether a request matches as one of some kinds, for objects of every name."""
    excluded = any(could_match(rule, kind, (operation,)) for rule, kind in product(match.exclude_rules, kinds))
    return not excluded and (not match.rules or any(_certainly_matches(match.rules, kind, operation) for kind in kinds))


def _certainly_matches(rules: tuple[Rule, ...], kind: Kind, operation: Operation) -> bool:
    return any(not rule.resource_names and could_match(rule, kind, (operation,)) for rule in rules)
