"""The expressions that decide a check, and the inputs of their evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scanner import cel
from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.model.outcome import Check

Evaluation = tuple[cel.Program, Mapping[str, object]]


def evaluations(invocation_result: InvocationResult, check: Check, bound: BoundPolicy) -> Iterator[Evaluation]:
    """The programs that decide a check, each with new inputs by name; none if the result has no request."""
    if invocation_result.request is None:
        return
    for expression in bound.compiled.deciding(check):
        if expression.program is not None:
            yield expression.program, _inputs(invocation_result, check, bound)


def _inputs(invocation_result: InvocationResult, check: Check, bound: BoundPolicy) -> Mapping[str, object]:
    request, compiled = invocation_result.request, bound.compiled
    if request is None:
        return {}
    return bound.evaluator.inputs(compiled, request, invocation_result.invocation.param, check)
