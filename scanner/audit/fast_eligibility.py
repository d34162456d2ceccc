"""Which policies the fast path may evaluate, and for which bindings and param."""

from __future__ import annotations

from typing import NamedTuple

from scanner.admission.compiled import Expression
from scanner.admission.context import EvaluationContext, Selection
from scanner.admission.dispatch import BoundPolicy, select
from scanner.admission.evaluate import evaluate
from scanner.admission.params import resolve
from scanner.audit.fast_policy import BindingChoice, evaluated_expressions, reads_namespace
from scanner.audit.redact import reads_data
from scanner.errors import ConfigurationError
from scanner.model.policy import Binding, MatchResources, Operation
from scanner.model.resource import Kind, Resource
from scanner.policies.kyverno.decide import Decision
from scanner.policies.mutating.bind import Mutator
from scanner.policies.validating.wrapped import WrappedEvaluator


class Traits(NamedTuple):
    """What is the same of a policy in every namespace.

    `plain`: it has a quick way; `everywhere`: by its rules all namespaces are alike.
    """

    plain: bool
    everywhere: bool
    reads_namespace: bool


def traits_of(bound: BoundPolicy, kind: Kind) -> Traits:
    """Return what the fast path has to know of a policy and a kind."""
    matches = (bound.policy.match, *(binding.match for binding in bound.bindings))
    selects = any(match is not None and not match.namespace_selector.empty for match in matches)
    plain = (kind.group, kind.plural) != ("", "namespaces") and _is_plain(bound, kind)
    return Traits(plain, not selects and bound.policy.param_kind is None, reads_namespace(bound.compiled))


def choice_of(
    bound: BoundPolicy, original: Kind, kind: Kind, namespace: str, world: EvaluationContext
) -> BindingChoice | None:
    """How a plain policy looks at the objects of a kind in a namespace; None unless at all of them alike, or at none."""
    resource = Resource(kind, namespace, "", "", "", {})
    operations: set[Operation] = set()
    bindings: list[Binding] = []
    params: dict[tuple[str, str] | None, Resource | None] = {}
    for binding in bound.bindings:
        found = (select(bound.policy, binding, resource, original, operation, world) for operation in world.operations)
        selection = next((one for one in found if one), None)
        if selection is None or selection.matched != kind:
            continue
        meant = _meant(bound, binding, selection, world)
        if not meant:
            return None
        operations.add(selection.target.operation)
        bindings.append(binding)
        params |= {(one.namespace, one.name) if one else None: one for one in meant}
    if len(operations) > 1 or len(params) > 1:
        return None
    operation = operations.pop() if operations else world.operations[0]
    return BindingChoice(operation, tuple(bindings), next(iter(params.values()), None))


def _meant(
    bound: BoundPolicy, binding: Binding, selection: Selection, world: EvaluationContext
) -> tuple[Resource | None, ...]:
    """The params of a binding, None for an evaluation without one; nothing where something is wrong, or none is found."""
    try:
        return () if selection.fault else resolve(bound.policy, binding, selection.target.namespace, world.params)
    except ConfigurationError:
        return ()


def sees_data(policy: tuple[BoundPolicy, Kind]) -> bool:
    """Whether a policy may see the data of Secrets. Mutations see all there is, and so may exceptions."""
    bound, _ = policy
    plain = not isinstance(bound.decide, Decision) or bound.decide.is_plain()
    sees = any(reads_data(expression.paths, "object") for _, expression in bound.compiled.expressions())
    return sees or bool(bound.policy.mutations) or not plain


def _is_plain(bound: BoundPolicy, kind: Kind) -> bool:
    """Whether nothing about an object but its kind, namespace and content decides what the policy makes of it."""
    compiled, policy = bound.compiled, bound.policy
    narrowings = (policy.match, *(binding.match for binding in bound.bindings))
    return (
        (is_evaluated_alike(bound, kind) or _is_plain_kyverno(bound) or _is_plain_mutator(bound, kind))
        and not bound.reading.reason
        and not bound.namespace
        and not (policy.param_kind and policy.mutations)
        and all(_looks_at_all(match) for match in narrowings if match is not None)
        and all(expression.program is not None for _, expression in compiled.expressions())
        and not any(expression.reads("authorizer") for expression in evaluated_expressions(compiled))
        and not any(_differs(expression) for _, expression in compiled.conditions)
        and not any(expression.reads("namespaceObject") for expression in compiled.annotations)
    )


def is_evaluated_alike(bound: BoundPolicy, kind: Kind) -> bool:
    """Whether `evaluate` alone decides requests for objects of a kind."""
    if isinstance(bound.decide, WrappedEvaluator):
        return not bound.decide.differs(bound.compiled, kind)
    return bound.decide is evaluate


def _is_plain_kyverno(bound: BoundPolicy) -> bool:
    """Whether nothing is excepted from a policy of Kyverno's; its request has the object in it, and is as large."""
    asked = evaluated_expressions(bound.compiled)
    decides = isinstance(bound.decide, Decision) and bound.decide.is_plain()
    return decides and not any(("request",) in expression.paths for expression in asked)


def _is_plain_mutator(bound: BoundPolicy, kind: Kind) -> bool:
    """Whether it can be told of every mutation that it leaves an object as it is."""
    return isinstance(bound.decide, Mutator) and len(bound.decide.tests(bound.compiled, kind)) > 0


def _differs(condition: Expression) -> bool:
    """Whether a match condition sees something else than a validation does."""
    return condition.reads("request") or condition.reads("namespaceObject")


def _looks_at_all(match: MatchResources) -> bool:
    names = any(rule.resource_names for rule in (*match.rules, *match.exclude_rules))
    return match.object_selector.empty and not names
