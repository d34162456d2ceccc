"""A suite's expectations against what the policies really say."""

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
class Said:
    """What a policy says about one object, in the words of a report."""

    status: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """One expectation about the objects of one name. `said` has an entry for each of them, and for each form that spoke."""

    expectation: Expectation
    resource: str
    said: tuple[Said, ...]

    @property
    def right(self) -> bool:
        """Whether every object that the policy matches is judged as expected; when it matches none, they are skipped."""
        matched = [one for one in self.said if one.status != NOT_MATCHED]
        return all(_meets(self.expectation, one) for one in matched or [Said("skip")])


def _meets(expectation: Expectation, said: Said) -> bool:
    return said.status == expectation.result and expectation.message in ("", said.message)


def check(
    suite: Suite,
    kinds: Iterable[Kind],
    schemas: Schemas,
    now: datetime,
    parse: Callable[[str], Json] | None = None,
) -> Iterator[Checked]:
    """Judge every object that an expectation names. Raises UsageError and SchemaUnknown as `Auditor` does."""
    court = _Court(suite, kinds, schemas, now, parse)
    for expectation in suite.expectations:
        for name in expectation.resources or ("",):
            yield Checked(expectation, name, tuple(court.said(expectation, name)))


class _Court:
    """The policies of a suite, ready to judge its objects."""

    def __init__(
        self,
        suite: Suite,
        kinds: Iterable[Kind],
        schemas: Schemas,
        now: datetime,
        parse: Callable[[str], Json] | None,
    ) -> None:
        loads = self._loads = suite.as_command_line
        known = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._objects = [placed(one, known, unknown=loads) for one in suite.resources] if loads else [*suite.resources]
        served = with_unknown(known.values(), (*self._objects, *suite.given))
        policies = [*bound(suite.policies)] if loads else [*suite.policies]
        kyverno = [read_policy(document) for document in policies if is_policy(document)]
        self._kyverno: Mapping[tuple[str, str], KyvernoPolicy] = {(one.kind, one.full_name): one for one in kyverno}
        table = {(kind.api_version, kind.kind): kind for kind in served}
        given = Given(table, suite.given, suite.images, suite.answers, suite.entries, parse)
        mode = replace(CLI, create_only=False) if loads else ADMISSION
        self._circumstances = KyvernoContext(now, mode, given, ("CREATE", "UPDATE", "DELETE"))
        self._suite, self._policies, self._kinds, self._schemas = suite, policies, served, schemas
        self._auditors: dict[bool, Auditor] = {}

    def _auditor(self, operation: Operation) -> Auditor:
        """The policies that can be asked about an operation: about a DELETE, Kyverno's."""
        deletes = operation == "DELETE"
        if deletes not in self._auditors:
            asked = [one for one in self._policies if is_policy(one) or not deletes]
            self._auditors[deletes] = Auditor(
                policies=[one for one in asked if as_text(one.get("kind")).endswith("Policy")],
                bindings=[one for one in asked if as_text(one.get("kind")).endswith("Binding")],
                params=self._suite.params,
                namespaces=self._suite.namespaces,
                kinds=self._kinds,
                user=self._suite.user,
                schemas=self._schemas,
                exceptions=self._suite.exceptions,
                kyverno_context=self._circumstances,
            )
        return self._auditors[deletes]

    def said(self, expectation: Expectation, name: str) -> Iterator[Said]:
        """What the policy says about the objects of a name; about all objects when nothing is called so."""
        namespace, _, without_param = name.rpartition("/")
        named = [one for one in self._objects if without_param in ("", dig(one, "metadata", "name"))]
        chosen = [one for one in named if namespace in ("", dig(one, "metadata", "namespace"))]
        for document in chosen or self._objects:
            yield from self._about(document, expectation)

    def _about(self, document: JsonObject, expectation: Expectation) -> Iterator[Said]:
        invocation_results = [
            invocation_result
            for invocation_result in self._auditor(expectation.operation).evaluate(
                document, operation=expectation.operation
            )
            if _short(invocation_result.invocation.policy.name) == _short(expectation.policy)
        ]
        yield from map(self._word, invocation_results) if invocation_results else (Said(NOT_MATCHED),)

    def _word(self, invocation_result: InvocationResult) -> Said:
        form = invocation_result.invocation.policy
        excepted = next((one.excepted_by for one in invocation_result.check_results if one.excepted_by), "")
        policy = self._kyverno.get((form.language, form.name))
        if policy is not None and not (excepted and not self._loads):
            result = result_of(policy, form, invocation_result.check_results)
            return Said(result.status, result.message)
        if excepted:
            return Said("skip", f"excepted by {excepted}")
        return next(
            (said for said in map(_said, invocation_result.check_results) if said.status != "pass"), Said("pass")
        )


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _said(check_result: CheckResult) -> Said:
    match check_result.outcome:
        case Passed() | WouldChange():
            return Said("pass")
        case Violated(message=message):
            return Said("fail", message)
        case Errored(message=message):
            return Said("error", message)
        case Skipped(reason=SkipReason.CONDITION_FALSE, detail=detail):
            return Said("skip", detail)
        case Skipped(detail=detail):
            return Said("error", detail)
