"""Policy health: what is wrong with policies and bindings, whatever the objects are like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from scanner.model.policy import ParamRef
from scanner.model.reading import Auditability
from scanner.model.resource import Kind
from scanner.model.scan import Coverage, CoverageState, Health, HealthKind
from scanner.params import ParamSource, unserved
from scanner.plan import served
from scanner.policies.validating import Bound, World

_UNASKED = (
    "expressions that ask the authorizer are not auditable, because it may not be asked: grant create on "
    "subjectaccessreviews.authorization.k8s.io to the identity that scans a cluster, or name a requester with --as-user "
    "where the server does not tell who that is; files have no authorizer"
)


def health_before(bound: Iterable[Bound], kinds: tuple[Kind, ...], world: World) -> Iterator[Health]:
    """What can be said before any object is seen."""
    params = world.params
    for entry in bound:
        name = entry.policy.name
        for path, expression in entry.compiled.expressions():
            if expression.fault:
                yield Health(HealthKind.COMPILE, name, "", f"{path}: {expression.fault}")
        if fault := unserved(entry.policy, params):
            yield Health(HealthKind.PARAM_KIND, name, "", fault)
        else:
            yield from _missing_params(entry, params)
        if world.authorizer is None and Auditability.AUTHORIZER in entry.reading.classes:
            yield Health(HealthKind.NOT_AUDITABLE, name, "", _UNASKED)
        if entry.reading.reason:
            yield Health(HealthKind.NOT_AUDITABLE, name, "", entry.reading.reason)
        elif not served(entry.policy, kinds):
            yield Health(HealthKind.NO_KIND, name, "", "its rules match no kind that the cluster serves")


def _missing_params(entry: Bound, params: ParamSource) -> Iterator[Health]:
    kind = params.kind(entry.policy.param_kind) if entry.policy.param_kind else None
    if kind is None:
        return
    for binding in entry.bindings:
        reference = binding.param_ref
        if reference is None or not reference.name or (kind.namespaced and not reference.namespace):
            continue
        if params.get(kind, reference.namespace if kind.namespaced else "", reference.name) is None:
            where = f"{reference.namespace}/{reference.name}" if reference.namespace else reference.name
            detail = f"{kind.kind} {where} does not exist: {_effect(reference, entry)}"
            yield Health(HealthKind.PARAM_MISSING, entry.policy.name, binding.name, detail)


def _effect(reference: ParamRef, entry: Bound) -> str:
    if reference.parameter_not_found_action != "Deny":
        return "the binding evaluates nothing"
    if entry.policy.failure_policy == "Ignore":
        return "an error for every object it matches, which failurePolicy Ignore lets pass"
    return "the binding denies every object it matches"


def health_after(
    bound: Iterable[Bound], matched: Mapping[tuple[str, str], int], coverage: Iterable[Coverage]
) -> Iterator[Health]:
    """What only the objects tell: bindings in force that matched none of them."""
    complete = all(entry.state is CoverageState.LISTED for entry in coverage)
    for entry in bound:
        if entry.reading.reason:
            continue
        for binding in entry.bindings:
            if not matched.get((entry.policy.name, binding.name)):
                detail = "it matched no object" if complete else "it matched no object of those that were listed"
                yield Health(HealthKind.NO_OBJECT, entry.policy.name, binding.name, detail)
