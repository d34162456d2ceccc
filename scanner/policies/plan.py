"""The kinds to list, their versions, and the policies that evaluate each of them.

A policy evaluates an object in the version that its rule names (`matchPolicy: Equivalent`), so a kind can be listed in several
versions; every policy evaluates an object in exactly one of them. Versions that differ in the apiVersion alone (`relabelled`) are
evaluated on the list of the version of the request: a policy reads the fields and the defaults of that version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice, product

from scanner.admission.auditability import AUDITABLE
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match, is_exempt
from scanner.model.policy import MatchResources, Operation, Policy
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
    """The lists to make, ordered by kind, for policies that are in force."""
    policies = tuple(bound)
    lists: dict[Kind, list[tuple[BoundPolicy, Kind]]] = {}
    for family in group_families(kinds):
        for bound_policy in policies:
            views = list_viewpoints(bound_policy.policy, family, operations)
            for original, listed in dict.fromkeys(_find_list(view, relabelled) for view in views):
                lists.setdefault(listed, []).append((bound_policy, original))
    return tuple(KindPlan(kind, tuple(lists[kind])) for kind in sorted(lists))


def plan_lists(
    kinds: Iterable[Kind],
    policies: Iterable[Policy],
    operations: tuple[Operation, ...] = AUDITABLE,
    relabelled: Collection[Kind] = (),
) -> tuple[Kind, ...]:
    """The kinds of the lists that `plan` will make, before the policies are compiled."""
    pairs = product(group_families(kinds), tuple(policies))
    views = (view for family, policy in pairs for view in list_viewpoints(policy, family, operations))
    return tuple(sorted({_find_list(view, relabelled)[1] for view in views}))


def _find_list(view: tuple[Kind, Kind], relabelled: Collection[Kind]) -> tuple[Kind, Kind]:
    """The kind that a request names, and the kind of the list for a policy that evaluates the object of this request."""
    original, evaluated = view
    return original, original if evaluated in relabelled else evaluated


def find_other_versions(
    kinds: Iterable[Kind], policies: Iterable[Policy], operations: tuple[Operation, ...] = AUDITABLE
) -> dict[Kind, tuple[Policy, ...]]:
    """The kinds that are not built in and that policies may evaluate in another version than that of the request."""
    several = (family for family in group_families(kinds) if len(family) > 1)
    users: dict[Kind, list[Policy]] = {}
    for family, policy in product(several, tuple(policies)):
        for original, evaluated in list_viewpoints(policy, family, operations):
            if original != evaluated:
                users.setdefault(evaluated, []).append(policy)
    return {kind: tuple(of_kind) for kind, of_kind in users.items() if not is_builtin(kind)}


def find_uncovered(
    kinds: Iterable[Kind],
    plans: Iterable[KindPlan],
    others: Iterable[BoundPolicy] = (),
    operations: tuple[Operation, ...] = AUDITABLE,
) -> tuple[UncoveredKind, ...]:
    """The served kinds that no bound policy can match in any version, sorted, each in its preferred version.

    `others` are bound policies that the plans lack, because they cannot be evaluated.
    """
    planned, policies = {plan.kind for plan in plans}, tuple(bound_policy.policy for bound_policy in others)
    missing = (
        family[0]
        for family in group_families(kinds)
        if planned.isdisjoint(family) and not any(list_viewpoints(policy, family, operations) for policy in policies)
    )
    return tuple(sorted(UncoveredKind(kind.api_version, kind.kind) for kind in missing))


def list_viewpoints(
    policy: Policy, family: tuple[Kind, ...], operations: tuple[Operation, ...]
) -> tuple[tuple[Kind, Kind], ...]:
    """Pairs of the kind that a request names and the kind that the policy evaluates.

    The result is empty if the policy never matches these objects. A request names the preferred kind, unless only requests in
    another version can reach an `Exact` policy.
    """
    match = policy.match
    if match is None or is_exempt(family[0], static=policy.static):
        return ()
    if match.match_policy == "Equivalent":
        return tuple((family[0], kind) for kind in family if _is_evaluated(match, kind, family[0], operations))
    matched_kinds = (kind for kind in family if _may_match(match, kind, operations))
    return tuple((kind, kind) for kind in islice(matched_kinds, 1))


def _is_evaluated(match: MatchResources, kind: Kind, requested: Kind, operations: tuple[Operation, ...]) -> bool:
    """Return whether a policy may evaluate objects in a kind: a rule that always matches the requested kind excludes others."""
    return any(
        _may_match(match, kind, (operation,))
        and (kind == requested or not _certainly_matches(match, requested, operation))
        for operation in operations
    )


def _may_match(match: MatchResources, kind: Kind, operations: tuple[Operation, ...]) -> bool:
    return any(could_match(rule, kind, operations) for rule in match.rules)


def _certainly_matches(match: MatchResources, kind: Kind, operation: Operation) -> bool:
    return any(not rule.resource_names and could_match(rule, kind, (operation,)) for rule in match.rules)
