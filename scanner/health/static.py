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
from scanner.model.scan import Health, HealthKind
from scanner.policies import kinds

_UNASKED = (
    "expressions that ask the authorizer are not auditable, because it may not be asked: grant create on "
    "subjectaccessreviews.authorization.k8s.io to the identity that scans a cluster, or name a requester with --as-user "
    "where the server does not tell who that is; files have no authorizer"
)


def health_before(
    policies: Iterable[Policy], bound: Iterable[BoundPolicy], served: tuple[Kind, ...], world: EvaluationContext
) -> Iterator[Health]:
    """The policies that are being deleted, and the problems of the bound policies."""
    for policy in policies:
        yield from status.of_policy(policy)
    for entry in bound:
        yield from _compilation(entry)
        yield from _params(entry, world.params)
        yield from _auditability(entry, world)
        yield from () if entry.reading.reason else kinds.unresolved(entry, served)
        yield from bindings.redundant(entry)
        for binding in entry.bindings:
            yield from status.of_binding(binding)


def _compilation(entry: BoundPolicy) -> Iterator[Health]:
    for path, expression in entry.compiled.expressions():
        if expression.fault:
            yield Health(
                HealthKind.COMPILE, entry.policy.name, "", f"{path}: {expression.fault}", entry.policy.language
            )


def _auditability(entry: BoundPolicy, world: EvaluationContext) -> Iterator[Health]:
    if world.authorizer is None and Auditability.AUTHORIZER in entry.reading.classes:
        yield Health(HealthKind.NOT_AUDITABLE, entry.policy.name, "", _UNASKED, entry.policy.language)
    if entry.reading.reason:
        yield Health(HealthKind.NOT_AUDITABLE, entry.policy.name, "", entry.reading.reason, entry.policy.language)


def _params(entry: BoundPolicy, params: ParamSource) -> Iterator[Health]:
    if fault := unserved(entry.policy, params):
        yield Health(HealthKind.PARAM_KIND, entry.policy.name, "", fault, entry.policy.language)
    kind = params.kind(entry.policy.param_kind) if entry.policy.param_kind else None
    for binding in entry.bindings if kind else ():
        if kind and binding.param_ref and (missing := _missing(binding.param_ref, kind, params)):
            detail = f"{missing}: {_effect(binding.param_ref, entry)}"
            yield Health(HealthKind.PARAM_MISSING, entry.policy.name, binding.name, detail, entry.policy.language)


def _missing(reference: ParamRef, kind: Kind, params: ParamSource) -> str:
    """The missing param; an empty string if there is a param, or if that depends on the namespace of an object."""
    if kind.namespaced and not reference.namespace:
        return ""
    namespace = reference.namespace if kind.namespaced else ""
    place = f" in namespace {namespace}" if namespace else ""
    if reference.name:
        found: Iterable[Resource | None] = (params.get(kind, namespace, reference.name),)
        return (
            "" if any(found) else f"{kind.kind} {f'{namespace}/' if namespace else ''}{reference.name} does not exist"
        )
    selector = reference.selector
    if selector is None or selector.fault():
        return ""
    chosen = any(selector.matches(param.labels) for param in params.all(kind, namespace))
    return "" if chosen else f"no {kind.kind}{place} has the labels that it selects"


def _effect(reference: ParamRef, entry: BoundPolicy) -> str:
    if reference.parameter_not_found_action != "Deny":
        return "the binding evaluates nothing"
    if entry.policy.failure_policy == "Ignore":
        return "an error for every object it matches, which failurePolicy Ignore lets pass"
    return "the binding denies every object it matches"
