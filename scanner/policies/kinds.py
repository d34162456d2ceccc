"""Rules that cannot match any object of the cluster, because of the kinds that they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match, is_exempt
from scanner.model.policy import MatchResources, Rule
from scanner.model.resource import Kind
from scanner.model.scans.health import Health, HealthKind

_ANY = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_NOTHING = "no kind that the cluster serves and lists"
_EXEMPT = "only kinds that are exempt from policies"


def find_unresolved_rules(bound: BoundPolicy, kinds: tuple[Kind, ...]) -> Iterator[Health]:
    """A health entry for each rule of a policy and of its bindings that no kind of `kinds` matches."""
    policy = bound.policy
    for where, why in _find_lost(policy.match, kinds, static=policy.static):
        yield Health(
            HealthKind.NO_KIND, policy.name, "", f"spec.matchConstraints.{where} matches {why}", policy.language
        )
    for binding in bound.bindings:
        for where, why in _find_lost(binding.match, kinds, static=policy.static):
            yield Health(
                HealthKind.NO_KIND,
                policy.name,
                binding.name,
                f"spec.matchResources.{where} matches {why}",
                policy.language,
            )


def _find_lost(match: MatchResources | None, kinds: Iterable[Kind], *, static: bool) -> Iterator[tuple[str, str]]:
    """The rules that match no kind, by their path, each with its problem."""
    candidates = tuple(kinds)
    for index, rule in enumerate(match.rules if match else ()):
        whole = _widen(rule)
        matched = [kind for kind in candidates if could_match(whole, kind, _ANY)]
        if not matched:
            yield f"resourceRules[{index}]", _NOTHING
        elif all(is_exempt(kind, static=static) for kind in matched):
            yield f"resourceRules[{index}]", _EXEMPT


def _widen(rule: Rule) -> Rule:
    """The rule for the kinds that it names, in any scope; `pods/exec` names pods."""
    return replace(rule, resources=tuple(resource.partition("/")[0] for resource in rule.resources), scope="*")
