"""The one result in Kyverno's report for a policy and an object."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.policies.kyverno.result import Result
from tests.policies.kyverno.made import pod, policy, result

PROCESS = {"process": "background scan"}
ANNOTATED = [{"key": "team", "valueExpression": "'a'"}, {"key": "empty", "valueExpression": "''"}]
BROKEN = [{"key": "team", "valueExpression": "string(object.none)"}]


@pytest.mark.parametrize(
    ("expected", "manifest"),
    [
        (Result("pass", "success", properties=PROCESS), policy("true")),
        (Result("pass", "success", properties=PROCESS), policy()),
        (
            Result("fail", "no", properties={"cel.validationIndex": "1", **PROCESS}),
            policy("true", {"expression": "false", "message": "no"}, "false"),
        ),
        (
            Result("error", "error: no such key: none", properties={"cel.validationIndex": "0", **PROCESS}),
            policy("object.none == 1"),
        ),
        (
            Result("error", "failed to load context: no such key: none", "evaluation", PROCESS),
            policy("true", matchConditions=[{"name": "a", "expression": "object.none == 1"}]),
        ),
        (
            Result("skip", "skip", "", PROCESS, unmet=True),
            policy("true", matchConditions=[{"name": "a", "expression": "false"}]),
        ),
        (
            Result("skip", "skip", "", PROCESS, unmet=True),
            policy("true", failurePolicy="Ignore", matchConditions=[{"name": "a", "expression": "object.none == 1"}]),
        ),
        (Result("pass", "success", properties={"team": "a", **PROCESS}), policy("true", auditAnnotations=ANNOTATED)),
        (
            Result(
                "fail",
                "CEL expression validation failed at index 0",
                properties={"team": "a", "cel.validationIndex": "0", **PROCESS},
            ),
            policy("false", auditAnnotations=ANNOTATED),
        ),
        (
            Result(
                "error",
                "error: failed to evaluate auditAnnotation 'team': no such key: none",
                properties={"cel.validationIndex": "0", **PROCESS},
            ),
            policy("false", auditAnnotations=BROKEN),
        ),
        (
            Result(
                "error",
                "failed to load context: failed to evaluate auditAnnotation 'team': no such key: none",
                "evaluation",
                PROCESS,
            ),
            policy("true", auditAnnotations=BROKEN),
        ),
    ],
)
def test_a_policy_has_one_result_for_an_object(expected: Result, manifest: Any) -> None:
    """Status, message, rule and properties are those of Kyverno's scan."""
    assert expected == result(pod(), manifest)


@pytest.mark.parametrize(
    ("expected", "keys"),
    [
        ("own words", {"failMessage": "own words"}),
        ("other", {"failMessage": "own words", "message": "other"}),
        ("no", {"passMessage": "own words"}),
    ],
)
def test_properties_can_replace_the_message(expected: str, keys: dict[str, str]) -> None:
    """The property of the status replaces the message, and the property `message` replaces both."""
    annotations = [{"key": key, "valueExpression": f"'{value}'"} for key, value in keys.items()]
    manifest = policy({"expression": "false", "message": "no"}, auditAnnotations=annotations)
    assert expected == result(pod(), manifest).message


@pytest.mark.parametrize(("expected", "value"), [("warn", "false"), ("fail", "False"), ("fail", "true")])
def test_a_failure_of_an_unscored_policy_is_a_warning(expected: str, value: str) -> None:
    """Only the text `false` makes a policy unscored."""
    metadata = {"annotations": {"policies.kyverno.io/scored": value}}
    assert expected == result(pod(), policy("false", metadata=metadata)).status
