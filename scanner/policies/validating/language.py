"""ValidatingAdmissionPolicy as a policy language.

Source of truth for what decides: `validating.Validator.Validate` of kube-apiserver 1.36. A messageExpression is no text: it is
evaluated for objects that pass, too, and all of them together may exhaust the budget of their policy.

Rules: `docs/semantics/evaluation.md#order`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scanner.admission.dispatch import BoundPolicy
from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind
from scanner.model.policy import Action, Binding, Policy
from scanner.model.resource import Kind
from scanner.model.scans.scan import Health
from scanner.policies.admission_api import AdmissionLanguage, BoundByApi, PolicyKind
from scanner.policies.bound_language import BindingContext
from scanner.policies.documents import PolicyDocuments
from scanner.policies.texts import without
from scanner.policies.validating import native_comparisons, status
from scanner.policies.validating.bind import API
from scanner.policies.validating.wrapped import WrappedEvaluator

_EVALUATES_ANNOTATIONS: Final = frozenset({CheckKind.AUDIT_ANNOTATION, CheckKind.CONFIGURATION})
"""The kinds of checks that an audit annotation decides: it can fail, or exhaust the budget of an invocation."""


@dataclass(frozen=True, slots=True)
class Validating(AdmissionLanguage):
    """Satisfies `Language`."""

    api: PolicyKind = API

    @property
    def patch_decides(self) -> bool:
        """See Language: expressions are evaluated by the rules of a minor version."""
        return False

    def deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        """See Language: all but the actions of bindings, messages, reasons and, for other checks, audit annotations."""
        annotations = () if check in _EVALUATES_ANNOTATIONS else ("auditAnnotations",)
        return without(spec, fields=("validationActions", *annotations), of_validations=("message", "reason"))

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
