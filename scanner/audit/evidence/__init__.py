"""The evidence of a finding: the values that decided it, from a second evaluation while the object is in memory.

A language without expressions names the fields that decided; their values are read and redacted here, as those of expressions are.

Only failed checks are evaluated again, so passes cost nothing. An explanation that fails or does not reproduce the verdict is
dropped: the verdict stands without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice

from scanner import cel
from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.audit.evidence.cache import NO_CONTENT, EvidenceCache, EvidenceContent
from scanner.audit.evidence.excerpt import find_deciding_trail, make_excerpt
from scanner.audit.evidence.redaction import WITHHELD, EvidenceRedaction
from scanner.cel.stack import run_with_room
from scanner.model.outcome import (
    NO_EVIDENCE,
    Check,
    CheckKind,
    CheckResult,
    Errored,
    Evidence,
    FieldPlace,
    Reason,
    Violated,
)

Evaluation = tuple[cel.Program, Mapping[str, object]]


def list_evaluations(invocation_result: InvocationResult, check: Check, bound: BoundPolicy) -> Iterator[Evaluation]:
    """The programs that decide a check, each with new inputs by name; none if the result has no request."""
    if invocation_result.request is None:
        return
    for expression in bound.compiled.list_deciding(check):
        if expression.program is not None:
            yield expression.program, _make_inputs(invocation_result, check, bound)


def _make_inputs(invocation_result: InvocationResult, check: Check, bound: BoundPolicy) -> Mapping[str, object]:
    request, compiled = invocation_result.request, bound.compiled
    if request is None:
        return {}
    return bound.evaluator.inputs(compiled, request, invocation_result.invocation.param, check)


MOST = 8
"""Reasons that a finding keeps."""
_CACHE = EvidenceCache()
_KEPT = 64
_CANCELLED, _INTERRUPTED = "operation cancelled", "operation interrupted"


class EvidenceParts(StrEnum):
    """The parts of the evidence that a caller needs: none, the reasons, or the excerpt of the object as well."""

    NONE = "none"
    REASONS = "reasons"
    ALL = "all"


def collect_evidence(
    invocation_result: InvocationResult,
    check_result: CheckResult,
    bound: BoundPolicy,
    inputs: Mapping[str, object] | None = None,
    parts: EvidenceParts = EvidenceParts.ALL,
) -> Evidence:
    """The reasons of a violation or an error, at most `MOST`, without secrets.

    `inputs` are the values that the check's expression reads, if the caller has them. No evidence for other outcomes, after an
    exceeded cost limit, and if a second evaluation has another result. Never raises.
    """
    outcome = check_result.outcome
    if not isinstance(outcome, Violated | Errored) or parts is EvidenceParts.NONE:
        return NO_EVIDENCE
    of = invocation_result, check_result, outcome, bound, inputs, parts
    try:
        try:
            return _collect(*of)
        except RecursionError:
            return run_with_room(lambda: _collect(*of))
    except Exception as error:  # noqa: BLE001 - a verdict is not lost because it cannot be explained
        why = f"it could not be explained: internal error ({type(error).__name__}); please report it"
        return Evidence((Reason("", why, erred=True),))


def _show_fields(
    invocation_result: InvocationResult, fields: Sequence[FieldPlace], bound: BoundPolicy, parts: EvidenceParts
) -> Evidence:
    """The evidence of a language without expressions: the values of fields that it names."""
    redaction, places = EvidenceRedaction(invocation_result, bound.compiled), fields[:MOST]
    content = _select_reasons([redaction.redact_field(place) for place in places], len(fields) - len(places), places)
    return _join(content, invocation_result, parts)


class _LatestEvidence:
    """The latest evidence: findings with the same reasons share it, and the store writes it once."""

    def __init__(self) -> None:
        self._evidence: dict[tuple[object, ...], Evidence] = {}

    def get(self, content: EvidenceContent, text: str) -> Evidence:
        """The evidence with these reasons and this excerpt. An entry keeps its reasons alive, so that no others get their ids."""
        key = (*map(id, content.reasons), content.left_out, text)
        evidence = self._evidence.get(key)
        if evidence is None:
            if len(self._evidence) >= _KEPT:
                self._evidence.clear()
            evidence = self._evidence[key] = Evidence(content.reasons, content.left_out, text)
        return evidence


_LATEST = _LatestEvidence()


def _join(content: EvidenceContent, invocation_result: InvocationResult, parts: EvidenceParts) -> Evidence:
    return _LATEST.get(content, make_excerpt(invocation_result, content.trail) if parts is EvidenceParts.ALL else "")


def _collect(
    invocation_result: InvocationResult,
    check_result: CheckResult,
    outcome: Violated | Errored,
    bound: BoundPolicy,
    inputs: Mapping[str, object] | None,
    parts: EvidenceParts,
) -> Evidence:
    check = check_result.check
    if check_result.fields:
        return _show_fields(invocation_result, check_result.fields, bound, parts)
    if _CANCELLED in outcome.message or _INTERRUPTED in outcome.message:  # it exceeded a cost limit
        return _LATEST.get(NO_CONTENT, "")
    if inputs is not None and not _CACHE.repeats(check, bound.compiled):
        direct = _find_direct_parts(check, outcome, bound, inputs)
        evidence = None if direct is None else _explain_parts(direct, invocation_result, bound, inputs, parts)
        if evidence is not None:
            return evidence
    content = _explain(invocation_result, check, outcome, bound, inputs)
    return _join(content, invocation_result, parts)


def _explain_parts(
    direct: cel.DirectParts,
    invocation_result: InvocationResult,
    bound: BoundPolicy,
    inputs: Mapping[str, object],
    parts: EvidenceParts,
) -> Evidence | None:
    """The evidence of a violation by the parts of its expression: policies often fail for the same value of an object."""
    redaction = EvidenceRedaction(invocation_result, bound.compiled)
    evidence = redaction.find_evidence(direct, inputs)
    if evidence is None:
        reasons = cel.read_direct_parts(direct, inputs)
        if reasons is None:
            return None
        content = _redact(reasons, 0, redaction)
        evidence = _join(content, invocation_result, parts)
        redaction.keep_evidence(direct, inputs, evidence)
    return evidence


def _explain(
    invocation_result: InvocationResult,
    check: Check,
    outcome: Violated | Errored,
    bound: BoundPolicy,
    inputs: Mapping[str, object] | None,
) -> EvidenceContent:
    key = _CACHE.key(invocation_result, check, outcome, bound.compiled)
    content = None if key is None else _CACHE.get(key, check, bound.compiled)
    if content is None:
        direct = _find_direct_parts(check, outcome, bound, inputs)
        reasons = None if direct is None or inputs is None else cel.read_direct_parts(direct, inputs)
        left_out = 0
        if reasons is None:
            explanations = list(_explain_programs(invocation_result, check, outcome, bound))
            reasons = tuple(reason for explanation in explanations for reason in explanation.reasons)
            left_out = sum(explanation.left_out for explanation in explanations)
        content = _redact(reasons, left_out, EvidenceRedaction(invocation_result, bound.compiled))
        if key is not None and _CACHE.determines(check, bound.compiled, reasons):
            _CACHE.keep(key, content)
    return content


def _find_direct_parts(
    check: Check, outcome: Violated | Errored, bound: BoundPolicy, inputs: Mapping[str, object] | None
) -> cel.DirectParts | None:
    """The parts that explain a violation by the inputs of its evaluation; None if it needs notes, or is not reproduced."""
    if inputs is None or check.kind is not CheckKind.VALIDATION or isinstance(outcome, Errored):
        return None
    program = bound.compiled.validations[check.index][1].program
    direct = None if program is None else cel.find_direct_parts(program)
    if program is None or direct is None:
        return None
    try:
        return direct if _agrees(program.evaluate(inputs), outcome) else None
    except cel.EvaluationError:
        return None


def _redact(reasons: Sequence[cel.DecidingPart], left_out: int, redaction: EvidenceRedaction) -> EvidenceContent:
    return _select_reasons(
        [redaction.redact_reason(reason) for reason in reasons], left_out, [reason.place for reason in reasons]
    )


def _select_reasons(reasons: list[Reason], left_out: int, places: Iterable[cel.Place]) -> EvidenceContent:
    """The first reasons, and the field around which an excerpt is made; of withheld values, none."""
    if len(reasons) > 1:
        reasons = list(dict.fromkeys(reasons))
    first_reasons = tuple(reasons[:MOST])
    for reason in reasons:
        if reason.value == WITHHELD:
            # The number of parts of a secret is a secret, too.
            return EvidenceContent(first_reasons, 0, ())
    trail = find_deciding_trail(places)
    return EvidenceContent(first_reasons, left_out + len(reasons) - len(first_reasons), trail)


def _explain_programs(
    invocation_result: InvocationResult, check: Check, outcome: Violated | Errored, bound: BoundPolicy
) -> Iterator[cel.Explanation]:
    """Explain each expression that decided the outcome; skip an expression with another result this time."""
    programs = {
        name: variable.program for name, variable in bound.compiled.variables.items() if variable.program is not None
    }
    for program, inputs in islice(list_evaluations(invocation_result, check, bound), MOST):
        explanation = cel.explain(program, inputs, programs)
        if _agrees(explanation.outcome, outcome):
            yield explanation


def _agrees(value: cel.Value | cel.EvaluationError, outcome: Violated | Errored) -> bool:
    if isinstance(outcome, Errored):
        return isinstance(value, cel.EvaluationError) and str(value) in outcome.message
    return value is not True and not isinstance(value, cel.EvaluationError)


__all__ = ["MOST", "NO_EVIDENCE", "Evidence", "EvidenceParts", "Reason", "collect_evidence"]
