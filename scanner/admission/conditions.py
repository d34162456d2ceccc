"""Match conditions: whether they let the API server evaluate a policy for a request.

Source of truth: `matchconditions.Matcher` of kube-apiserver 1.36.

Rules: `docs/semantics/evaluation.md#match-conditions`.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.cost_budget import (
    CONDITIONS,
    BudgetUse,
    CostBudget,
    Fault,
    run,
)
from scanner.admission.request import Request, activation_of, authorization, group_version_resource, request_map
from scanner.admission.results import errored, is_evaluable
from scanner.model.outcome import (
    Check,
    CheckKind,
    CheckResult,
    Errored,
    Skipped,
    SkipReason,
)
from scanner.model.resource import Resource


def before_checks(compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
    """The results of the match conditions, which precede all checks; empty if all conditions are true."""
    if not compiled.conditions:
        return ()
    base = {**activation_of(compiled.policy, request, param), **authorization(request)}
    seen = {**base, "request": request_of_conditions(request)}
    return unmet(compiled, seen, request.budget_use, counts=compiled.has_to_count(base))


def unmet(
    compiled: CompiledPolicy, seen: Mapping[str, object], budget_use: BudgetUse | None = None, *, counts: bool = False
) -> tuple[CheckResult, ...]:
    """The results of the match conditions for the given inputs, variables excluded; empty if all conditions are true."""
    verdict = _conditions(compiled, seen, budget_use, counts=counts)
    if isinstance(verdict, Skipped):
        return tuple(CheckResult(check, verdict) for check in compiled.checks)
    return () if verdict is None else (CheckResult(Check(CheckKind.CONDITIONS), verdict),)


def _conditions(
    compiled: CompiledPolicy, seen: Mapping[str, object], budget_use: BudgetUse | None, *, counts: bool
) -> Skipped | Errored | None:
    """None when all conditions are true. A false condition beats every error, but not an exhausted budget."""
    activation = compiled.activation(seen, metered=counts)
    cost_budget = CostBudget(CONDITIONS, budget_use) if counts else None
    faults: dict[str, None] = {}
    undecided, unmet = "", ""
    for condition, expression in compiled.conditions:
        if not is_evaluable(expression, activation):
            undecided = undecided or f"match condition {condition.name} asks the authorizer"
            continue
        value = run(expression, activation, cost_budget)
        if isinstance(value, Fault):
            if value.ends:
                return errored(compiled, value.text)
            faults[value.text] = None
        elif value is not True:
            unmet = unmet or condition.name
            if not counts:
                break
    if unmet:
        return Skipped(SkipReason.CONDITION_FALSE, unmet)
    if undecided:
        return Skipped(SkipReason.NOT_AUDITABLE, undecided)
    if not faults:
        return None
    text = next(iter(faults)) if len(faults) == 1 else f"[{', '.join(faults)}]"
    return errored(compiled, text)


def request_of_conditions(request: Request) -> dict[str, object]:
    """`request` for match conditions: with the resource that the request names."""
    return {**request_map(request), "resource": group_version_resource(request.original)}
