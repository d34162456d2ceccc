"""Evaluates one policy for one request with at most one param: variables, match conditions, checks, failure policy.

Source of truth: `validating.Validator.Validate`, `matchconditions.Matcher` and `cel.CompositedCompiler` of
kube-apiserver 1.36. An invocation ends in exactly one result per check: its validations and audit annotations, or
one for its match conditions after an error in them, or one for its configuration, or one for an exhausted budget.

Rules: `docs/semantics/evaluation.md#order`, `docs/semantics/evaluation.md#validations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import assert_never

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.cost_budget import (
    CONDITIONS,
    EXHAUSTED,
    RUNTIME,
    BudgetUse,
    CostBudget,
    EvaluationFault,
    run,
    run_all,
)
from scanner.admission.request import (
    Request,
    filter_namespace,
    make_activation,
    make_authorization,
    make_group_version_resource,
    make_request_map,
)
from scanner.admission.results import (
    NO_AUTHORIZER,
    decide_annotation,
    decide_validation,
    evaluate_validation,
    is_evaluable,
    make_error,
    skip_checks,
)
from scanner.model.outcome import (
    Check,
    CheckKind,
    CheckResult,
    Errored,
    Outcome,
    Skipped,
    SkipReason,
)
from scanner.model.policy import Validation
from scanner.model.resource import Resource

# Match conditions: whether they let the API server evaluate a policy for a request.
#
# Source of truth: `matchconditions.Matcher` of kube-apiserver 1.36.
#
# Rules: `docs/semantics/evaluation.md#match-conditions`.


def evaluate_conditions(compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
    """The results of the match conditions, which precede all checks; empty if all conditions are true."""
    if not compiled.conditions:
        return ()
    base = {**make_activation(compiled.policy, request, param), **make_authorization(request)}
    values = {**base, "request": make_condition_request(request)}
    return find_unmet_condition(compiled, values, request.budget_use, counts=compiled.must_count_cost(base))


def find_unmet_condition(
    compiled: CompiledPolicy, values: Mapping[str, object], budget_use: BudgetUse | None = None, *, counts: bool = False
) -> tuple[CheckResult, ...]:
    """The results of the match conditions for the given inputs, variables excluded; empty if all conditions are true."""
    verdict = _evaluate_conditions(compiled, values, budget_use, counts=counts)
    if isinstance(verdict, Skipped):
        return tuple(CheckResult(check, verdict) for check in compiled.checks)
    return () if verdict is None else (CheckResult(Check(CheckKind.CONDITIONS), verdict),)


def _evaluate_conditions(
    compiled: CompiledPolicy, values: Mapping[str, object], budget_use: BudgetUse | None, *, counts: bool
) -> Skipped | Errored | None:
    """None when all conditions are true. A false condition beats every error, but not an exhausted budget."""
    activation = compiled.make_activation(values, metered=counts)
    cost_budget = CostBudget(CONDITIONS, budget_use) if counts else None
    faults: dict[str, None] = {}
    undecided, unmet = "", ""
    for condition, expression in compiled.conditions:
        if not is_evaluable(expression, activation):
            undecided = undecided or f"match condition {condition.name} asks the authorizer"
            continue
        value = run(expression, activation, cost_budget)
        if isinstance(value, EvaluationFault):
            if value.ends:
                return make_error(compiled, value.text)
            faults[value.text] = None
        elif value is not True:
            unmet = unmet or condition.name
            # A counted evaluation goes on: an exhausted budget would beat the false condition.
            if not counts:
                break
    if unmet:
        return Skipped(SkipReason.CONDITION_FALSE, unmet)
    if undecided:
        return Skipped(SkipReason.NOT_AUDITABLE, undecided)
    if not faults:
        return None
    text = next(iter(faults)) if len(faults) == 1 else f"[{', '.join(faults)}]"
    return make_error(compiled, text)


def make_condition_request(request: Request) -> dict[str, object]:
    """`request` for match conditions: with the resource that the request names."""
    return {**make_request_map(request), "resource": make_group_version_resource(request.original)}


def evaluate(compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
    """The results of all checks of a matched invocation, in the order of `compiled.checks`, as the API server decides.

    A false match condition skips every check; a failing match condition has the only result. Raises AuthorizerFailed.
    """
    if compiled.excess:
        return skip_checks(compiled)
    if stopped := evaluate_conditions(compiled, request, param):
        return stopped
    base = {**make_activation(compiled.policy, request, param), "namespaceObject": request.namespace_object}
    if compiled.must_count_cost(base):
        return _evaluate_within_budget(compiled, request, base)
    filtered, messages = _make_visible(request, base)
    return evaluate_uncounted(compiled, filtered, messages, base)


def evaluate_uncounted(
    compiled: CompiledPolicy,
    values: Mapping[str, object],
    seen_by_messages: Mapping[str, object],
    seen_by_annotations: Mapping[str, object],
) -> tuple[CheckResult, ...]:
    """The results of all checks without counting, for costs far from the limits.

    `values`, `seen_by_messages` and `seen_by_annotations` are the values that expressions may name, without the variables. Where
    they are the same mapping, the expressions share the variables, too.
    """
    filtered = compiled.make_activation(values)
    messages = filtered if seen_by_messages is values else compiled.make_activation(seen_by_messages)
    outcomes = [evaluate_validation(compiled, validation, filtered, messages) for validation in compiled.validations]
    if compiled.annotations:
        full = filtered if seen_by_annotations is values else compiled.make_activation(seen_by_annotations)
        outcomes += [
            decide_annotation(compiled, expression, run(expression, full)) for expression in compiled.annotations
        ]
    return tuple(map(CheckResult, compiled.checks, outcomes))


def _make_visible(request: Request, base: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The inputs of validations, and those of their messages."""
    visible = {**base, "namespaceObject": filter_namespace(request.namespace_object)}
    return {**visible, **make_authorization(request)}, visible


