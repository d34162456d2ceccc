"""Bindings of one policy that are equal, or of which one covers the other.

The matchResources and the params of a binding decide whether an object is evaluated, its actions decide the consequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import Binding, MatchResources, ParamRef, Policy
from scanner.model.scan import Health, HealthKind


def redundant(entry: BoundPolicy) -> Iterator[Health]:
    """Bindings that another binding makes redundant; of two equal bindings, the later by name."""
    real = [binding for binding in entry.bindings if not binding.assumed]
    for one, other in permutations(real, 2):
        if _same(one, other, entry.policy) and one.name < other.name:
            detail = f"it equals binding {one.name}, so every object is evaluated twice"
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
    """Return whether one binding covers the other. A narrower match can only be compared with an equal or an absent match."""
    wide = _match(one) is None or _match(one) == _match(other)
    return wide and set(one.actions) >= set(other.actions) and _params(one, policy) == _params(other, policy)


def _match(binding: Binding) -> MatchResources | None:
    """The match that narrows a binding, or None without one."""
    match = binding.match
    if match is None or match.rules or match.exclude_rules:
        return match
    return None if match.namespace_selector.empty and match.object_selector.empty else match


def _params(binding: Binding, policy: Policy) -> ParamRef | None:
    """The reference to params; None for a policy without paramKind, which ignores the reference."""
    return binding.param_ref if policy.param_kind else None
