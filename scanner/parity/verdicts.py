"""The expected response for each check result: a warning, a denial, or neither.

Source of truth: `validating.dispatcher` of kube-apiserver 1.36. An error that failurePolicy ignores causes neither; configuration and
audit annotation errors deny with any actions; the action Audit alone has no effect that a client can observe.

Rules: `docs/semantics/evaluation.md#actions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import InvocationResult
from scanner.admission.server_fields import list_fields_set_on_create, reads_any
from scanner.audit import redact
from scanner.model.outcome import Check, CheckKind, CheckResult, Errored, Passed, Skipped, SkipReason, Violated

AUDIT: Final = "only the audit log has the verdict of a binding without Deny and Warn"
ANNOTATION: Final = "only the audit log has the value of an audit annotation"
ANEW: Final = "the check reads a field that the server sets in a copy, such as metadata.uid or status"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A check result as a client of the server can observe it.

    `text` is the message of a failure, or empty; `shown` the same, redacted. `warns` and `denies` are the ways to observe it.
    `unseen` is empty, or the reason why a client cannot observe it.
    """

    policy: str
    binding: str
    check: Check
    text: str
    shown: str
    warns: bool
    denies: bool
    unseen: str = ""

    @property
    def speaker(self) -> tuple[str, str]:
        """Policy and binding: the origin as far as the server names it."""
        return self.policy, self.binding


def list_verdicts(
    invocation_results: Iterable[InvocationResult], compiled: Mapping[str, CompiledPolicy]
) -> tuple[Verdict, ...]:
    """One verdict for every check result, in their order; `compiled` has the policies by name."""
    return tuple(
        _make_verdict(invocation_result, check_result, compiled[invocation_result.invocation.policy.name])
        for invocation_result in invocation_results
        for check_result in invocation_result.check_results
    )


def _make_verdict(invocation_result: InvocationResult, check_result: CheckResult, compiled: CompiledPolicy) -> Verdict:
    binding, outcome = invocation_result.invocation.binding, check_result.outcome
    text, shown, always = "", "", False
    if isinstance(outcome, Violated) or (isinstance(outcome, Errored) and outcome.would_deny):
        text, shown = (
            outcome.message,
            redact.redact_outcome(outcome, check_result.check, invocation_result, compiled).message,
        )
        always = isinstance(outcome, Errored) and outcome.always
    return Verdict(
        policy=invocation_result.invocation.policy.name,
        binding="" if text.startswith("failed to configure policy: ") and always else binding.name,
        check=check_result.check,
        text=text,
        shown=shown,
        warns="Warn" in binding.actions and not always,
        denies=always or "Deny" in binding.actions,
        unseen=_explain_unseen(invocation_result, check_result, compiled),
    )


def _explain_unseen(invocation_result: InvocationResult, check_result: CheckResult, compiled: CompiledPolicy) -> str:
    """The reason why no client can observe a check result, or an empty string."""
    outcome = check_result.outcome
    if isinstance(outcome, Skipped) and outcome.reason is SkipReason.NOT_AUDITABLE:
        return f"Assay did not evaluate the check: {outcome.detail}"
    if isinstance(outcome, Errored) and outcome.always:
        return _evaluate_anew(invocation_result, check_result.check, compiled)
    if isinstance(outcome, Passed) and check_result.check.kind is CheckKind.AUDIT_ANNOTATION:
        return ANNOTATION
    observable = {"Deny", "Warn"} & set(invocation_result.invocation.binding.actions)
    return _evaluate_anew(invocation_result, check_result.check, compiled) if observable else AUDIT


def _evaluate_anew(invocation_result: InvocationResult, check: Check, compiled: CompiledPolicy) -> str:
    if invocation_result.operation != "CREATE" or check.kind is CheckKind.CONFIGURATION:
        return ""
    anew = list_fields_set_on_create(invocation_result.resource.kind, invocation_result.resource.body)
    return ANEW if reads_any(_list_reads(check, compiled), anew) else ""


def _list_reads(check: Check, compiled: CompiledPolicy) -> Iterator[tuple[str, ...]]:
    """The access paths that decide whether a check fails, and its message."""
    yield from compiled.reads(Check(CheckKind.CONDITIONS))
    yield from compiled.reads(check)
    if check.kind is CheckKind.VALIDATION:
        yield from compiled.list_message_reads(check.index)
