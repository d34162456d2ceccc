"""MutatingAdmissionPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanner.admission.compiled import MUTATING
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match_write
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.model.policy import Action, Binding, Policy
from scanner.model.release import Minor
from scanner.model.resource import Kind
from scanner.model.scans.health import Health, HealthKind
from scanner.policies import api_validation
from scanner.policies.admission_api import AdmissionLanguage, BoundByApi, PolicyKind
from scanner.policies.bound_language import BindingContext, PolicyDocuments
from scanner.policies.mutating.evaluator import make_evaluator
from scanner.policies.mutating.together import IN_ONE_REQUEST

# MutatingAdmissionPolicy: its names and its rules in the admission API.
#
# Source of truth: `admissionregistration.k8s.io` v1 of Kubernetes 1.36.

LANGUAGE = "MutatingAdmissionPolicy"
API = PolicyKind(
    language=LANGUAGE,
    policies="mutatingadmissionpolicies",
    plugin=MUTATING,
    evaluator=make_evaluator,
    combination=IN_ONE_REQUEST,
    policy_faults=api_validation.mutating_policy_faults,
    binding_faults=api_validation.mutating_binding_faults,
)
read_policy, read_binding, bind = API.read_policy, API.read_binding, API.bind


@dataclass(frozen=True, slots=True)
class Mutating(AdmissionLanguage):
    """Satisfies `Language`."""

    api: PolicyKind = API

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        """See Language: bindings of mutating policies have no actions."""
        del action
        return self.api.assume_bound(policy)

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundMutating:
        """See Language."""
        return BoundMutating(self.api, documents, context)


class BoundMutating(BoundByApi):
    """Mutating policies in force."""

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """See BoundLanguage."""
        yield from find_ambiguous_order(evaluable, served, self.context.rules)


# Finds mutating policies whose result varies in Kubernetes 1.37.
#
# There the object is wrapped for the mutations of a policy after any policy with match conditions was evaluated on it
# in the same request. Policies run in random order, so a policy *without* conditions reads either form if another
# policy *with* conditions matches the same kind. Assay evaluates it as if it ran first.


def find_ambiguous_order(bound: Iterable[BoundPolicy], kinds: tuple[Kind, ...], rules: Minor) -> Iterator[Health]:
    """A note for each policy that can read the object in either form; none before 1.37."""
    changing = tuple(bound) if WRAPPED_OBJECTS.holds(rules) else ()
    conditional = [bound_policy.policy for bound_policy in changing if bound_policy.policy.match_conditions]
    for bound_policy in changing:
        policy = bound_policy.policy
        if policy.match_conditions or not any(
            expression.reads("object") for expression in bound_policy.compiled.mutations
        ):
            continue
        others = [other.name for other in conditional if any(_may_both_match(policy, other, kind) for kind in kinds)]
        if others:
            yield Health(HealthKind.NOTE, policy.name, "", _write_detail(others), policy.language)


def _may_both_match(first: Policy, other: Policy, kind: Kind) -> bool:
    """Return whether both may match objects of a kind that is compiled into the API server; custom ones are never wrapped."""
    is_native = "." not in kind.group or kind.group.endswith(".k8s.io")
    return is_native and could_match_write(first, kind) and could_match_write(other, kind)


def _write_detail(others: list[str]) -> str:
    return (
        "Kubernetes 1.37 shows its mutations the object in one of two forms, depending on whether a policy with match "
        f"conditions ({', '.join(others)}) runs before it: what it makes of lists and maps of the object may differ "
        "from request to request; give it a match condition too"
    )
