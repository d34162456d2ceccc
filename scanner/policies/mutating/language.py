"""MutatingAdmissionPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import Action, Binding, Policy
from scanner.model.resource import Kind
from scanner.model.scans.scan import Health
from scanner.policies.admission_api import AdmissionLanguage, BoundByApi, PolicyKind
from scanner.policies.bound_language import BindingContext
from scanner.policies.documents import PolicyDocuments
from scanner.policies.mutating import mutation_order
from scanner.policies.mutating.bind import API


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
        yield from mutation_order.of_policies(evaluable, served, self.context.rules)
