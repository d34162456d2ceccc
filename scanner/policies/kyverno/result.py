"""The result that Kyverno would write into a report for one policy and one object: one result for all validations.

Source of truth: `handlePolicy` of `pkg/cel/policies/vpol/engine`, and `reportutils`, of Kyverno 1.16 to 1.19. The first validation
that does not pass decides; audit annotations are properties, some of which replace the message, and an error of one is the result; of
an unscored policy a failure is a warning.

Rules: `docs/semantics/kyverno.md#kyvernos-reports`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from scanner.model.outcome import CheckKind, CheckResult, Errored, Passed, Skipped, SkipReason, Violated
from scanner.model.policy import Policy
from scanner.model.release import Minor
from scanner.policies.kyverno.decide import CONTEXT, REPLACED_FAILURE
from scanner.policies.kyverno.releases import INDEXED_RESULTS, NEWEST
from scanner.policies.kyverno.spec import KyvernoPolicy

Status = Literal["pass", "fail", "warn", "error", "skip"]
_INDEX = "cel.validationIndex"


@dataclass(frozen=True, slots=True)
class Result:
    """One entry of a report. `unmet`: the match conditions are not true; since 1.19 only the command line shows such a skip."""

    status: Status
    message: str
    rule: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    unmet: bool = False


def result_of(
    policy: KyvernoPolicy, form: Policy, check_results: Sequence[CheckResult], release: Minor = NEWEST
) -> Result:
    """Kyverno's single result from the check results of one variant."""
    raw = engine_result(form, check_results, release)
    message = _overridden(raw)
    status: Status = "warn" if policy.unscored and raw.status == "fail" else raw.status
    properties = {**raw.properties, "process": "background scan"}
    return replace(raw, status=status, message=message, properties=properties)


def engine_result(form: Policy, check_results: Sequence[CheckResult], release: Minor) -> Result:
    """The rule response of the engine, before it becomes an entry of a report."""
    first = check_results[0] if check_results else None
    if first is None:
        return Result("pass", "success")
    if first.excepted_by and isinstance(first.outcome, Passed | Skipped):
        return _exempted(first)
    if isinstance(first.outcome, Errored) and first.check.kind in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION):
        return _error(first.outcome.message)
    if isinstance(first.outcome, Skipped) and first.outcome.reason is SkipReason.CONDITION_FALSE:
        return Result("skip", "skip", unmet=True)
    broken = next(filter(None, map(_annotation_error, check_results)), "")
    if broken:
        failed = (check_result for check_result in check_results if check_result.outcome == REPLACED_FAILURE)
        return _error(broken, next(failed, None))
    validations = (check_result for check_result in check_results if check_result.check.kind is CheckKind.VALIDATION)
    failing = next((check_result for check_result in validations if not isinstance(check_result.outcome, Passed)), None)
    annotations = _annotations(form, check_results)
    return _failed(failing, annotations, release) if failing else Result("pass", "success", properties=annotations)


def _error(message: str, failing: CheckResult | None = None) -> Result:
    """An error; one that ends the evaluation is that of the rule `evaluation`, and has no properties."""
    if message.startswith(CONTEXT):
        return Result("error", message, "evaluation")
    return Result("error", message, properties=_index(failing) if failing else {})


def _index(check_result: CheckResult) -> Mapping[str, str]:
    return {_INDEX: str(check_result.check.index)}


def _annotation_error(check_result: CheckResult) -> str:
    outcome = check_result.outcome
    about = check_result.check.kind is CheckKind.AUDIT_ANNOTATION
    return outcome.message if about and isinstance(outcome, Errored) else ""


def _exempted(check_result: CheckResult) -> Result:
    names = ",".join(key.rpartition("/")[2] for key in check_result.excepted_by.split(", "))
    passed = isinstance(check_result.outcome, Passed)
    message = f"rule is {'passed' if passed else 'skipped'} due to policy exception: {check_result.excepted_by}"
    return Result("pass" if passed else "skip", message, "exception", {"exceptions": names})


def _failed(check_result: CheckResult, annotations: Mapping[str, str], release: Minor) -> Result:
    match check_result.outcome:
        case Violated(message=message):
            index = _index(check_result) if INDEXED_RESULTS.holds(release) else {}
            return Result("fail", message, properties={**index, **annotations})
        case Errored(message=message):
            return _error(message, check_result)
        case Skipped(detail=detail):
            return _error(f"error: {detail}", check_result)
        case _:
            return Result("pass", "success", properties=annotations)


def _annotations(form: Policy, check_results: Sequence[CheckResult]) -> Mapping[str, str]:
    """The values of the audit annotations; empty ones are left out."""
    return {
        form.audit_annotations[check_result.check.index].key: check_result.outcome.annotation
        for check_result in check_results
        if check_result.check.kind is CheckKind.AUDIT_ANNOTATION
        and isinstance(check_result.outcome, Passed)
        and check_result.outcome.annotation
    }


def _overridden(result: Result) -> str:
    """The message, unless a property of the right name replaces it."""
    own = result.properties.get(f"{result.status}Message", "")
    return result.properties.get("message", "") or own or result.message
