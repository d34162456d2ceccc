"""The evidence of a language without expressions: values of the fields that it names, without secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scanner.admission.compiled import CompiledPolicy, list_checks
from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy, InvocationResult, list_requests
from scanner.audit import redact
from scanner.audit.evidence import collect_evidence
from scanner.audit.evidence.redaction import WITHHELD
from scanner.model.outcome import CheckResult, FieldPlace, Violated
from scanner.model.resource import resource_of
from scanner.policies.validating.language import read_binding, read_policy
from scanner.scan.param_table import ParamTable
from tests.documents import KINDS, PODS, SECRETS, Document, binding, namespace, policy, rule, thing

POLICY = read_policy(policy("p", "fields", matchConstraints={"resourceRules": [rule("pods", "secrets")]}))
BOUND = BoundPolicy(CompiledPolicy.make_without_expressions(POLICY, list_checks(POLICY)), (read_binding(binding()),))
SPACE = namespace("default", **{"db-token": "hunter2hunter2", "team": "a"})
POD = thing(
    PODS,
    "web",
    "default",
    spec={
        "hostNetwork": True,
        "priority": 5,
        "containers": [{"name": "app", "args": [], "env": [{"name": "TOKEN", "value": "opensesame"}]}],
    },
)
SECRET = thing(SECRETS, "s", "default", metadata={"labels": {"app": "web"}}, data={"opensesame": "b3BlbnNlc2FtZQ=="})


def result_of(body: Document) -> InvocationResult:
    """The invocation of the policy for an object."""
    kind = next(kind for kind in KINDS if kind.kind == body["kind"])
    context = EvaluationContext(ParamTable(KINDS), {"default": SPACE})
    (result,) = list_requests(BOUND, resource_of(kind, body), kind, context)
    return result


def reasons(body: Document, *places: FieldPlace) -> list[tuple[str, str, str]]:
    """Expression, value and path of the reasons of a violation that these fields decided."""
    check_result = CheckResult(BOUND.compiled.checks[0], Violated("no"), fields=places)
    return [
        (each.expression, each.value, each.path)
        for each in collect_evidence(result_of(body), check_result, BOUND).reasons
    ]


LABELS = ("namespaceObject", "metadata", "labels")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (("object", "spec", "hostNetwork"), ("object.spec.hostNetwork", "true", "spec.hostNetwork")),
        (("object", "spec", "priority"), ("object.spec.priority", "5", "spec.priority")),
        (
            ("object", "spec", "containers", 0, "args"),
            ("object.spec.containers[0].args", "[]", "spec.containers[0].args"),
        ),
        (
            ("object", "spec", "containers", 1, "name"),
            ("object.spec.containers[1].name", "not set", "spec.containers[1].name"),
        ),
        (("object", "spec", "hostPID"), ("object.spec.hostPID", "not set", "spec.hostPID")),
        (
            ("object", "spec", "hostNetwork", "deeper"),
            ("object.spec.hostNetwork.deeper", "not set", "spec.hostNetwork.deeper"),
        ),
        ((*LABELS, "team"), ("namespaceObject.metadata.labels.team", '"a"', "namespaceObject.metadata.labels.team")),
    ],
    ids=["true", "number", "list", "no item", "absent", "below a value", "namespace"],
)
def test_a_field_has_its_value_and_its_path(place: FieldPlace, expected: tuple[str, str, str]) -> None:
    """A text is quoted, as in CEL, so that *not set* is no text."""
    assert [expected] == reasons(POD, place)


def test_a_whole_object_is_shown_without_its_secrets() -> None:
    """The value of a variable with the name of a secret is masked in it."""
    ((expression, value, _),) = reasons(POD, ("object", "spec", "containers"))

    assert ("object.spec.containers", True, False) == (expression, "[redacted]" in value, "opensesame" in value)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (POD, ("object", "spec", "containers", 0, "env", 0, "value")),
        (POD, (*LABELS, "db-token")),
        (SECRET, ("object", "data", "opensesame")),
        (SECRET, ("object", "data", "absent")),
        (SECRET, ("object", "data")),
    ],
    ids=["variable", "label", "data of a Secret", "absent data", "all data"],
)
def test_a_field_that_may_hold_a_secret_is_withheld(body: Document, place: FieldPlace) -> None:
    """The language names the place of a field; evidence alone decides what is shown of it, and shows no key of a Secret."""
    ((expression, value, path),) = reasons(body, place)

    assert (WITHHELD, False) == (value, any("opensesame" in text for text in (expression, path)))


def test_a_document_that_no_request_has_is_an_error_of_the_language() -> None:
    """The verdict stands, and its evidence states the internal error."""
    ((expression, value, _),) = reasons(POD, ("cluster", "name"))

    assert ("", True) == (expression, value.startswith("it could not be explained: internal error"))


def message(body: Document, text: str) -> Any:
    """The message of a violation as it is stored."""
    return redact.redact_outcome(Violated(text), BOUND.compiled.checks[0], result_of(body), BOUND.compiled)


def test_a_message_has_no_secret() -> None:
    """Secrets of the object are masked wherever they stand; nothing is shown of a message about a Secret."""
    assert "it uses [redacted]" == message(POD, "it uses opensesame").message
    assert redact.WITHHELD == message(SECRET, "it has the key opensesame").message


def test_a_message_of_the_policy_is_shown_as_it_is_written() -> None:
    """Its words are those of the policy, and not of an object."""
    written = replace(POLICY, validations=(replace(POLICY.validations[0], message="opensesame is wrong"),))
    compiled = CompiledPolicy.make_without_expressions(written, list_checks(written))
    outcome = Violated("opensesame is wrong")

    assert outcome == redact.redact_outcome(outcome, compiled.checks[0], result_of(POD), compiled)
