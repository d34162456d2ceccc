"""ValidatingAdmissionPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import Action, Binding, Policy
from scanner.model.resource import Kind
from scanner.model.scan import Health
from scanner.policies.admission_api import AdmissionLanguage, BoundByApi, PolicyKind
from scanner.policies.bound_language import BindingContext
from scanner.policies.documents import PolicyDocuments
from scanner.policies.validating import native_comparisons, status
from scanner.policies.validating.bind import API
from scanner.policies.validating.wrapped import WrappedEvaluator


@dataclass(frozen=True, slots=True)
class Validating(AdmissionLanguage):
    """Satisfies `Language`."""

    api: PolicyKind = API

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        """See Language."""
        return self.api.assume_bound(policy, action)

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundValidating:
        """See Language."""
        return BoundValidating(self.api, documents, context)


class BoundValidating(BoundByApi):
    """Validating policies in force. From Kubernetes 1.37 on, their expressions read wrapped values."""

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """See BoundLanguage: the problems that the server reports, and the expressions that 1.37 may evaluate differently."""
        for policy in self.documents.policies:
            yield from status.of_policy(policy)
        if isinstance(self.evaluator, WrappedEvaluator):
            yield from native_comparisons.of_policies(evaluable, self.evaluator, served)
