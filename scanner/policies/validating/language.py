"""ValidatingAdmissionPolicy as a policy language.

Source of truth for what decides: `validating.Validator.Validate` of kube-apiserver 1.36. A messageExpression is no text: it is
evaluated for objects that pass, too, and all of them together may exhaust the budget of their policy.

Rules: `docs/semantics/evaluation.md#order`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from scanner.admission.compiled import VALIDATING
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match_write
from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.outcome import CheckKind
from scanner.model.policy import Action, Binding, Policy
from scanner.model.resource import Kind
from scanner.model.scans.health import Health, HealthKind
from scanner.policies import api_validation
from scanner.policies.admission_api import AdmissionLanguage, BoundByApi, PolicyKind
from scanner.policies.bound_language import BindingContext, PolicyDocuments
from scanner.policies.manifest import remove_texts
from scanner.policies.validating.wrapped import WrappedEvaluator, make_evaluator

# ValidatingAdmissionPolicy: its names and its rules in the admission API.
#
# Source of truth: `admissionregistration.k8s.io` v1 of Kubernetes 1.36.

LANGUAGE = "ValidatingAdmissionPolicy"
API = PolicyKind(
    language=LANGUAGE,
    policies="validatingadmissionpolicies",
    plugin=VALIDATING,
    evaluator=make_evaluator,
    policy_faults=api_validation.policy_faults,
    binding_faults=api_validation.binding_faults,
)
read_policy, read_binding, bind = API.read_policy, API.read_binding, API.bind


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

    def select_deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        """See Language: all but the actions of bindings, messages, reasons and, for other checks, audit annotations."""
        annotations = () if check in _EVALUATES_ANNOTATIONS else ("auditAnnotations",)
        return remove_texts(spec, fields=("validationActions", *annotations), of_validations=("message", "reason"))

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
            yield from read_status(policy)
        if isinstance(self.evaluator, WrappedEvaluator):
            yield from find_differences(evaluable, self.evaluator, served)


# Expressions that Kubernetes 1.37 could evaluate differently from Assay: those that compare whole native structures.
#
# 1.37 compares structures by their meaning (`1k` is `1000`, an empty list is none), and not field by field. Assay evaluates every
# other effect of wrapped values; it names each of these expressions, for the kinds that its policy matches.


def find_differences(
    bound: Iterable[BoundPolicy], evaluator: WrappedEvaluator, kinds: tuple[Kind, ...]
) -> Iterator[Health]:
    """A health entry for each expression that 1.37 could evaluate differently."""
    for bound_policy in bound:
        yield from _find_differences_of_policy(
            bound_policy, evaluator, (kind for kind in kinds if could_match_write(bound_policy.policy, kind))
        )


def _find_differences_of_policy(
    bound_policy: BoundPolicy, evaluator: WrappedEvaluator, kinds: Iterable[Kind]
) -> Iterator[Health]:
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


# The server's own reports of a validating policy: its type check, and its conditions.
#
# Source of truth: `status` of ValidatingAdmissionPolicy; no other policy has an `observedGeneration`, and
# MutatingAdmissionPolicy has no status at all. kube-controller-manager checks the types of the version that
# `observedGeneration` names; its warnings are about the policy as it is only when that is the current generation.


def read_status(policy: Policy) -> Iterator[Health]:
    """The health entries from `status.typeChecking`, `status.conditions` and `status.observedGeneration` of a policy."""
    name = policy.name
    if _is_stale(policy):
        yield Health(HealthKind.STALE_STATUS, name, "", _write_generations(policy.manifest), policy.language)
    else:
        warnings = as_list(dig(policy.manifest, "status", "typeChecking", "expressionWarnings"))
        for item in warnings:
            where, warning = as_text(dig(item, "fieldRef")), as_text(dig(item, "warning")).strip()
            yield Health(HealthKind.TYPE_WARNING, name, "", f"{where}: {warning}", policy.language)
    for item in as_list(dig(policy.manifest, "status", "conditions")):
        if as_text(dig(item, "status")) != "True":
            message = ": ".join(filter(None, (as_text(dig(item, "reason")), as_text(dig(item, "message")))))
            what = f"{as_text(dig(item, 'type'))} is {as_text(dig(item, 'status')) or 'not known'}"
            yield Health(HealthKind.CONDITION, name, "", f"{what} ({message})" if message else what, policy.language)


def _is_stale(policy: Policy) -> bool:
    """Return whether the status is about another generation; a file that was never on a server has neither."""
    generation = dig(policy.manifest, "metadata", "generation")
    observed = dig(policy.manifest, "status", "observedGeneration")
    return isinstance(generation, int) and observed != generation


def _write_generations(manifest: JsonObject) -> str:
    generation = dig(manifest, "metadata", "generation")
    observed = dig(manifest, "status", "observedGeneration")
    if not isinstance(observed, int):
        return f"no controller has checked its types yet (its generation is {generation}): is kube-controller-manager well?"
    return f"its types were checked as of generation {observed}, and it is at {generation}: the warnings are not shown"
