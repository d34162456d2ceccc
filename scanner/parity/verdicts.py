"""Rulings as what they should make a server say: the warning, the refusal, or the silence of each judgement.

Source of truth: `validating.dispatcher` of kube-apiserver 1.36. Errors that failurePolicy Ignore passes over are silence; configuration and
audit annotation errors refuse whatever the actions are; of Audit alone no client hears anything.

Rules: `docs/semantics/evaluation.md#actions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import InvocationResult
from scanner.audit import redact
from scanner.model.outcome import Check, CheckKind, CheckResult, Errored, Passed, Skipped, SkipReason, Violated
from scanner.parity.copies import made_anew, reads_any

AUDIT: Final = "only the audit log tells what a binding without Deny and Warn decides"
ANNOTATION: Final = "only the audit log tells the value of an audit annotation"
ANEW: Final = "the check reads what the server sets anew in a copy, such as metadata.uid or status"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgement, as a client of the server could notice it.

    `text` is what a failure says, empty for silence; `shown` the same without secrets. `warns` and `denies` tell how it
    can be noticed. `unseen` is why it cannot, or empty.
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
        """Policy and binding: all of the origin that the server tells."""
        return self.policy, self.binding


def verdicts_of(
    invocation_results: Iterable[InvocationResult], compiled: Mapping[str, CompiledPolicy]
) -> tuple[Verdict, ...]:
    """Every judgement of some rulings; `compiled` has their policies by name."""
    return tuple(
        _verdict(invocation_result, check_result, compiled[invocation_result.invocation.policy.name])
        for invocation_result in invocation_results
        for check_result in invocation_result.check_results
    )


def _verdict(invocation_result: InvocationResult, check_result: CheckResult, compiled: CompiledPolicy) -> Verdict:
    binding, outcome = invocation_result.invocation.binding, check_result.outcome
    text, shown, always = "", "", False
    if isinstance(outcome, Violated) or (isinstance(outcome, Errored) and outcome.would_deny):
        text, shown = outcome.message, redact.safe(outcome, check_result.check, invocation_result, compiled).message
        always = isinstance(outcome, Errored) and outcome.always
    return Verdict(
        policy=invocation_result.invocation.policy.name,
        binding="" if text.startswith("failed to configure policy: ") and always else binding.name,
        check=check_result.check,
        text=text,
        shown=shown,
        warns="Warn" in binding.actions and not always,
        denies=always or "Deny" in binding.actions,
        unseen=_unseen(invocation_result, check_result, compiled),
    )


def _unseen(invocation_result: InvocationResult, check_result: CheckResult, compiled: CompiledPolicy) -> str:
    """Why no client can notice a judgement, or an empty string."""
    outcome = check_result.outcome
    if isinstance(outcome, Skipped) and outcome.reason is SkipReason.NOT_AUDITABLE:
        return f"Assay did not decide: {outcome.detail}"
    if isinstance(outcome, Errored) and outcome.always:
        return _anew(invocation_result, check_result.check, compiled)
    if isinstance(outcome, Passed) and check_result.check.kind is CheckKind.AUDIT_ANNOTATION:
        return ANNOTATION
    heard = {"Deny", "Warn"} & set(invocation_result.invocation.binding.actions)
    return _anew(invocation_result, check_result.check, compiled) if heard else AUDIT


def _anew(invocation_result: InvocationResult, check: Check, compiled: CompiledPolicy) -> str:
    if invocation_result.operation != "CREATE" or check.kind is CheckKind.CONFIGURATION:
        return ""
    anew = made_anew(invocation_result.resource.kind, invocation_result.resource.body)
    return ANEW if reads_any(_reads(check, compiled), anew) else ""


def _reads(check: Check, compiled: CompiledPolicy) -> Iterator[tuple[str, ...]]:
    """Everything that decides whether a check fails and what it says then."""
    yield from compiled.reads(Check(CheckKind.CONDITIONS))
    yield from compiled.reads(check)
    if check.kind is CheckKind.VALIDATION:
        yield from compiled.message_reads(check.index)