def _evaluate_within_budget(
    compiled: CompiledPolicy, request: Request, base: Mapping[str, object]
) -> tuple[CheckResult, ...]:
    """Evaluate and count: validations and then all their messages share one budget, annotations have another."""
    filtered, visible = (
        compiled.make_activation(values_seen, metered=True) for values_seen in _make_visible(request, base)
    )
    cost_budget = CostBudget(RUNTIME, request.budget_use)
    evaluable = [expression for _, expression, _ in compiled.validations if is_evaluable(expression, filtered)]
    values = run_all(evaluable, filtered, cost_budget)
    if isinstance(values, EvaluationFault):
        return _fail_exhausted(compiled)
    texts = run_all((message for _, _, message in compiled.validations), visible, cost_budget)
    annotations = run_all(
        compiled.annotations, compiled.make_activation(base, metered=True), CostBudget(RUNTIME, request.budget_use)
    )
    if isinstance(annotations, EvaluationFault):
        return _fail_exhausted(compiled)
    results = iter(values)
    outcomes = [
        *(
            _count_validation(
                compiled, validation, next(results), texts if isinstance(texts, EvaluationFault) else texts[index]
            )
            if is_evaluable(validation[1], filtered)
            else NO_AUTHORIZER
            for index, validation in enumerate(compiled.validations)
        ),
        *map(partial(decide_annotation, compiled), compiled.annotations, annotations),
    ]
    return tuple(map(CheckResult, compiled.checks, outcomes))


def _fail_exhausted(compiled: CompiledPolicy) -> tuple[CheckResult, ...]:
    """The single result of an invocation that exhausted its budget: it replaces all others."""
    return (CheckResult(Check(CheckKind.CONFIGURATION), make_error(compiled, EXHAUSTED)),)


def _count_validation(
    compiled: CompiledPolicy,
    compiled_validation: tuple[Validation, Expression, Expression | None],
    value: cel.Value | EvaluationFault,
    text: cel.Value | EvaluationFault,
) -> Outcome:
    """The outcome of a validation; if the messages exhausted the budget, a passing validation is an error too."""
    if not isinstance(value, EvaluationFault) and isinstance(text, EvaluationFault) and text.ends:
        return make_error(compiled, f"failed messageExpression: {text.text}")
    return decide_validation(compiled, compiled_validation[0], value, lambda: text)


def make_inputs(compiled: CompiledPolicy, request: Request, param: Resource | None) -> dict[str, object]:
    """A fresh activation with all that a mutation may name: the whole namespace, the authorizer, variables of its own."""
    base = make_activation(compiled.policy, request, param)
    full = {**base, "namespaceObject": request.namespace_object, **make_authorization(request)}
    return compiled.make_activation(full, metered=compiled.must_count_cost(full))


def make_check_inputs(
    compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
) -> dict[str, object]:
    """The inputs of a check's expressions, in a fresh activation: to evaluate them again without counting."""
    base = make_activation(compiled.policy, request, param)
    whole = {**base, "namespaceObject": request.namespace_object}
    match check.kind:
        case CheckKind.CONDITIONS:
            return compiled.make_activation(
                {**base, **make_authorization(request), "request": make_condition_request(request)}
            )
        case CheckKind.VALIDATION:
            return compiled.make_activation(_make_visible(request, whole)[0])
        case CheckKind.AUDIT_ANNOTATION:
            return compiled.make_activation(whole)
        case CheckKind.MUTATION | CheckKind.CONFIGURATION:
            return compiled.make_activation({**whole, **make_authorization(request)})
        case _ as never:
            assert_never(never)
