"""Expressions that Kubernetes 1.37 could evaluate differently from Assay: those that compare whole native structures.

1.37 compares structures by their meaning (`1k` is `1000`, an empty list is none), and not field by field. Assay evaluates every
other effect of wrapped values; it names each of these expressions, for the kinds that its policy matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match
from scanner.model.policy import Policy
from scanner.model.resource import Kind
from scanner.model.scans.scan import Health, HealthKind
from scanner.policies.validating.wrapped import WrappedEvaluator


def of_policies(bound: Iterable[BoundPolicy], evaluator: WrappedEvaluator, kinds: tuple[Kind, ...]) -> Iterator[Health]:
    """A health entry for each expression that 1.37 could evaluate differently."""
    for bound_policy in bound:
        yield from _of_policy(bound_policy, evaluator, (kind for kind in kinds if _matches(bound_policy.policy, kind)))


def _matches(policy: Policy, kind: Kind) -> bool:
    rules = policy.match.rules if policy.match else ()
    return any(could_match(rule, kind, ("CREATE", "UPDATE")) for rule in rules)


def _of_policy(bound_policy: BoundPolicy, evaluator: WrappedEvaluator, kinds: Iterable[Kind]) -> Iterator[Health]:
    places: dict[str, str] = {}
    for kind in kinds:
        for path, differences in evaluator.differences(bound_policy.compiled, kind).items():
            for difference in differences:
                if not difference.evaluated:
                    places.setdefault(path, f"for objects such as {kind.kind} ({difference.text})")
    for path, where in places.items():
        detail = (
            f"{path}: Kubernetes 1.37 may answer otherwise {where}, because it compares native structures by what they "
            "mean; they were compared field by field"
        )
        yield Health(HealthKind.NOTE, bound_policy.policy.name, "", detail, bound_policy.policy.language)
