"""Bindings of one policy that are equal, or of which one covers the other.

The matchResources and the params of a binding decide whether an object is evaluated, its actions decide the consequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import Binding, MatchResources, ParamRef, Policy
from scanner.model.scans.scan import Health, HealthKind


def redundant(bound: BoundPolicy) -> Iterator[Health]:
    """Bindings that another binding makes redundant; of two equal bindings, the later by name."""
    real = [binding for binding in bound.bindings if not binding.assumed]
    for first, other in permutations(real, 2):
        if _same(first, other, bound.policy) and first.name < other.name:
            detail = f"it equals binding {first.name}, so every object is evaluated twice"
            yield Health(HealthKind.DUPLICATE, bound.policy.name, other.name, detail, bound.policy.language)
        elif _covers(first, other, bound.policy) and not _same(first, other, bound.policy):
            detail = f"binding {first.name} covers what it matches, with the same params and at least its actions"
            yield Health(HealthKind.SHADOWED, bound.policy.name, other.name, detail, bound.policy.language)


def _same(first: Binding, other: Binding, policy: Policy) -> bool:
    return (
        _match(first) == _match(other)
        and set(first.actions) == set(other.actions)
        and _params(first, policy) == _params(other, policy)
    )


def _covers(first: Binding, other: Binding, policy: Policy) -> bool:
    """Return whether one binding covers the other. A narrower match can only be compared with an equal or an absent match."""
    wide = _match(first) is None or _match(first) == _match(other)
    return wide and set(first.actions) >= set(other.actions) and _params(first, policy) == _params(other, policy)


def _match(binding: Binding) -> MatchResources | None:
    """The match that narrows a binding, or None without one."""
    match = binding.match
    if match is None or match.rules or match.exclude_rules:
        return match
    return None if match.namespace_selector.empty and match.object_selector.empty else match


def _params(binding: Binding, policy: Policy) -> ParamRef | None:
    """The reference to params; None for a policy without paramKind, which ignores the reference."""
    return binding.param_ref if policy.param_kind else None
