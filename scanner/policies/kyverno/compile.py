"""Compiles a policy's expressions in Kyverno's environment, with Kyverno's messages for those that do not compile.

Source of truth: `pkg/cel/policies/vpol/compiler` of Kyverno 1.16 to 1.19. A policy's match conditions cannot read variables, a variable
can read those before it with their exact types, and Kyverno rejects an expression whose type is dyn. One fault, an exception's
included, makes the whole policy unusable.

Rules: `docs/semantics/kyverno.md#evaluation-by-kyverno`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from scanner import cel
from scanner.admission.compiled import (
    Allowance,
    CompiledPolicy,
    Expression,
    compile_expression,
    leave_uncompiled,
    list_checks,
)
from scanner.admission.cost_budget import BudgetGroup, CostBounds
from scanner.cel.values.text import quote
from scanner.model.policy import NamedExpression, Policy
from scanner.model.release import Minor
from scanner.policies.kyverno import libraries
from scanner.policies.kyverno.exceptions import PolicyException
from scanner.policies.kyverno.libraries import syntax

_OPEN_ROOTS = frozenset({"exceptions", "json", "yaml", syntax.NOW})
_OBJECT_ROOTS = frozenset({"resource"})
_OWN_ERRORS = {"http": "request failed: ", "image": "failed to get image data: "}
_NO_VARIABLES: Mapping[str, Expression] = {}


@dataclass(frozen=True, slots=True)
class CompiledException:
    """An exception with its conditions compiled for one policy."""

    exception: PolicyException
    conditions: tuple[tuple[NamedExpression, Expression], ...]


def compile_policy(policy: Policy, release: Minor, *, namespaced: bool) -> CompiledPolicy:
    """Compile one variant; an expression that does not compile is kept as a fault.

    A policy whose expressions expand to too many nodes has an `excess`, and no program.
    """
    try:
        return _compiled_variant(policy, libraries.environment(release, namespaced=namespaced))
    except cel.ExpressionTooLarge as why:
        return leave_uncompiled(policy, why)


def _compiled_variant(policy: Policy, environment: cel.Environment) -> CompiledPolicy:
    allowance = Allowance()
    conditions = _conditions(policy.match_conditions, environment)
    variables: dict[str, Expression] = {}
    for variable in policy.variables:
        expression = allowance.take(_compiled(variable.expression, environment, {}))
        variables[variable.name] = expression
        environment = replace(environment, composed=environment.composed.declare(variable.name, _result(expression)))
    compiled = CompiledPolicy(
        policy=policy,
        variables=variables,
        conditions=conditions,
        validations=tuple(
            (
                validation,
                allowance.take(_compiled(validation.expression, environment, variables, cel.BOOL)),
                allowance.take(_compiled(validation.message_expression, environment, variables, cel.STRING))
                if validation.message_expression
                else None,
            )
            for validation in policy.validations
        ),
        annotations=tuple(
            allowance.take(_compiled(annotation.value_expression, environment, variables, cel.STRING, cel.NULL))
            for annotation in policy.audit_annotations
        ),
        checks=list_checks(policy),
    )
    return replace(
        compiled,
        cost_bounds=cost_bounds(compiled),
        open_roots=_OPEN_ROOTS,
        object_roots=_OBJECT_ROOTS,
        own_errors=_OWN_ERRORS,
    )


def cost_bounds(compiled: CompiledPolicy, *further: BudgetGroup) -> CostBounds:
    """The upper bounds of the cost: each expression has its own limit, and a policy has none. `further` groups have others."""
    programs = [expression.program for _, expression in compiled.expressions() if expression.program is not None]
    groups = [BudgetGroup(cel.PER_CALL_LIMIT, (program,)) for program in programs]
    return CostBounds(compiled.variables, [*groups, *further])


def compile_exception(
    exception: PolicyException, policy: CompiledPolicy, release: Minor, *, namespaced: bool
) -> CompiledException:
    """Compile the match conditions of an exception for one policy.

    `compileForKubernetes` compiles them last, after it declared the policy's variables; `evaluateWithData` gives them no value
    for `variables`. So `variables.x` compiles, and is an error in every evaluation.
    """
    environment = libraries.environment(release, namespaced=namespaced)
    for name, variable in policy.variables.items():
        environment = replace(environment, composed=environment.composed.declare(name, _result(variable)))
    return CompiledException(exception, _conditions(exception.conditions, environment))


def _conditions(
    conditions: tuple[NamedExpression, ...], environment: cel.Environment
) -> tuple[tuple[NamedExpression, Expression], ...]:
    """Compile the match conditions of a policy or an exception."""
    return tuple(
        (condition, _compiled(condition.expression, environment, _NO_VARIABLES, cel.BOOL)) for condition in conditions
    )


def _result(expression: Expression) -> cel.Type:
    return expression.program.result_type if expression.program else cel.DYN


def _compiled(
    text: str, environment: cel.Environment, variables: Mapping[str, Expression], *results: cel.Type
) -> Expression:
    expression = compile_expression(text, environment, variables)
    program = expression.program
    if program is None or not results or program.result_type in results:
        return expression
    names = " or ".join(type_.name for type_ in results)
    wanted = f"of type {names}" if len(results) == 1 else f"either of type {names}"
    return Expression(text, None, f"output is expected to be {wanted}")


def fault(name: str, compiled: CompiledPolicy, exceptions: tuple[CompiledException, ...]) -> str:
    """The reason why Kyverno cannot use a policy, or an empty string."""
    faults = [*_faults(compiled), *(text for exception in exceptions for text in _exception_faults(exception))]
    return f"failed to compile policy {name} ({', '.join(faults)})" if faults else ""


def _faults(compiled: CompiledPolicy) -> Iterator[str]:
    for path, expression in compiled.expressions():
        if expression.fault:
            yield f"{path}: {_described(expression)}"


def _exception_faults(compiled: CompiledException) -> Iterator[str]:
    for index, (_, expression) in enumerate(compiled.conditions):
        if expression.fault:
            where = f"policy exception {compiled.exception.key}: spec.matchConditions[{index}].expression"
            yield f"{where}: {_described(expression)}"


def _described(expression: Expression) -> str:
    """The fault in the words of Kyverno, which puts nothing before the compiler's own."""
    return f"Invalid value: {quote(expression.text)}: {own_words(expression.fault)}"


def own_words(fault_text: str) -> str:
    """The text of a compile error without Kubernetes' introduction."""
    return fault_text.removeprefix("compilation failed: ").removeprefix("program instantiation failed: ")
