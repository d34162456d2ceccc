"""The values that a policy's expressions read decide how far an audit can replace admission."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.admission.auditability import classify_policy
from scanner.admission.compiled import compile_policy
from scanner.model.outcome import Check, CheckKind
from scanner.model.reading import Auditability, Reading
from scanner.policies.validating.language import read_policy
from tests import documents
from tests.documents import rule

FULL, REQUESTER, OLD, SERVER, AUTHORIZER, OPERATIONS = Auditability


def read(*expressions: str, **spec: Any) -> Reading:
    """The reading of a policy on pods."""
    return classify_policy(compile_policy(read_policy(documents.policy("p", *expressions, **spec))))


@pytest.mark.parametrize(
    ("expression", "classes"),
    [
        ("object.spec.hostNetwork == true", (FULL,)),
        ("has(object.metadata.labels) && request.namespace == 'x'", (FULL,)),
        ("request.operation == 'CREATE'", (FULL,)),
        ("request.userInfo.username == 'bob'", (REQUESTER,)),
        ("'dev' in request.userInfo.groups", (REQUESTER,)),
        ("has(request.userInfo.uid)", (REQUESTER,)),
        ("dyn(request)['userInfo'].username == 'bob'", (REQUESTER,)),
        ("dyn(request) == null", (REQUESTER,)),
        ("request.dryRun", (REQUESTER,)),
        ("request.options.fieldManager == 'kubectl'", (REQUESTER,)),
        ("oldObject == null", (OLD,)),
        ("object.spec == oldObject.spec", (OLD,)),
        ("object.spec.x == oldObject.spec.x", (OLD,)),
        ("object == oldObject", (OLD, SERVER)),
        ("has(object.status)", (SERVER,)),
        ("object.status.phase == 'Running'", (SERVER,)),
        ("object.metadata.uid != ''", (SERVER,)),
        ("object.metadata.creationTimestamp != ''", (SERVER,)),
        ("size(object.metadata.managedFields) > 0", (SERVER,)),
        ("object.spec.nodeName != ''", (SERVER,)),
        ("object.spec.claimRef.name != ''", (SERVER,)),
        ("object.spec == null", (FULL,)),
        ("object.metadata == null", (SERVER,)),
        ("namespaceObject.metadata.name == 'x'", (FULL,)),
        ("authorizer.group('').resource('pods').check('get').allowed()", (REQUESTER, AUTHORIZER)),
        ("authorizer.requestResource.check('get').allowed()", (REQUESTER, AUTHORIZER)),
        ("authorizer.serviceAccount('a', 'b').group('').resource('x').check('get').allowed()", (REQUESTER, AUTHORIZER)),
        ("object.spec.[", (FULL,)),
    ],
)
def test_classes_follow_from_what_is_read(expression: str, classes: tuple[Auditability, ...]) -> None:
    """A whole value counts as all its fields; an expression that does not compile reads nothing."""
    assert classes == read(expression).classes


def test_variables_read_for_those_that_use_them() -> None:
    """A variable's reads belong to its users, also through other variables; an unused variable is never evaluated."""
    variables = [
        {"name": "who", "expression": "request.userInfo.username"},
        {"name": "bob", "expression": "variables.who == 'bob'"},
        {"name": "unused", "expression": "oldObject"},
    ]
    assert (REQUESTER,) == read("variables.bob", variables=variables).classes
    assert (FULL,) == read("object.spec.x == 1", variables=variables).classes


def test_match_conditions_read_for_every_check() -> None:
    """Match conditions decide whether a check is evaluated."""
    conditions = [{"name": "c", "expression": "request.userInfo.username != 'bob'"}]
    policy_reading = read("object.spec.x == 1", "oldObject == null", matchConditions=conditions)
    assert [(REQUESTER,), (REQUESTER,), (REQUESTER, OLD)] == [
        check_reading.classes for check_reading in policy_reading.checks
    ]
    assert (REQUESTER, OLD) == policy_reading.classes


def test_each_check_has_its_own_classes() -> None:
    """Only checks that read the requester depend on the requester; audit annotations are checks."""
    annotations = [{"key": "k", "valueExpression": "request.userInfo.username"}]
    policy_reading = read("object.spec.x == 1", "request.userInfo.username == 'bob'", auditAnnotations=annotations)
    assert [(), (REQUESTER,), (REQUESTER,)] == [check_reading.classes for check_reading in policy_reading.checks]
    assert (REQUESTER,) == policy_reading.classes_of(Check(CheckKind.AUDIT_ANNOTATION, 0, "request.userInfo.username"))
    assert () == policy_reading.classes_of(Check(CheckKind.CONFIGURATION))


def test_messages_decide_no_outcome() -> None:
    """No outcome depends on a messageExpression that reads the requester."""
    validations = [{"expression": "object.spec.x == 1", "messageExpression": "request.userInfo.username"}]
    assert (FULL,) == read(validations=validations).classes


def test_rules_without_a_write_make_a_policy_unauditable() -> None:
    """The policy has a reason besides the classes of its reads."""
    policy_reading = read(
        "oldObject.spec.x == 1", matchConstraints={"resourceRules": [rule("pods", operations=["DELETE"])]}
    )
    assert (OLD, OPERATIONS) == policy_reading.classes
    assert "its rules name only DELETE: no write of a stored object" == policy_reading.reason


def test_a_question_about_updates_alone_leaves_creations_out() -> None:
    """The reason names the flag that chose the operation."""
    spec = {"matchConstraints": {"resourceRules": [rule("pods", operations=["CREATE"])]}}
    compiled = compile_policy(read_policy(documents.policy("p", "true", **spec)))
    assert "its rules name only CREATE: this scan asks about UPDATE alone, see --operation" == (
        classify_policy(compiled, ("UPDATE",)).reason
    )
    assert "" == classify_policy(compiled, ("CREATE",)).reason


def test_what_no_operation_could_answer_is_not_blamed_on_the_chosen_one() -> None:
    """No scan can audit a policy for deletions alone."""
    spec = {"matchConstraints": {"resourceRules": [rule("pods", operations=["DELETE"])]}}
    compiled = compile_policy(read_policy(documents.policy("p", "true", **spec)))
    assert "its rules name only DELETE: no write of a stored object" == classify_policy(compiled, ("UPDATE",)).reason
