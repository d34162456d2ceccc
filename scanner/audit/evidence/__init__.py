"""The evidence of a finding: the values that decided it, from a second evaluation while the object is in memory.

Only failed checks are evaluated again, so passes cost nothing. An explanation that fails or does not reproduce the verdict is
dropped: the verdict stands without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from scanner import cel
from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.audit.evidence.cache import CachedEvidence, EvidenceCache
from scanner.audit.evidence.excerpt import deciding_trail, excerpt
from scanner.audit.evidence.inputs import evaluations
from scanner.audit.evidence.redaction import WITHHELD, EvidenceRedaction
from scanner.cel.stack import with_room
from scanner.model.evidence import NO_EVIDENCE, Evidence, Reason
from scanner.model.outcome import Check, CheckResult, Errored, Violated

MOST = 8
"""Reasons that a finding keeps."""
_CACHE = EvidenceCache()
_OUT_OF_COST = ("operation cancelled", "operation interrupted")


def evidence(invocation_result: InvocationResult, check_result: CheckResult, bound: BoundPolicy) -> Evidence:
    """The reasons of a violation or an error, at most `MOST`, without secrets.

    None for other outcomes, after an exceeded cost limit, and if a second evaluation has another result. Never raises.
    """
    if not isinstance(check_result.outcome, Violated | Errored):
        return NO_EVIDENCE
    try:
        key = _CACHE.key(invocation_result, check_result, bound.compiled)
        cached = None if key is None else _CACHE.get(key)
        if cached is None:
            check, outcome = check_result.check, check_result.outcome
            cached = with_room(lambda: _evidence(invocation_result, check, outcome, bound))
            if key is not None:
                _CACHE.keep(key, cached)
        text = excerpt(invocation_result, cached.trail)
        return replace(cached.evidence, excerpt=text) if text else cached.evidence
    except Exception as error:  # noqa: BLE001 - a verdict is not lost because it cannot be explained
        why = f"it could not be explained: internal error ({type(error).__name__}); please report it"
        return Evidence((Reason("", why, erred=True),))


def _evidence(
    invocation_result: InvocationResult, check: Check, outcome: Violated | Errored, bound: BoundPolicy
) -> CachedEvidence:
    if any(text in outcome.message for text in _OUT_OF_COST):
        return CachedEvidence(NO_EVIDENCE, ())
    explanations = list(_explanations(invocation_result, check, outcome, bound))
    redaction = EvidenceRedaction(invocation_result, bound.compiled)
    reasons = list(
        dict.fromkeys(redaction.reason(reason) for explanation in explanations for reason in explanation.reasons)
    )
    left_out = len(reasons) - len(reasons[:MOST]) + sum(explanation.left_out for explanation in explanations)
    if any(reason.value == WITHHELD for reason in reasons):
        # The number of parts of a secret is a secret, too.
        return CachedEvidence(Evidence(tuple(reasons[:MOST])), ())
    places = (reason.place for explanation in explanations for reason in explanation.reasons)
    return CachedEvidence(Evidence(tuple(reasons[:MOST]), left_out), deciding_trail(places))


def _explanations(
    invocation_result: InvocationResult, check: Check, outcome: Violated | Errored, bound: BoundPolicy
) -> Iterator[cel.Explanation]:
    """Explain each expression that decided the outcome; skip an expression with another result this time."""
    programs = {
        name: variable.program for name, variable in bound.compiled.variables.items() if variable.program is not None
    }
    for program, inputs in islice(evaluations(invocation_result, check, bound), MOST):
        explanation = cel.explain(program, inputs, programs)
        if _agrees(explanation.outcome, outcome):
            yield explanation


def _agrees(value: cel.Value | cel.EvaluationError, outcome: Violated | Errored) -> bool:
    if isinstance(outcome, Errored):
        return isinstance(value, cel.EvaluationError) and str(value) in outcome.message
    return value is not True and not isinstance(value, cel.EvaluationError)


__all__ = ["MOST", "NO_EVIDENCE", "Evidence", "Reason", "evidence"]
