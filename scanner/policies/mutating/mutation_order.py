"""Finds mutating policies whose result varies in Kubernetes 1.37.

There the object is wrapped for the mutations of a policy after any policy with match conditions was evaluated on it in the same
request. Policies run in random order, so a policy *without* conditions reads either form if another policy *with* conditions
matches the same kind. Assay evaluates it as if it ran first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.model.policy import Policy
from scanner.model.release import Minor
from scanner.model.resource import Kind
from scanner.model.scans.scan import Health, HealthKind


def of_policies(bound: Iterable[BoundPolicy], kinds: tuple[Kind, ...], rules: Minor) -> Iterator[Health]:
    """A note for each policy that can read the object in either form; none before 1.37."""
    changing = tuple(bound) if WRAPPED_OBJECTS.holds(rules) else ()
    conditional = [bound_policy.policy for bound_policy in changing if bound_policy.policy.match_conditions]
    for bound_policy in changing:
        policy = bound_policy.policy
        if policy.match_conditions or not any(
            expression.reads("object") for expression in bound_policy.compiled.mutations
        ):
            continue
        others = [other.name for other in conditional if any(_both(policy, other, kind) for kind in kinds)]
        if others:
            yield Health(HealthKind.NOTE, policy.name, "", _detail(others), policy.language)


def _both(first: Policy, other: Policy, kind: Kind) -> bool:
    """Return whether both may match objects of a kind that is compiled into the API server; custom ones are never wrapped."""
    return _is_native(kind) and _matches(first, kind) and _matches(other, kind)


def _is_native(kind: Kind) -> bool:
    return "." not in kind.group or kind.group.endswith(".k8s.io")


def _matches(policy: Policy, kind: Kind) -> bool:
    rules = policy.match.rules if policy.match else ()
    return any(could_match(rule, kind, ("CREATE", "UPDATE")) for rule in rules)


def _detail(others: list[str]) -> str:
    return (
        "Kubernetes 1.37 shows its mutations the object in one of two forms, depending on whether a policy with match "
        f"conditions ({', '.join(others)}) runs before it: what it makes of lists and maps of the object may differ "
        "from request to request; give it a match condition too"
    )
