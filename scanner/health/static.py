"""The problems of policies and bindings that are known before any object is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.params import ParamSource, unserved
from scanner.health import bindings, status
from scanner.model.policy import ParamRef, Policy
from scanner.model.reading import Auditability
from scanner.model.resource import Kind, Resource
from scanner.model.scans.scan import Health, HealthKind
from scanner.policies import kinds

_UNASKED = (
    "expressions that ask the authorizer are not auditable, because it may not be asked: grant create on "
    "subjectaccessreviews.authorization.k8s.io to the identity that scans a cluster, or name a requester with --as-user "
    "where the server does not tell who that is; files have no authorizer"
)


def health_before(
    policies: Iterable[Policy], bound: Iterable[BoundPolicy], served: tuple[Kind, ...], context: EvaluationContext
) -> Iterator[Health]:
    """The problems that are known before the first object is evaluated.

    These are the policies and bindings that are being deleted, expressions that do not compile, params, checks that cannot be
    audited, rules that match no kind of `served`, and redundant bindings.
    """
    for policy in policies:
        yield from status.of_policy(policy)
    for bound_policy in bound:
        yield from _compilation(bound_policy)
        yield from _params(bound_policy, context.params)
        yield from _auditability(bound_policy, context)
        yield from () if bound_policy.reading.reason else kinds.unresolved(bound_policy, served)
        yield from bindings.redundant(bound_policy)
        for binding in bound_policy.bindings:
            yield from status.of_binding(binding)


def _compilation(bound: BoundPolicy) -> Iterator[Health]:
    for path, expression in bound.compiled.expressions():
        if expression.fault:
            yield Health(
                HealthKind.COMPILE, bound.policy.name, "", f"{path}: {expression.fault}", bound.policy.language
            )


def _auditability(bound: BoundPolicy, context: EvaluationContext) -> Iterator[Health]:
    if context.authorizer is None and Auditability.AUTHORIZER in bound.reading.classes:
        yield Health(HealthKind.NOT_AUDITABLE, bound.policy.name, "", _UNASKED, bound.policy.language)
    if bound.reading.reason:
        yield Health(HealthKind.NOT_AUDITABLE, bound.policy.name, "", bound.reading.reason, bound.policy.language)


def _params(bound: BoundPolicy, params: ParamSource) -> Iterator[Health]:
    if fault := unserved(bound.policy, params):
        yield Health(HealthKind.PARAM_KIND, bound.policy.name, "", fault, bound.policy.language)
    kind = params.kind(bound.policy.param_kind) if bound.policy.param_kind else None
    for binding in bound.bindings if kind else ():
        if kind and binding.param_ref and (missing := _missing(binding.param_ref, kind, params)):
            detail = f"{missing}: {_effect(binding.param_ref, bound)}"
            yield Health(HealthKind.PARAM_MISSING, bound.policy.name, binding.name, detail, bound.policy.language)


def _missing(reference: ParamRef, kind: Kind, params: ParamSource) -> str:
    """The missing param; an empty string if there is a param, or if that depends on the namespace of an object."""
    if kind.namespaced and not reference.namespace:
        return ""
    namespace = reference.namespace if kind.namespaced else ""
    place = f" in namespace {namespace}" if namespace else ""
    if reference.name:
        named: Iterable[Resource | None] = (params.get(kind, namespace, reference.name),)
        return (
            "" if any(named) else f"{kind.kind} {f'{namespace}/' if namespace else ''}{reference.name} does not exist"
        )
    selector = reference.selector
    if selector is None or selector.fault():
        return ""
    chosen = any(selector.matches(param.labels) for param in params.all(kind, namespace))
    return "" if chosen else f"no {kind.kind}{place} has the labels that it selects"


def _effect(reference: ParamRef, bound: BoundPolicy) -> str:
    if reference.parameter_not_found_action != "Deny":
        return "the binding evaluates nothing"
    if bound.policy.failure_policy == "Ignore":
        return "an error for every object it matches, which failurePolicy Ignore lets pass"
    return "the binding denies every object it matches"
