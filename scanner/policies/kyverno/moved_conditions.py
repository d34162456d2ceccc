"""Evaluates the match conditions that Kyverno moves into its webhook: the API server evaluates them before it calls Kyverno.

Source of truth: `ShouldCallHook` of `plugin/webhook/generic` and `matchconditions.Matcher` of kube-apiserver 1.36. An object that the
request does not have is null, there are no variables, and no Namespace. An error refuses the request with any actions and exceptions
of the policy, unless failurePolicy ignores it; then Kyverno is not called. Kyverno evaluates the conditions again, with its own
values.

Rules: `docs/semantics/kyverno.md#kyvernos-webhooks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msgspec import Struct

from scanner.admission.compiled import CompiledPolicy, Plugin, compile_policy
from scanner.admission.cost_budget import CONDITIONS, BudgetGroup
from scanner.admission.evaluate import find_unmet_condition, make_condition_request
from scanner.admission.evaluator import Evaluator, FastForm, OwnForm
from scanner.admission.match import MatchTarget, applies
from scanner.admission.request import Request, make_authorization
from scanner.cel import Program
from scanner.model.json import dig, text_map
from scanner.model.outcome import Check, CheckKind, CheckResult, Errored
from scanner.model.policy import MatchResources, NamedExpression
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.policies.kyverno.registration import MovedCondition

_WEBHOOK: Final = Plugin("Forbidden", 403, always_denies=True, declares_variables=False)


def compile_conditions(form: CompiledPolicy, conditions: tuple[MovedCondition, ...], rules: Minor) -> CompiledPolicy:
    """The conditions in a webhook, compiled by the API server of a Kubernetes release, with the checks of a form of the policy."""
    alone = replace(
        form.policy,
        match_conditions=tuple(NamedExpression(condition.name, condition.expression) for condition in conditions),
        variables=(),
        validations=(),
        audit_annotations=(),
    )
    return replace(compile_policy(alone, rules, _WEBHOOK), checks=form.checks)


def budget_group(conditions: CompiledPolicy) -> BudgetGroup:
    """The budget that the conditions in a webhook share, with their programs."""
    return BudgetGroup(CONDITIONS, _programs(conditions))


def _programs(conditions: CompiledPolicy) -> tuple[Program, ...]:
    return tuple(expression.program for _, expression in conditions.conditions if expression.program is not None)


class Beyond(Struct, frozen=True):
    """The part of a policy's constraints that its webhook does not have: Kyverno alone decides by them.

    `match` are the constraints of the policy, `namespace` is that of a namespaced policy.
    """

    match: MatchResources
    namespace: str

    def includes(self, request: Request) -> bool:
        """Return whether a request on which the webhook was called is one that the policy evaluates."""
        target = MatchTarget(
            kind=request.matched,
            operation=request.operation,
            name=request.resource.name,
            namespace=request.namespace,
            labels=request.resource.labels,
            namespace_labels=text_map(dig(request.namespace_object, "metadata", "labels")),
        )
        return self.namespace in ("", request.namespace) and applies(self.match, target) is not None


class MovedConditions(Struct, frozen=True):
    """The evaluation of a policy whose webhook has match conditions. Satisfies Evaluator.

    `conditions` are those in the webhook, `own` is the evaluation by Kyverno. `beyond` is None if Kyverno evaluates every request on
    which its webhook is called.
    """

    conditions: CompiledPolicy
    own: Evaluator
    beyond: Beyond | None = None

    @property
    def reads_whole_object(self) -> bool:
        """See Evaluator: the conditions are among the policy's own."""
        return self.own.reads_whole_object

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """See Evaluator: an error refuses a request also if Kyverno would not evaluate it."""
        if compiled.excess:
            return self.own.evaluate(compiled, request, param)
        stopped = self._stopped(request)
        is_evaluated = self.beyond is None or self.beyond.includes(request)
        if is_evaluated:
            return stopped or self.own.evaluate(compiled, request, param)
        return stopped if any(map(_refuses, stopped)) else ()

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> Mapping[str, object]:
        """See Evaluator: for an error of the conditions in the webhook, those of the API server."""
        if check.kind is CheckKind.CONDITIONS and self._stopped(request):
            return self.conditions.make_activation(_values(request))
        return self.own.inputs(compiled, request, param, check)

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """See Evaluator: conditions that read only the object have the same values in the API server and in Kyverno."""
        form = self.own.fast_form(compiled, kind)
        paths = {path[0] for _, expression in self.conditions.conditions for path in expression.paths}
        if form is None or form.own is None or self.beyond is not None or paths - {"object"}:
            return None
        programs = _programs(self.conditions)

        def passes(inputs: Mapping[str, object]) -> bool:
            return all(program.evaluate(inputs) is True for program in programs)

        own = form.own

        def check_results(compiled: CompiledPolicy, inputs: Mapping[str, object]) -> tuple[CheckResult, ...]:
            stopped = find_unmet_condition(self.conditions, inputs)
            return _refused(stopped) or own.check_results(compiled, inputs)

        return FastForm((*form.tests, passes), OwnForm(own.inputs, check_results))

    def _stopped(self, request: Request) -> tuple[CheckResult, ...]:
        """The results of a request on which the webhook is not called; empty if it is called."""
        values = _values(request)
        counts = self.conditions.must_count_cost(values)
        return _refused(find_unmet_condition(self.conditions, values, request.budget_use, counts=counts))


def _values(request: Request) -> dict[str, object]:
    """The values of the conditions in a webhook; there is no Namespace."""
    deletes = request.operation == "DELETE"
    return {
        "object": None if deletes else request.resource.body,
        "oldObject": None if request.operation == "CREATE" else request.old_body,
        "request": make_condition_request(request),
        "namespaceObject": None,
        **make_authorization(request),
    }


def _refused(results: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    """The results with the reason of the API server in errors."""
    return tuple(
        result._replace(outcome=replace(result.outcome, reason="Forbidden"))
        if isinstance(result.outcome, Errored)
        else result
        for result in results
    )


def _refuses(result: CheckResult) -> bool:
    return isinstance(result.outcome, Errored) and result.outcome.always
