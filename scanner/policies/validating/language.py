"""ValidatingAdmissionPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from scanner.admission.dispatch import BoundPolicy
from scanner.admission.evaluator import ADMISSION, Evaluator
from scanner.cel.releases import WRAPPED_OBJECTS
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

    @cached_property
    def _wrapped(self) -> WrappedEvaluator | None:
        rules, schemas = self.context.rules, self.context.schemas
        return WrappedEvaluator(schemas, rules) if schemas is not None and WRAPPED_OBJECTS.holds(rules) else None

    @cached_property
    def bound(self) -> tuple[BoundPolicy, ...]:
        """See BoundLanguage."""
        evaluator: Evaluator = self._wrapped or ADMISSION
        given, context = self.documents, self.context
        return self.api.bind(given.policies, given.bindings, context.operations, context.rules, evaluator)

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """See BoundLanguage: the problems that the server reports, and the expressions that 1.37 may evaluate differently."""
        for policy in self.documents.policies:
            yield from status.of_policy(policy)
        if self._wrapped is not None:
            yield from native_comparisons.of_policies(evaluable, self._wrapped, served)
