"""The name under which a result is counted, and the key of its count."""

from __future__ import annotations

from typing import assert_never

from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.model.outcome import (
    CheckResult,
    Errored,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    Violated,
    WouldChange,
)
from scanner.model.resource import Kind
from scanner.model.scans.scan import OutcomeName, TallyKey


def counted_as(check_result: CheckResult) -> OutcomeName:
    """The name under which a check result is counted; violations and errors that an exception or filter exempts count apart."""
    if check_result.excepted_by and isinstance(check_result.outcome, Violated | Errored):
        return OutcomeName.EXCEPTED
    return outcome_name(check_result.outcome)


def outcome_name(outcome: Outcome) -> OutcomeName:
    """The name under which an outcome is counted."""
    match outcome:
        case Passed():
            return OutcomeName.PASSED
        case Violated():
            return OutcomeName.VIOLATED
        case WouldChange():
            return OutcomeName.WOULD_CHANGE
        case Errored(would_deny=would_deny):
            return OutcomeName.ERRORED_DENY if would_deny else OutcomeName.ERRORED_ADMIT
        case Skipped(reason=SkipReason.NOT_AUDITABLE):
            return OutcomeName.NOT_AUDITABLE
        case Skipped():
            return OutcomeName.SKIPPED
        case _ as never:
            assert_never(never)


def tally_key(
    invocation_result: InvocationResult, check_result: CheckResult, bound: BoundPolicy, listed: Kind
) -> TallyKey:
    """The key under which the result of a check is counted, for an object that was listed in a kind."""
    invocation, resource = invocation_result.invocation, invocation_result.resource
    return TallyKey(
        policy=invocation.policy.name,
        binding=invocation.binding.name,
        param_namespace=invocation.param.namespace if invocation.param else "",
        param_name=invocation.param.name if invocation.param else "",
        check=check_result.check,
        api_version=listed.api_version,
        kind=listed.kind,
        namespace=resource.namespace,
        outcome=counted_as(check_result),
        requester=check_result.check in bound.requester,
        language=invocation.policy.language,
    )
