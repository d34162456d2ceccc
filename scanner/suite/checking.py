"""Compares a suite's expectations with the results of its policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from scanner.api import Auditor, InvocationResult, KyvernoContext, Schemas
from scanner.model.json import Json, JsonObject, as_text, dig
from scanner.model.outcome import CheckResult, Errored, Passed, Skipped, SkipReason, Violated, WouldChange
from scanner.model.policy import Operation
from scanner.model.resource import Kind
from scanner.policies.kyverno.modes import ADMISSION, CLI
from scanner.policies.kyverno.result import result_of
from scanner.policies.kyverno.spec import KyvernoPolicy, is_policy, read_policy
from scanner.suite.form import Expectation, Suite
from scanner.suite.given import Given, with_unknown
from scanner.suite.loading import bound, placed

NOT_MATCHED = "not matched"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a policy for one object: pass, fail, error, skip or `NOT_MATCHED`, as policy reports name it."""

    status: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """An expectation about the objects of one name, with a result for each object and each autogen variant of the policy."""

    expectation: Expectation
    resource: str
    results: tuple[Result, ...]

    @property
    def right(self) -> bool:
        """Return whether every matched object has the expected result; without a matched object the result is skip."""
        matched = [result for result in self.results if result.status != NOT_MATCHED]
        return all(_meets(self.expectation, result) for result in matched or [Result("skip")])


def _meets(expectation: Expectation, result: Result) -> bool:
    return result.status == expectation.result and expectation.message in ("", result.message)


def check(
    suite: Suite,
    kinds: Iterable[Kind],
    schemas: Schemas,
    now: datetime,
    parse: Callable[[str], Json] | None = None,
) -> Iterator[Checked]:
    """Evaluate every object that an expectation names. Raises UsageError and SchemaUnknown as `Auditor` does."""
    evaluation = _SuiteEvaluation(suite, kinds, schemas, now, parse)
    for expectation in suite.expectations:
        for name in expectation.resources or ("",):
            yield Checked(expectation, name, tuple(evaluation.results(expectation, name)))


class _SuiteEvaluation:
    """The policies of a suite, prepared to evaluate its objects."""

    def __init__(
        self,
        suite: Suite,
        kinds: Iterable[Kind],
        schemas: Schemas,
        now: datetime,
        parse: Callable[[str], Json] | None,
    ) -> None:
        loads = self._loads = suite.as_command_line
        served_kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._objects = (
            [placed(document, served_kinds, unknown=loads) for document in suite.resources]
            if loads
            else [*suite.resources]
        )
        served = with_unknown(served_kinds.values(), (*self._objects, *suite.given))
        policies = [*bound(suite.policies)] if loads else [*suite.policies]
        kyverno = [read_policy(document) for document in policies if is_policy(document)]
        self._kyverno: Mapping[tuple[str, str], KyvernoPolicy] = {
            (policy.kind, policy.full_name): policy for policy in kyverno
        }
        table = {(kind.api_version, kind.kind): kind for kind in served}
        given = Given(table, suite.given, suite.images, suite.answers, suite.entries, parse)
        mode = replace(CLI, create_only=False) if loads else ADMISSION
        self._kyverno_context = KyvernoContext(now, mode, given, ("CREATE", "UPDATE", "DELETE"))
        self._suite, self._policies, self._kinds, self._schemas = suite, policies, served, schemas
        self._auditors: dict[bool, Auditor] = {}

    def _auditor(self, operation: Operation) -> Auditor:
        """The policies that can be evaluated for an operation: for a DELETE, Kyverno's alone."""
        deletes = operation == "DELETE"
        if deletes not in self._auditors:
            documents = [document for document in self._policies if is_policy(document) or not deletes]
            self._auditors[deletes] = Auditor(
                policies=[document for document in documents if as_text(document.get("kind")).endswith("Policy")],
                bindings=[document for document in documents if as_text(document.get("kind")).endswith("Binding")],
                params=self._suite.params,
                namespaces=self._suite.namespaces,
                kinds=self._kinds,
                user=self._suite.user,
                schemas=self._schemas,
                exceptions=self._suite.exceptions,
                kyverno_context=self._kyverno_context,
            )
        return self._auditors[deletes]

    def results(self, expectation: Expectation, name: str) -> Iterator[Result]:
        """The results of the policy for the objects of a name, or for all objects if none has that name."""
        namespace, _, short_name = name.rpartition("/")
        named = [document for document in self._objects if short_name in ("", dig(document, "metadata", "name"))]
        chosen = [document for document in named if namespace in ("", dig(document, "metadata", "namespace"))]
        for document in chosen or self._objects:
            yield from self._about(document, expectation)

    def _about(self, document: JsonObject, expectation: Expectation) -> Iterator[Result]:
        invocation_results = [
            invocation_result
            for invocation_result in self._auditor(expectation.operation).evaluate(
                document, operation=expectation.operation
            )
            if _short(invocation_result.invocation.policy.name) == _short(expectation.policy)
        ]
        yield from map(self._result, invocation_results) if invocation_results else (Result(NOT_MATCHED),)

    def _result(self, invocation_result: InvocationResult) -> Result:
        variant = invocation_result.invocation.policy
        excepted = next((check.excepted_by for check in invocation_result.check_results if check.excepted_by), "")
        policy = self._kyverno.get((variant.language, variant.name))
        if policy is not None and not (excepted and not self._loads):
            result = result_of(policy, variant, invocation_result.check_results)
            return Result(result.status, result.message)
        if excepted:
            return Result("skip", f"excepted by {excepted}")
        results = map(_result_of, invocation_result.check_results)
        return next((result for result in results if result.status != "pass"), Result("pass"))


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _result_of(check_result: CheckResult) -> Result:
    match check_result.outcome:
        case Passed() | WouldChange():
            return Result("pass")
        case Violated(message=message):
            return Result("fail", message)
        case Errored(message=message):
            return Result("error", message)
        case Skipped(reason=SkipReason.CONDITION_FALSE, detail=detail):
            return Result("skip", detail)
        case Skipped(detail=detail):
            return Result("error", detail)
