"""Bindings of one policy that say the same, or of which one does all that the other does.

Whether an object is judged under a binding depends on its matchResources and its params, what follows on its actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import Binding, MatchResources, ParamRef, Policy
from scanner.model.scan import Health, HealthKind


def redundant(entry: BoundPolicy) -> Iterator[Health]:
    """Bindings that add nothing to another one; of two that say the same, the later by name."""
    real = [binding for binding in entry.bindings if not binding.assumed]
    for one, other in permutations(real, 2):
        if _same(one, other, entry.policy) and one.name < other.name:
            detail = f"it says the same as binding {one.name}: every object is judged twice"
            yield Health(HealthKind.DUPLICATE, entry.policy.name, other.name, detail, entry.policy.language)
        elif _covers(one, other, entry.policy) and not _same(one, other, entry.policy):
            detail = f"binding {one.name} covers what it matches, with the same params and at least its actions"
            yield Health(HealthKind.SHADOWED, entry.policy.name, other.name, detail, entry.policy.language)


def _same(one: Binding, other: Binding, policy: Policy) -> bool:
    return (
        _match(one) == _match(other)
        and set(one.actions) == set(other.actions)
        and _params(one, policy) == _params(other, policy)
    )


def _covers(one: Binding, other: Binding, policy: Policy) -> bool:
    """Whether one binding does whatever the other does. A narrower match can only be compared with none, or with itself."""
    wide = _match(one) is None or _match(one) == _match(other)
    return wide and set(one.actions) >= set(other.actions) and _params(one, policy) == _params(other, policy)


def _match(binding: Binding) -> MatchResources | None:
    """What narrows a binding, or None when nothing does."""
    match = binding.match
    if match is None or match.rules or match.exclude_rules:
        return match
    return None if match.namespace_selector.empty and match.object_selector.empty else match


def _params(binding: Binding, policy: Policy) -> ParamRef | None:
    """The reference to params, which a policy without paramKind does not look at."""
    return binding.param_ref if policy.param_kind else None
