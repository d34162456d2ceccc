"""Evaluates one variant of a Kyverno policy for one request: exceptions, match conditions, validations, audit annotations.

Source of truth: `pkg/cel/policies/vpol` of Kyverno 1.19 and its webhook, which denies requests for failures and errors alike.
Exceptions are evaluated first; failurePolicy applies to errors in conditions alone. Unavailable data decide nothing.

Rules: `docs/semantics/kyverno.md#evaluation-by-kyverno`, `docs/semantics/kyverno.md#messages-by-kyverno`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.evaluator import FastForm, OwnForm
from scanner.admission.request import Request
from scanner.admission.results import skip_checks
from scanner.model.json import JsonObject
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
from scanner.model.policy import AuditAnnotation, NamedExpression, Validation
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.policies.kyverno.compile import CompiledException
from scanner.policies.kyverno.exceptions import PolicyException
from scanner.policies.kyverno.libraries import Unavailable, exempted
from scanner.policies.kyverno.modes import KyvernoMode
from scanner.policies.kyverno.releases import (
    ANNOTATED_PASSES,
    DEFAULT_MESSAGE,
    EXCEPTIONS_END,
    FULL_BESIDE_PARTIAL,
    NEWEST,
    OWN_ERRORS,
)
from scanner.policies.kyverno.request import METERED, activation, evaluated, with_variables

REFUSED: Final = 400
"""The HTTP status of a denial."""
CONTEXT: Final = "failed to load context: "
"""The beginning of an error that ends the evaluation."""
_ERROR: Final = "error: "
_NOT_REACHED = Skipped(SkipReason.NOT_REACHED, "Kyverno stops at the first validation that does not pass")
_REPLACED = Skipped(SkipReason.NOT_REACHED, "Kyverno's only result is the error of an audit annotation")
REPLACED_FAILURE: Final = Skipped(
    SkipReason.NOT_REACHED, "the validation fails, and Kyverno's only result is the error of an audit annotation"
)
"""The outcome of the validation after which an audit annotation errs."""
_NO_FAILURE = Skipped(
    SkipReason.NOT_REACHED, "this release of Kyverno evaluates audit annotations only after a validation that fails"
)
Values = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Fault:
    """An evaluation without a value; `unavailable` if it reads data that Assay does not have."""

    text: str
    unavailable: bool = False


def run(expression: Expression, values: Values) -> cel.Value | Fault:
    """The value of an expression that compiles, or the reason why it has none."""
    if expression.program is None:
        return Fault(expression.fault)
    outcome = evaluated(expression.program, values)
    if isinstance(outcome, cel.EvaluationError):
        return Fault(str(outcome), unavailable=isinstance(outcome, Unavailable))
    return outcome


@dataclass(frozen=True, slots=True)
class _Conditions:
    """The result of a list of conditions: the name of the first false one, the errors, or the unavailable data."""

    false: str | None = None
    errors: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def hold(self) -> bool:
        return self == _HOLD


_HOLD = _Conditions()


def _met(conditions: tuple[tuple[NamedExpression, Expression], ...], values: Values) -> _Conditions:
    """Evaluate conditions; one false condition overrides every error, also one before it."""
    faults: list[Fault] = []
    for condition, expression in conditions:
        value = run(expression, values)
        if isinstance(value, Fault):
            faults.append(value)
        elif value is not True:
            return _Conditions(false=condition.name)
    unknown = next((fault.text for fault in faults if fault.unavailable), "")
    return _Conditions(errors=tuple(fault.text for fault in faults if not fault.unavailable), unknown=unknown)


@dataclass(frozen=True, slots=True)
class _AppliedExceptions:
    """The exceptions that match an object, in their order; `error` if Kyverno cannot decide it.

    They are `full` if one of them exempts the object, else they offer values.
    """

    matched: tuple[PolicyException, ...] = ()
    full: bool = False
    error: str = ""
    unknown: str = ""

    @property
    def partial(self) -> tuple[PolicyException, ...]:
        return tuple(exception for exception in self.matched if exception.partial)

    @property
    def keys(self) -> str:
        return ", ".join(exception.key for exception in (self.matched if self.full else self.partial))

    def offered(self) -> cel.Struct:
        """The value of `exceptions`."""
        return exempted(
            [image for exception in self.partial for image in exception.images],
            [value for exception in self.partial for value in exception.values],
        )


_NO_EXCEPTIONS = _AppliedExceptions()


@dataclass(frozen=True, slots=True)
class Decision:
    """The evaluation of one policy: see `Evaluator`. `fault` is the reason why the policy is unusable.

    `release` is that of Kyverno. `absent` is the value of an object that a request does not have.
    """

    mode: KyvernoMode
    now: datetime
    exceptions: tuple[CompiledException, ...] = ()
    library_values: Values = field(default_factory=dict)
    fault: str = ""
    secret_safe: Values = field(default_factory=dict)
    release: Minor = NEWEST
    absent: JsonObject | None = field(default_factory=dict)

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """Evaluate every check of a matched policy; there are no params."""
        del param
        if compiled.excess:
            return skip_checks(compiled)
        if self.fault:
            return (CheckResult(Check(CheckKind.CONFIGURATION), Errored(self.fault, would_deny=False, code=REFUSED)),)
        values = self._activation(request)
        values[METERED] = compiled.must_count_cost(values)
        applied = self._applied_exceptions(compiled, values)
        if applied.error:
            return (_broken(applied.error),)
        if applied.full and self.mode.exempts:
            return _exempted(compiled, applied)
        check_results = self._check_results(compiled, {**values, "exceptions": applied.offered()})
        return check_results if self.mode.exempts else self._noted(check_results, compiled, values, applied)

    @property
    def reads_whole_object(self) -> bool:
        """See Evaluator: the access paths of the policy do not include those of exceptions."""
        return not self._is_plain()

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        """See Evaluator."""
        del param, check
        return with_variables(compiled, self._inputs(request))

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """See Evaluator: a request contains the object, so a policy that reads the request has no fast form."""
        del kind
        reads_request = any(("request",) in expression.paths for expression in compiled.list_evaluated())
        return (
            FastForm(own=OwnForm(self._inputs, self._check_results)) if self._is_plain() and not reads_request else None
        )

    def _is_plain(self) -> bool:
        """Return whether the expressions alone decide: an object that passes all of them passes."""
        return not (self.fault or self.exceptions or self.mode.exempts)

    def _inputs(self, request: Request) -> dict[str, object]:
        """The values that the expressions of a plain policy can read, without the variables."""
        return {**self._activation(request), "exceptions": _NO_EXCEPTIONS.offered()}

    def _activation(self, request: Request) -> dict[str, object]:
        return activation(request, self.mode, self._library_values(request), self.absent)

    def _library_values(self, request: Request) -> Values:
        """The values of the libraries: no data of a Secret leaves the process."""
        is_secret = (request.matched.group, request.matched.plural) == ("", "secrets")
        return {**self.library_values, **self.secret_safe} if is_secret and self.secret_safe else self.library_values

    def _applied_exceptions(self, compiled: CompiledPolicy, values: Values) -> _AppliedExceptions:
        """The exceptions that apply. Their errors are the policy's, unless an earlier one exempts the object fully.

        In earlier releases they are in any case, and none exempts fully beside one that offers values.
        """
        full_decides = FULL_BESIDE_PARTIAL.holds(self.release)
        applied = _NO_EXCEPTIONS
        for compiled_exception in self.exceptions:
            exception = compiled_exception.exception
            if self.ends(exception):
                continue
            met = _met(compiled_exception.conditions, values)
            if met.unknown:
                applied = replace(applied, unknown=f"policy exception {exception.key}: {met.unknown}")
            elif met.errors and not (applied.full and full_decides) and compiled.policy.failure_policy != "Ignore":
                return _AppliedExceptions(error="; ".join(met.errors))
            elif met.hold:
                matched = (*applied.matched, exception)
                applied = replace(applied, matched=matched, full=applied.full or not exception.partial)
        return applied if full_decides or not applied.partial else replace(applied, full=False)

    def ends(self, exception: PolicyException) -> bool:
        """Return whether an exception has ended."""
        return self.mode.expires and EXCEPTIONS_END.holds(self.release) and exception.expired(self.now)

    def _noted(
        self,
        check_results: tuple[CheckResult, ...],
        compiled: CompiledPolicy,
        values: Values,
        applied: _AppliedExceptions,
    ) -> tuple[CheckResult, ...]:
        """The check results without exceptions, each with the exceptions that remove its effect."""
        if applied.full:
            return tuple(_excepted(check_result, applied.keys) for check_result in check_results)
        if applied.unknown:
            return tuple(_undecided(check_result, applied.unknown) for check_result in check_results)
        if not applied.matched:
            return check_results
        without_param = {
            check_result.check: check_result
            for check_result in self._check_results(compiled, {**values, "exceptions": _NO_EXCEPTIONS.offered()})
        }
        return tuple(
            _taken(check_result, without_param.get(check_result.check), applied.keys) for check_result in check_results
        )

    def _check_results(self, compiled: CompiledPolicy, values: Values) -> tuple[CheckResult, ...]:
        stopped = self._stopped(compiled, _met(compiled.conditions, values))
        if isinstance(stopped, Errored):
            return (CheckResult(Check(CheckKind.CONDITIONS), stopped),)
        if stopped is not None:
            return tuple(CheckResult(check, stopped) for check in compiled.checks)
        return tuple(map(CheckResult, compiled.checks, self._outcomes(compiled, with_variables(compiled, values))))

    def _stopped(self, compiled: CompiledPolicy, met: _Conditions) -> Errored | Skipped | None:
        """The outcome if the match conditions alone decide it, else None."""
        denies = compiled.policy.failure_policy != "Ignore"
        if met.hold:
            return None
        if met.false is not None:
            return Skipped(SkipReason.CONDITION_FALSE, met.false)
        if met.errors and not denies and self.mode.exempts:
            return Skipped(SkipReason.CONDITION_FALSE, "; ".join(met.errors))
        if met.unknown:
            return Skipped(SkipReason.NOT_AUDITABLE, met.unknown)
        return _context_fault("; ".join(met.errors), denies=denies)

    def _outcomes(self, compiled: CompiledPolicy, values: Values) -> tuple[Outcome, ...]:
        """The outcomes of all checks; in Kyverno's reports the first error of an audit annotation is the only result."""
        validated = tuple(self._validated(compiled, values))
        outcomes = (*validated, *self._annotated(compiled, values, validated))
        error = next((outcome for outcome in outcomes[len(validated) :] if isinstance(outcome, Errored)), None)
        if self.mode.all_validations or error is None:
            return outcomes
        return tuple(outcome if outcome is error else _replaced(outcome) for outcome in outcomes)

    def _validated(self, compiled: CompiledPolicy, values: Values) -> Iterator[Outcome]:
        reached = True
        for index, validation in enumerate(compiled.validations):
            outcome = self._validate(index, *validation, values) if reached else _NOT_REACHED
            reached = reached and (self.mode.all_validations or isinstance(outcome, Passed))
            yield outcome

    def _annotated(self, compiled: CompiledPolicy, values: Values, validated: tuple[Outcome, ...]) -> Iterator[Outcome]:
        failed = any(isinstance(outcome, Violated) for outcome in validated)
        if not (failed or ANNOTATED_PASSES.holds(self.release)):
            yield from (_NO_FAILURE for _ in compiled.annotations)
            return
        before = _ERROR if failed and OWN_ERRORS.holds(self.release) else CONTEXT
        reached = self.mode.all_validations or failed or all(isinstance(outcome, Passed) for outcome in validated)
        for annotation, expression in zip(compiled.policy.audit_annotations, compiled.annotations, strict=True):
            yield _annotate(annotation, expression, values, before) if reached else _NOT_REACHED

    def _validate(
        self, index: int, validation: Validation, expression: Expression, message: Expression | None, values: Values
    ) -> Outcome:
        value = run(expression, values)
        if isinstance(value, Fault):
            if value.unavailable:
                return Skipped(SkipReason.NOT_AUDITABLE, value.text)
            before = _ERROR if OWN_ERRORS.holds(self.release) else CONTEXT
            return _error(f"{before}{value.text}")
        if value is True:
            return Passed()
        text = _message(validation, message, values)
        if not text and DEFAULT_MESSAGE.holds(self.release):
            text = f"CEL expression validation failed at index {index}"
        return Violated(text, reason="", code=REFUSED)


