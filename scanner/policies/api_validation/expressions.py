"""Compiles the expressions of a policy as the API does when a user writes it.

The API compiles match conditions, audit annotations and mutations without the blanks around them, and match conditions without
`variables`: an engine would find the variables, but the API rejects such a condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scanner import cel
from scanner.admission.compiled import VALIDATING, Expression, Plugin, compile_expression, compile_policy
from scanner.cel.values.text import quote
from scanner.model.policy import NamedExpression, Policy
from scanner.model.release import Minor
from scanner.policies.api_validation.fields import Faults


def make_compile_check(policy: Policy, rules: Minor, plugin: Plugin = VALIDATING) -> Faults:
    """A function from the path of an expression to its compile error, empty for none, by the rules of a release."""
    compiled = compile_policy(_trim(policy), rules, plugin, new=True)
    shown_texts = {
        f"spec.auditAnnotations[{index}].valueExpression": annotation.value_expression
        for index, annotation in enumerate(policy.audit_annotations)
    }
    errors = {
        path: _find_fault(path, expression, shown_texts.get(path, expression.text))
        for path, expression in compiled.expressions()
    }
    errors |= {
        path: _find_fault(path, expression, expression.text) for path, expression in _compile_conditions(policy, rules)
    }
    return lambda path: errors.get(path, "")


def _trim(policy: Policy) -> Policy:
    return replace(
        policy,
        match_conditions=tuple(
            NamedExpression(condition.name, condition.expression.strip()) for condition in policy.match_conditions
        ),
        audit_annotations=tuple(
            replace(annotation, value_expression=annotation.value_expression.strip())
            for annotation in policy.audit_annotations
        ),
        mutations=tuple(replace(mutation, expression=mutation.expression.strip()) for mutation in policy.mutations),
    )


def _compile_conditions(policy: Policy, rules: Minor) -> Iterator[tuple[str, Expression]]:
    """Match conditions, in an environment without variables."""
    environment = cel.Environment(version=rules, compatible=(rules[0], rules[1] - 1))
    environment = environment.remove_variable("variables").extend(cel.AUTHORIZATION).require_results(cel.BOOL)
    environment = environment.extend(cel.PARAMS) if policy.param_kind else environment
    for index, condition in enumerate(policy.match_conditions):
        expression = compile_expression(condition.expression.strip(), environment, {})
        yield f"spec.matchConditions[{index}].expression", expression


def _find_fault(path: str, expression: Expression, shown: str) -> str:
    if expression.fault.startswith("program instantiation failed: "):
        return f"{path}: Internal error: {expression.fault}"
    return f"{path}: Invalid value: {quote(shown)}: {expression.fault}" if expression.fault else ""
