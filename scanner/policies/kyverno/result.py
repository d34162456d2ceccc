"""The result that Kyverno would write into a report for one policy and one object: one result for all validations.

Source of truth: `reportutils` of Kyverno 1.19. The first validation that does not pass decides; audit annotations are properties,
some of which replace the message; of an unscored policy a failure is a warning.

Rules: `docs/semantics/kyverno.md#kyvernos-reports`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from scanner.model.outcome import CheckKind, CheckResult, Errored, Passed, Skipped, SkipReason, Violated
from scanner.model.policy import Policy
from scanner.policies.kyverno.spec import KyvernoPolicy

Status = Literal["pass", "fail", "warn", "error", "skip"]
_INDEX = "cel.validationIndex"


@dataclass(frozen=True, slots=True)
class Result:
    """One entry of a report. `unmet`: the match conditions are not true; only the command line shows such a skip."""

    status: Status
    message: str
    rule: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    unmet: bool = False


def result_of(policy: KyvernoPolicy, form: Policy, check_results: Sequence[CheckResult]) -> Result:
    """Kyverno's single result from the check results of one variant."""
    raw = _raw(form, check_results)
    message = _overridden(raw)
    status: Status = "warn" if policy.unscored and raw.status == "fail" else raw.status
    properties = {**raw.properties, "process": "background scan"}
    return replace(raw, status=status, message=message, properties=properties)


def _raw(form: Policy, check_results: Sequence[CheckResult]) -> Result:
    first = check_results[0] if check_results else None
    if first is None:
        return Result("pass", "success")
    if first.excepted_by and isinstance(first.outcome, Passed | Skipped):
        return _exempted(first)
    if first.check.kind in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION):
        return _whole(first)
    if isinstance(first.outcome, Skipped) and first.outcome.reason is SkipReason.CONDITION_FALSE:
        return Result("skip", "skip", unmet=True)
    validations = (check_result for check_result in check_results if check_result.check.kind is CheckKind.VALIDATION)
    failing = next((check_result for check_result in validations if not isinstance(check_result.outcome, Passed)), None)
    broken = next(filter(None, map(_breakage, check_results)), "")
    if broken and not (failing and isinstance(failing.outcome, Errored)):
        return Result("error", broken, "evaluation")
    annotations = _annotations(form, check_results)
    return _failed(failing, annotations) if failing else Result("pass", "success", properties=annotations)


def _whole(check_result: CheckResult) -> Result:
    message = check_result.outcome.message if isinstance(check_result.outcome, Errored) else ""
    return Result("error", message, "evaluation" if check_result.check.kind is CheckKind.CONDITIONS else "")


def _breakage(check_result: CheckResult) -> str:
    """The error of an audit annotation: Kyverno then has no verdict."""
    outcome = check_result.outcome
    about = check_result.check.kind is CheckKind.AUDIT_ANNOTATION
    return outcome.message if about and isinstance(outcome, Errored) else ""


def _exempted(check_result: CheckResult) -> Result:
    names = ",".join(key.rpartition("/")[2] for key in check_result.excepted_by.split(", "))
    passed = isinstance(check_result.outcome, Passed)
    message = f"rule is {'passed' if passed else 'skipped'} due to policy exception: {check_result.excepted_by}"
    return Result("pass" if passed else "skip", message, "exception", {"exceptions": names})


def _failed(check_result: CheckResult, annotations: Mapping[str, str]) -> Result:
    index = {_INDEX: str(check_result.check.index)}
    match check_result.outcome:
        case Violated(message=message):
            return Result("fail", message, properties={**index, **annotations})
        case Errored(message=message):
            return Result("error", message, properties=index)
        case Skipped(detail=detail):
            return Result("error", f"error: {detail}", properties=index)
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