def _broken(text: str) -> CheckResult:
    return CheckResult(Check(CheckKind.CONDITIONS), _context_fault(text, denies=True))


def _context_fault(text: str, *, denies: bool) -> Errored:
    return _error(f"{CONTEXT}{text}", denies=denies)


def _error(text: str, *, denies: bool = True) -> Errored:
    return Errored(text, would_deny=denies, reason="", code=REFUSED)


def _exempted(compiled: CompiledPolicy, applied: _AppliedExceptions) -> tuple[CheckResult, ...]:
    """Kyverno's own verdict on an exempted object: of several exceptions, the highest priority selects pass or skip."""
    first = max(applied.matched, key=lambda exception: exception.priority)
    done = "passed" if first.passes else "skipped"
    text = f"rule is {done} due to policy exception: {applied.keys}"
    outcome: Outcome = Passed() if first.passes else Skipped(SkipReason.EXCEPTION, text)
    return tuple(CheckResult(check, outcome, excepted_by=applied.keys) for check in compiled.checks)


def _excepted(check_result: CheckResult, keys: str) -> CheckResult:
    if isinstance(check_result.outcome, Violated | Errored):
        return check_result._replace(excepted_by=keys)
    return check_result


def _taken(check_result: CheckResult, without: CheckResult | None, keys: str) -> CheckResult:
    """The check result without the values of exceptions, if it passes only because of them."""
    if without is None or not isinstance(check_result.outcome, Passed):
        return check_result
    return _excepted(without, keys) if isinstance(without.outcome, Violated | Errored) else check_result


