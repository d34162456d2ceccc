"""From the value of an expression to the result of a check: messages, reasons, and failure policy.

Source of truth: `validating.Validator.Validate` of kube-apiserver 1.36.

Rules: `docs/semantics/evaluation.md#messages-of-denials`, `docs/semantics/evaluation.md#audit-annotations`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.cost_budget import (
    EvaluationFault,
    run,
)
from scanner.model.outcome import (
    Check,
    CheckKind,
    CheckResult,
    Errored,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    Violated,
)
from scanner.model.policy import Validation

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


_LONGEST_MESSAGE = 5120


_LONGEST_ANNOTATION = 10240


# The characters that Go's strings.TrimSpace strips; Python's str.strip() also strips U+001C to U+001F.
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def skip_checks(compiled: CompiledPolicy) -> tuple[CheckResult, ...]:
    """The results of a policy that was not compiled: every check is skipped."""
    return tuple(CheckResult(check, Skipped(SkipReason.NOT_AUDITABLE, compiled.excess)) for check in compiled.checks)


def fail_configuration(compiled: CompiledPolicy, text: str) -> CheckResult:
    """The only result of an invocation with a faulty configuration; it denies with any actions of the binding.

    `text` is the error of the API server. failurePolicy Ignore admits the request; an unknown failurePolicy denies it.
    """
    policy, plugin = compiled.policy, compiled.plugin
    denies = policy.failure_policy != "Ignore"
    if policy.failure_policy not in ("Fail", "Ignore"):
        text = f"unrecognized failure policy: '{policy.failure_policy}'"
    outcome = Errored(text, would_deny=denies, always=denies, reason=plugin.reason, code=plugin.code)
    return CheckResult(Check(CheckKind.CONFIGURATION), outcome)


def is_evaluable(expression: Expression, activation: Mapping[str, object]) -> bool:
    """Return whether an expression can be evaluated: an expression that reads the authorizer needs one in the activation."""
    return "authorizer" in activation or not expression.reads("authorizer")


def make_error(compiled: CompiledPolicy, text: str, *, always: bool = False) -> Errored:
    """Return an error whose effect the failure policy decides.

    An error that is `always` decisive denies with any actions of the binding, as do all errors of some plugins.
    """
    plugin, denies = compiled.plugin, compiled.policy.failure_policy != "Ignore"
    return Errored(text, would_deny=denies, always=(always or plugin.always_denies) and denies, code=plugin.code)


NO_AUTHORIZER = Skipped(SkipReason.NOT_AUDITABLE, "the expression asks the authorizer")


def evaluate_validation(
    compiled: CompiledPolicy,
    compiled_validation: tuple[Validation, Expression, Expression | None],
    activation: Mapping[str, object],
    messages: Mapping[str, object],
) -> Outcome:
    """Return the outcome of one validation with its messageExpression, which is evaluated only for a violation."""
    validation, expression, message = compiled_validation
    if not is_evaluable(expression, activation):
        return NO_AUTHORIZER
    value = run(expression, activation)
    return decide_validation(compiled, validation, value, lambda: None if message is None else run(message, messages))


def decide_validation(
    compiled: CompiledPolicy,
    validation: Validation,
    value: cel.Value | EvaluationFault,
    text: Callable[[], cel.Value | EvaluationFault],
) -> Outcome:
    """Return the outcome of one validation from the value of its expression; `text` evaluates the messageExpression.

    A violation has the HTTP status of its reason: 401, 403, 413, and 422 for all other reasons.
    """
    if value is True:
        return Passed()
    if isinstance(value, EvaluationFault):
        return make_error(compiled, value.text)
    reason = validation.reason or "Invalid"
    return Violated(_choose_message(validation, text()), reason, _CODES.get(reason, 422))


def _choose_message(validation: Validation, value: cel.Value | EvaluationFault) -> str:
    """The message of a violation: the messageExpression, else the message, else the failed expression."""
    text = value.strip(_BLANKS) if isinstance(value, str) else ""
    if text and "\n" not in text and _is_short(text):
        return text
    return get_written_message(validation)


def _is_short(text: str) -> bool:
    """Return whether a text has at most `_LONGEST_MESSAGE` bytes. A character has at most four."""
    return len(text) * 4 <= _LONGEST_MESSAGE or len(text.encode("utf-8", "surrogatepass")) <= _LONGEST_MESSAGE


def get_written_message(validation: Validation) -> str:
    """The message of a violation without its messageExpression: a text of the policy, the same for every object."""
    return validation.message.strip(_BLANKS) or f"failed expression: {validation.expression.strip(_BLANKS)}"


def decide_annotation(compiled: CompiledPolicy, expression: Expression, value: cel.Value | EvaluationFault) -> Outcome:
    """Return the outcome of an audit annotation from the value of its expression.

    A text is published without its outer blanks, up to 10,240 bytes; null publishes none. Any other value is an error.
    """
    if isinstance(value, EvaluationFault):
        return make_error(compiled, value.text, always=True)
    if value is None:
        return Passed()
    if not isinstance(value, str):
        text = (
            f"valueExpression '{expression.text}' resulted in unsupported return type: {cel.type_name(value)}. "
            "Return type must be either string or null."
        )
        return Errored(text, would_deny=True, always=True)
    return Passed(annotation=_clip(value.strip(_BLANKS)))


def _clip(text: str) -> str:
    """The first bytes of a text; each byte of a character that is cut becomes a replacement character, as in Go's JSON."""
    clipped = text.encode("utf-8", "surrogatepass")[:_LONGEST_ANNOTATION]
    kept = clipped.decode("utf-8", "ignore")
    return kept + "\ufffd" * (len(clipped) - len(kept.encode()))
