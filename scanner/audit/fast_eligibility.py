"""The policies that the fast path may evaluate, with their bindings and param."""

from __future__ import annotations

from typing import NamedTuple

from scanner.admission.compiled import Expression
from scanner.admission.context import EvaluationContext, Selection
from scanner.admission.dispatch import BoundPolicy, is_viewed, select
from scanner.admission.params import resolve
from scanner.audit.fast_policy import BindingChoice, reads_namespace
from scanner.audit.redact import reads_data
from scanner.errors import ConfigurationError
from scanner.model.policy import Binding, MatchResources, Operation
from scanner.model.resource import Kind, Resource


class Traits(NamedTuple):
    """The properties of a policy that are the same in every namespace.

    `plain`: the fast path may evaluate it; `everywhere`: its rules treat all namespaces alike.
    """

    plain: bool
    everywhere: bool
    reads_namespace: bool


def traits_of(bound: BoundPolicy, original: Kind, kind: Kind) -> Traits:
    """The properties of a policy and a kind that the fast path needs."""
    matches = (bound.policy.match, *(binding.match for binding in bound.bindings))
    selects = bool(bound.covered) or any(match is not None and not match.namespace_selector.empty for match in matches)
    plain = (kind.group, kind.plural) != ("", "namespaces") and _is_plain(bound, original, kind)
    return Traits(plain, not selects and bound.policy.param_kind is None, reads_namespace(bound.compiled))


def choice_of(
    bound: BoundPolicy, original: Kind, kind: Kind, namespace: str, context: EvaluationContext
) -> BindingChoice | None:
    """The bindings of a plain policy that match the objects of a kind in a namespace, with their operation and param.

    None if the bindings differ in the operation or in the param, have no param, or evaluate the objects in another version: then the
    fast path cannot treat all alike.
    """
    resource = Resource(kind, namespace, "", "", "", {})
    operations: set[Operation] = set()
    bindings: list[Binding] = []
    params: dict[tuple[str, str] | None, Resource | None] = {}
    for binding in bound.bindings:
        selections = (
            select(bound, binding, resource, original, operation, context) for operation in context.operations
        )
        selection = next((candidate for candidate in selections if candidate), None)
        if selection is not None and is_viewed(selection.matched, kind, original, context):
            return None
        if selection is None or selection.matched != kind:
            continue
        selected_params = _meant(bound, binding, selection, context)
        if not selected_params:
            return None
        operations.add(selection.target.operation)
        bindings.append(binding)
        params |= {(param.namespace, param.name) if param else None: param for param in selected_params}
    if len(operations) > 1 or len(params) > 1:
        return None
    operation = operations.pop() if operations else context.operations[0]
    return BindingChoice(operation, tuple(bindings), next(iter(params.values()), None))


def _meant(
    bound: BoundPolicy, binding: Binding, selection: Selection, context: EvaluationContext
) -> tuple[Resource | None, ...]:
    """The params of a binding, None for an evaluation without a param; empty after a configuration error or without a param."""
    try:
        return () if selection.fault else resolve(bound.policy, binding, selection.target.namespace, context.params)
    except ConfigurationError:
        return ()


def may_read_secret_data(policy: tuple[BoundPolicy, Kind]) -> bool:
    """Return whether a policy may read the data of the Secrets that it evaluates."""
    bound, _ = policy
    sees = any(reads_data(expression.paths, "object") for _, expression in bound.compiled.expressions())
    return sees or bound.evaluator.reads_whole_object


def _is_plain(bound: BoundPolicy, original: Kind, kind: Kind) -> bool:
    """Return whether the result of the policy depends only on the kind, namespace and content of an object."""
    compiled, policy = bound.compiled, bound.policy
    narrowings = (policy.match, *(binding.match for binding in bound.bindings))
    return (
        (bound.combination is None or original == kind)
        and bound.evaluator.fast_form(compiled, kind) is not None
        and not bound.reading.reason
        and not bound.namespace
        and all(_matches_every_object(match) for match in narrowings if match is not None)
        and all(expression.program is not None for _, expression in compiled.expressions())
        and not any(expression.reads("authorizer") for expression in compiled.evaluated())
        and not any(_differs(expression) for _, expression in compiled.conditions)
        and not any(expression.reads("namespaceObject") for expression in compiled.annotations)
    )


def _differs(condition: Expression) -> bool:
    """Return whether a match condition has other inputs than a validation."""
    return condition.reads("request") or condition.reads("namespaceObject")


def _matches_every_object(match: MatchResources) -> bool:
    names = any(rule.resource_names for rule in (*match.rules, *match.exclude_rules))
    return match.object_selector.empty and not names
