"""Which expressions an outcome speaks of, and what they see: as it was when they were judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scanner import cel
from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.admission.evaluate import inputs_of
from scanner.model.outcome import Check
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.request import with_variables

Asked = tuple[cel.Program, Mapping[str, object]]


def asked(invocation_result: InvocationResult, check: Check, bound: BoundPolicy) -> Iterator[Asked]:
    """The programs behind a check with fresh inputs; none where nothing was asked."""
    if invocation_result.request is None:
        return
    for expression in bound.compiled.deciding(check):
        if expression.program is not None:
            yield expression.program, _inputs(invocation_result, check, bound)


def _inputs(invocation_result: InvocationResult, check: Check, bound: BoundPolicy) -> Mapping[str, object]:
    request, compiled = invocation_result.request, bound.compiled
    if request is None:
        return {}
    if isinstance(bound.decide, Decision):
        return with_variables(compiled, bound.decide.inputs(request))
    return inputs_of(compiled, request, invocation_result.invocation.param, check)