def _undecided(check_result: CheckResult, reason: str) -> CheckResult:
    if isinstance(check_result.outcome, Violated | Errored):
        return check_result._replace(outcome=Skipped(SkipReason.NOT_AUDITABLE, reason))
    return check_result


def _message(validation: Validation, expression: Expression | None, values: Values) -> str:
    """The message, or the result of its expression, errors included."""
    if expression is None:
        return validation.message
    value = run(expression, values)
    return f"failed to evaluate message expression: {value.text}" if isinstance(value, Fault) else str(value)


def _replaced(outcome: Outcome) -> Outcome:
    return REPLACED_FAILURE if isinstance(outcome, Violated) else _REPLACED


def _annotate(annotation: AuditAnnotation, expression: Expression, values: Values, before: str) -> Outcome:
    value = run(expression, values)
    if isinstance(value, Fault) and value.unavailable:
        return Skipped(SkipReason.NOT_AUDITABLE, value.text)
    if isinstance(value, Fault):
        return _error(f"{before}failed to evaluate auditAnnotation '{annotation.key}': {value.text}")
    if not isinstance(value, str):
        converting = f"failed to convert auditAnnotation '{annotation.key}' expression"
        return _error(f"{before}{converting}: type conversion error from 'null_type' to 'string'")
    return Passed(annotation=value)
