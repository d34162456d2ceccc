"""The problems of policies and bindings that are known before any object is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.params import ParamSource, explain_unserved
from scanner.model.json import JsonObject, dig
from scanner.model.policy import Binding, MatchResources, ParamRef, Policy
from scanner.model.reading import Auditability
from scanner.model.resource import Kind, Resource
from scanner.model.scans.health import Health, HealthKind
from scanner.policies import kinds

_UNASKED = (
    "expressions that ask the authorizer are not auditable, because it may not be asked: grant create on "
    "subjectaccessreviews.authorization.k8s.io to the identity that scans a cluster, or name a requester with --as-user "
    "where the server does not tell who that is; files have no authorizer"
)


def find_static_problems(
    policies: Iterable[Policy], bound: Iterable[BoundPolicy], served: tuple[Kind, ...], context: EvaluationContext
) -> Iterator[Health]:
    """The problems that are known before the first object is evaluated.

    These are the policies and bindings that are being deleted, expressions that do not compile, params, checks that cannot be
    audited, rules that match no kind of `served`, and redundant bindings.
    """
    for policy in policies:
        yield from note_deleted_policy(policy)
    for bound_policy in bound:
        yield from _check_compilation(bound_policy)
        yield from _check_params(bound_policy, context.params)
        yield from _check_auditability(bound_policy, context)
        yield from () if bound_policy.reading.reason else kinds.find_unresolved_rules(bound_policy, served)
        yield from find_redundant_bindings(bound_policy)
        for binding in bound_policy.bindings:
            yield from note_deleted_binding(binding)


def _check_compilation(bound: BoundPolicy) -> Iterator[Health]:
    for path, expression in bound.compiled.expressions():
        if expression.fault:
            yield Health(
                HealthKind.COMPILE, bound.policy.name, "", f"{path}: {expression.fault}", bound.policy.language
            )


def _check_auditability(bound: BoundPolicy, context: EvaluationContext) -> Iterator[Health]:
    if context.authorizer is None and Auditability.AUTHORIZER in bound.reading.classes:
        yield Health(HealthKind.NOT_AUDITABLE, bound.policy.name, "", _UNASKED, bound.policy.language)
    if bound.reading.reason:
        yield Health(HealthKind.NOT_AUDITABLE, bound.policy.name, "", bound.reading.reason, bound.policy.language)


def _check_params(bound: BoundPolicy, params: ParamSource) -> Iterator[Health]:
    if fault := explain_unserved(bound.policy, params):
        yield Health(HealthKind.PARAM_KIND, bound.policy.name, "", fault, bound.policy.language)
    kind = params.find_kind(bound.policy.param_kind) if bound.policy.param_kind else None
    for binding in bound.bindings if kind else ():
        if kind and binding.param_ref and (missing := _find_missing_param(binding.param_ref, kind, params)):
            detail = f"{missing}: {_describe_effect(binding.param_ref, bound)}"
            yield Health(HealthKind.PARAM_MISSING, bound.policy.name, binding.name, detail, bound.policy.language)


def _find_missing_param(reference: ParamRef, kind: Kind, params: ParamSource) -> str:
    """The missing param; an empty string if there is a param, or if that depends on the namespace of an object."""
    if kind.namespaced and not reference.namespace:
        return ""
    namespace = reference.namespace if kind.namespaced else ""
    place = f" in namespace {namespace}" if namespace else ""
    if reference.name:
        params_of_name: Iterable[Resource | None] = (params.get(kind, namespace, reference.name),)
        return (
            ""
            if any(params_of_name)
            else f"{kind.kind} {f'{namespace}/' if namespace else ''}{reference.name} does not exist"
        )
    selector = reference.selector
    if selector is None or selector.find_fault():
        return ""
    is_selected = any(selector.matches(param.labels) for param in params.list_all(kind, namespace))
    return "" if is_selected else f"no {kind.kind}{place} has the labels that it selects"


def _describe_effect(reference: ParamRef, bound: BoundPolicy) -> str:
    if reference.parameter_not_found_action != "Deny":
        return "the binding evaluates nothing"
    if bound.policy.failure_policy == "Ignore":
        return "an error for every object it matches, which failurePolicy Ignore lets pass"
    return "the binding denies every object it matches"


# Notes on policies and bindings that are being deleted, from their metadata.
#
# Source of truth: `metadata.deletionTimestamp`; the server evaluates an object until its last finalizer is gone.

_LEAVING = "it is being deleted, and the server evaluates it until it is gone"


def note_deleted_policy(policy: Policy) -> Iterator[Health]:
    """A note for a policy that is being deleted."""
    if _is_being_deleted(policy.manifest):
        yield Health(HealthKind.NOTE, policy.name, "", _LEAVING, policy.language)


def note_deleted_binding(binding: Binding) -> Iterator[Health]:
    """A note for a binding that is being deleted."""
    if _is_being_deleted(binding.manifest):
        yield Health(HealthKind.NOTE, binding.policy_name, binding.name, _LEAVING, binding.language)


def _is_being_deleted(manifest: JsonObject) -> bool:
    return dig(manifest, "metadata", "deletionTimestamp") is not None


# Bindings of one policy that are equal, or of which one covers the other.
#
# The matchResources and the params of a binding decide whether an object is evaluated, its actions decide the
# consequence.


def find_redundant_bindings(bound: BoundPolicy) -> Iterator[Health]:
    """Bindings that another binding makes redundant; of two equal bindings, the later by name."""
    real = [binding for binding in bound.bindings if not binding.assumed]
    for first, other in permutations(real, 2):
        if _are_equal(first, other, bound.policy) and first.name < other.name:
            detail = f"it equals binding {first.name}, so every object is evaluated twice"
            yield Health(HealthKind.DUPLICATE, bound.policy.name, other.name, detail, bound.policy.language)
        elif _covers(first, other, bound.policy) and not _are_equal(first, other, bound.policy):
            detail = f"binding {first.name} covers what it matches, with the same params and at least its actions"
            yield Health(HealthKind.SHADOWED, bound.policy.name, other.name, detail, bound.policy.language)


def _are_equal(first: Binding, other: Binding, policy: Policy) -> bool:
    return (
        _get_match(first) == _get_match(other)
        and set(first.actions) == set(other.actions)
        and _get_param_ref(first, policy) == _get_param_ref(other, policy)
    )


def _covers(first: Binding, other: Binding, policy: Policy) -> bool:
    """Return whether one binding covers the other. A narrower match can only be compared with an equal or an absent match."""
    wide = _get_match(first) is None or _get_match(first) == _get_match(other)
    return (
        wide
        and set(first.actions) >= set(other.actions)
        and _get_param_ref(first, policy) == _get_param_ref(other, policy)
    )


def _get_match(binding: Binding) -> MatchResources | None:
    """The match that narrows a binding, or None without one."""
    match = binding.match
    if match is None or match.rules or match.exclude_rules:
        return match
    return None if match.namespace_selector.empty and match.object_selector.empty else match


def _get_param_ref(binding: Binding, policy: Policy) -> ParamRef | None:
    """The reference to params; None for a policy without paramKind, which ignores the reference."""
    return binding.param_ref if policy.param_kind else None
