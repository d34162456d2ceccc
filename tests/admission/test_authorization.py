"""Policies that read the authorizer: its answer decides; without an authorizer they are not auditable."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.api import Auditor, UserInfo
from scanner.cel import AuthorizerAnswer, Question
from scanner.cluster.definitions import builtin_kinds
from scanner.model.json import JsonObject
from scanner.model.outcome import Errored, Outcome, Passed, Skipped, SkipReason, Violated

BOB = UserInfo("bob", uid="u-1", groups=("dev",))
MAY_DEPLOY = "authorizer.group('apps').resource('deployments').namespace('n').check('create').allowed()"
POD: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "n"}, "spec": {}}


class FakeAuthorizer:
    """An authorizer that allows the actions of the named subjects, and records the questions."""

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed
        self.asked: list[Question] = []

    def decide(self, question: Question) -> AuthorizerAnswer:
        self.asked.append(question)
        return AuthorizerAnswer(allowed=question.subject.username in self._allowed)


def auditor(spec: dict[str, Any], fake_authorizer: FakeAuthorizer | None) -> Auditor:
    """An auditor of one bound policy for pods."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    return Auditor(
        policies=[
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": "p"},
                "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec},
            }
        ],
        bindings=[
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": "b"},
                "spec": {"policyName": "p", "validationActions": ["Deny"]},
            }
        ],
        kinds=builtin_kinds(),
        user=BOB,
        authorizer=fake_authorizer,
    )


def outcome(spec: dict[str, Any], fake_authorizer: FakeAuthorizer | None) -> Outcome:
    """The outcome of the policy's first check on a pod."""
    (invocation_result,) = auditor(spec, fake_authorizer).evaluate(POD)
    return invocation_result.check_results[0].outcome


@pytest.mark.parametrize(
    ("fake_authorizer", "expected"),
    [
        (FakeAuthorizer("bob"), Passed),
        (FakeAuthorizer(), Violated),
        (FakeAuthorizer("alice"), Violated),
        (None, Skipped),
    ],
)
def test_validations_read_the_requesters_permissions(
    fake_authorizer: FakeAuthorizer | None, expected: type[Outcome]
) -> None:
    """The requester's permission decides; without an authorizer the check is not auditable."""
    assert expected is type(outcome({"validations": [{"expression": MAY_DEPLOY}]}, fake_authorizer))


def test_unanswered_questions_are_skipped_for_their_reason() -> None:
    """A check without an answer is skipped."""
    result = outcome({"validations": [{"expression": MAY_DEPLOY}]}, None)
    assert isinstance(result, Skipped)
    assert SkipReason.NOT_AUDITABLE is result.reason


def test_the_request_resource_is_the_one_of_the_request() -> None:
    """`authorizer.requestResource` has the resource of the request."""
    fake_authorizer = FakeAuthorizer("bob")
    outcome({"validations": [{"expression": "authorizer.requestResource.check('x').allowed()"}]}, fake_authorizer)
    (question,) = fake_authorizer.asked
    actual = (
        question.group,
        question.version,
        question.resource,
        question.subresource,
        question.namespace,
        question.name,
    )
    assert actual == ("", "*", "pods", "", "n", "web")


def test_conditions_read_the_authorizer() -> None:
    """A match condition that the authorizer denies skips the policy."""
    spec = {
        "matchConditions": [{"name": "allowed", "expression": MAY_DEPLOY}],
        "validations": [{"expression": "false"}],
    }
    results = [outcome(spec, fake_authorizer) for fake_authorizer in (FakeAuthorizer(), FakeAuthorizer("bob"))]
    assert [Skipped, Violated] == [type(result) for result in results]


def test_variables_may_read_the_authorizer() -> None:
    """A variable that a validation reads has the authorizer."""
    spec = {
        "variables": [{"name": "may", "expression": MAY_DEPLOY}],
        "validations": [{"expression": "variables.may"}],
    }
    assert isinstance(outcome(spec, FakeAuthorizer("bob")), Passed)


def test_messages_may_not_read_the_authorizer() -> None:
    """A variable that reads the authorizer is an error in a messageExpression, so the message is used."""
    spec = {
        "variables": [{"name": "may", "expression": MAY_DEPLOY}],
        "validations": [
            {"expression": "false", "message": "written", "messageExpression": "string(variables.may)"},
        ],
    }
    result = outcome(spec, FakeAuthorizer("bob"))
    assert isinstance(result, Violated)
    assert result.message == "written"


def test_audit_annotations_may_not_read_the_authorizer() -> None:
    """Audit annotations compile with the authorizer, and have no value for it."""
    expression = f"{MAY_DEPLOY} ? 'yes' : 'no'"
    spec = {"auditAnnotations": [{"key": "k", "valueExpression": expression}]}
    result = outcome(spec, FakeAuthorizer("bob"))
    assert isinstance(result, Errored)
    assert f"expression '{expression}' resulted in error: no such attribute(s): authorizer" == result.message


def test_nothing_is_asked_twice() -> None:
    """Equal questions of many objects are one request."""
    fake_authorizer = FakeAuthorizer("bob")
    policy_auditor = auditor({"validations": [{"expression": MAY_DEPLOY}]}, fake_authorizer)
    for _ in range(3):
        policy_auditor.evaluate(POD)
    assert len(fake_authorizer.asked) == 1
