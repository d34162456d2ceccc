"""Fields of a manifest beyond the admission API: policies that are not for stored objects, and unknown fields."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.errors import InvalidManifest
from scanner.policies.kyverno.spec import is_policy, read_policy
from tests.policies.kyverno.made import invocation_results, policy
from tests.policies.kyverno.made import pod as a_pod


@pytest.mark.parametrize(
    ("expected", "manifest"),
    [
        ("", policy("true")),
        ("evaluation.background.enabled is false", policy("true", evaluation={"background": {"enabled": False}})),
        ("evaluation.mode JSON", policy("true", evaluation={"mode": "JSON"})),
        ("evaluation.mode HTTP", policy("true", evaluation={"mode": "HTTP"})),
        ("evaluation.mode Envoy", policy("true", evaluation={"mode": "Envoy"})),
        ("", policy("true", evaluation={"mode": "Kubernetes", "background": {"interval": "1h"}})),
        ("reports.kyverno.io/disabled", policy("true", metadata={"labels": {"reports.kyverno.io/disabled": "false"}})),
    ],
)
def test_some_policies_are_not_for_stored_objects(expected: str, manifest: Any) -> None:
    """The policy has a reason, and no object is evaluated."""
    reason = read_policy(manifest).unauditable()
    assert (True, not expected) == (expected in reason, bool(invocation_results(a_pod(), manifest)))


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_all_versions_are_one(version: str) -> None:
    """All versions have one schema."""
    assert is_policy({**policy("true"), "apiVersion": f"policies.kyverno.io/{version}"})


@pytest.mark.parametrize(
    "document",
    [
        {"apiVersion": "kyverno.io/v1", "kind": "ValidatingPolicy"},
        {"apiVersion": "policies.kyverno.io/v1", "kind": "MutatingPolicy"},
    ],
)
def test_other_kinds_are_not_meant(document: Any) -> None:
    """Older groups and other kinds of the group are not read."""
    assert not is_policy(document)


def test_unknown_fields_are_recorded_and_not_fatal() -> None:
    """Unknown fields are recorded by their paths."""
    manifest = policy({"expression": "true", "severity": "high"}, later={"a": 1}, match={"paramRef": 1})
    expected = {"spec.validations[0].severity", "spec.later", "spec.matchConstraints.paramRef"}
    assert expected == set(read_policy(manifest).unknown)


def test_every_known_field_is_known() -> None:
    """A policy that uses the whole schema has no unknown field."""
    manifest = policy(
        {"expression": "true", "message": "a", "messageExpression": "'a'", "reason": "Invalid"},
        match={
            "matchPolicy": "Exact",
            "namespaceSelector": {"matchLabels": {"any": "label"}},
            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            "excludeResourceRules": [{"resourceNames": ["x"], "scope": "*"}],
        },
        variables=[{"name": "a", "expression": "1"}],
        auditAnnotations=[{"key": "a", "valueExpression": "'a'"}],
        failurePolicy="Fail",
        validationActions=["Audit"],
        autogen={"podControllers": {"controllers": []}, "validatingAdmissionPolicy": {"enabled": True}},
        evaluation={
            "mode": "Kubernetes",
            "admission": {"enabled": True},
            "background": {"enabled": True, "interval": "1h"},
        },
        webhookConfiguration={"timeoutSeconds": 5},
    )
    assert () == read_policy(manifest).unknown


TIMEOUT = "spec.webhookConfiguration.timeoutSeconds"


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        (
            'spec.failurePolicy: Unsupported value: "Perhaps": supported values: "Ignore", "Fail"',
            {"failurePolicy": "Perhaps"},
        ),
        (
            'spec.validationActions[0]: Unsupported value: "Block": supported values: "Deny", "Audit", "Warn"',
            {"validationActions": ["Block"]},
        ),
        ('spec.failurePolicy: Unsupported value: "": supported values: "Ignore", "Fail"', {"failurePolicy": ""}),
        (
            f'{TIMEOUT}: Invalid value: "string": {TIMEOUT} in body must be of type integer: "string"',
            {"webhookConfiguration": {"timeoutSeconds": "5"}},
        ),
        (
            'spec.matchConstraints: Invalid value: "array": spec.matchConstraints in body must be of type object: "array"',
            {"matchConstraints": []},
        ),
        ('spec.validationActions[1]: Duplicate value: "Deny"', {"validationActions": ["Deny", "Deny"]}),
        (
            f'{TIMEOUT}: Invalid value: "float64": {TIMEOUT} in body must be of type int32: "float64"',
            {"webhookConfiguration": {"timeoutSeconds": 1.5}},
        ),
        ("spec.validations[0].expression: Required value", {"validations": [{"message": "m"}]}),
        (
            'spec.variables[1]: Duplicate value: {"name":"a"}',
            {"variables": [{"name": "a", "expression": "1"}, {"name": "a", "expression": "2"}]},
        ),
        (
            "spec.matchConstraints: Required value: a matchConstraints with at least one resource rule is required",
            {"matchConstraints": {}},
        ),
    ],
)
def test_a_policy_in_a_file_is_held_to_what_the_webhook_takes(expected: str, changes: Any) -> None:
    """Assay refuses the policies that Kyverno refuses, and names the field."""
    manifest = policy("true")
    manifest["spec"] |= changes
    with pytest.raises(InvalidManifest) as caught:
        read_policy(manifest, source="policies.yaml")
    assert (expected,) == caught.value.reasons


def test_null_in_a_file_is_an_absent_field() -> None:
    """The server drops null before it validates the schema."""
    manifest = policy("true", failurePolicy=None, variables=None, matchConditions=None)
    assert "Fail" == read_policy(manifest, source="policies.yaml").failure_policy


def test_without_actions_a_policy_denies() -> None:
    """Kyverno's default action is Deny."""
    assert ("Deny",) == read_policy(policy("true")).actions
