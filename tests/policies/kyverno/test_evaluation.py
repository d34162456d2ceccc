"""The evaluation of an object by a ValidatingPolicy: conditions, variables, validations, messages, annotations, scope."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.model.outcome import Errored, Passed, Skipped, SkipReason, Violated
from scanner.policies.kyverno.modes import CLI, CONTROLLER
from tests.policies.kyverno.made import MODES, check_results, invocation_results, outcomes, pod, policy, result


def test_every_validation_is_evaluated() -> None:
    """Kyverno stops at the first failure; an audit evaluates every validation."""
    assert ["Passed", "Violated", "Errored", "Passed"] == outcomes(
        pod(), policy("true", "false", "object.none == 1", "true")
    )


def test_in_kyvernos_mode_the_first_failure_ends_the_evaluation() -> None:
    """The validations after the first failure are not evaluated."""
    results = check_results(pod(), policy("true", "false", "true"), mode=CONTROLLER)
    assert ["Passed", "Violated", "Skipped"] == [type(result.outcome).__name__ for result in results]


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_an_error_in_a_validation_denies_with_every_failure_policy(failure_policy: str) -> None:
    """The failurePolicy applies to match conditions alone."""
    (check_result,) = check_results(pod(), policy("object.none == 1", failurePolicy=failure_policy))
    assert Errored("error: no such key: none", would_deny=True, reason="", code=400) == check_result.outcome


CONDITIONS = {
    "error": {"name": "error", "expression": "object.none == 1"},
    "false": {"name": "false", "expression": "false"},
    "kept": {"name": "kept", "expression": "exceptions.allowedImages == []"},
    "true": {"name": "true", "expression": "true"},
}


@pytest.mark.parametrize(
    ("expected", "failure_policy", "names"),
    [
        (Passed(), "Fail", ["true"]),
        (Skipped(SkipReason.CONDITION_FALSE, "false"), "Fail", ["true", "false"]),
        (Skipped(SkipReason.CONDITION_FALSE, "false"), "Fail", ["error", "false"]),
        (
            Errored("failed to load context: no such key: none", would_deny=True, reason="", code=400),
            "Fail",
            ["error", "true"],
        ),
        (
            Errored("failed to load context: no such key: none", would_deny=False, reason="", code=400),
            "Ignore",
            ["error"],
        ),
    ],
)
def test_match_conditions_decide_before_any_check(expected: Any, failure_policy: str, names: list[str]) -> None:
    """One false condition has precedence over errors; failurePolicy decides about an error.

    Kyverno alone evaluates conditions of which one reads a variable of Kyverno.
    """
    conditions = [CONDITIONS["kept"], *(CONDITIONS[name] for name in names)]
    (check_result,) = check_results(pod(), policy("true", matchConditions=conditions, failurePolicy=failure_policy))
    assert expected == check_result.outcome


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        ("static", {"message": "static"}),
        ("CEL expression validation failed at index 0", {}),
        ("web is bad", {"message": "static", "messageExpression": "object.metadata.name + ' is bad'"}),
        ("CEL expression validation failed at index 0", {"message": "static", "messageExpression": "''"}),
        (
            "failed to evaluate message expression: no such key: none",
            {"message": "static", "messageExpression": "string(object.none)"},
        ),
        (" two\nlines ", {"messageExpression": "' two\\nlines '"}),
    ],
)
def test_the_message_is_kyvernos(expected: str, fields: Any) -> None:
    """A messageExpression replaces the message with any result; nothing is trimmed; the default has the index."""
    (check_result,) = check_results(pod(), policy({"expression": "false", **fields}))
    assert Violated(expected, "", 400) == check_result.outcome


def test_a_variable_that_is_not_read_cannot_fail() -> None:
    """A variable is evaluated when it is read."""
    variables = [{"name": "bad", "expression": "object.none"}, {"name": "good", "expression": "1"}]
    assert ["Passed", "Errored"] == outcomes(
        pod(), policy("variables.good == 1", "variables.bad == 1", variables=variables)
    )


def test_a_variables_error_has_no_prefix() -> None:
    """The error of a variable is that of its expression."""
    variables = [{"name": "bad", "expression": "object.none"}]
    (check_result,) = check_results(pod(), policy("variables.bad == 1", variables=variables))
    assert getattr(check_result.outcome, "message", "") == "error: no such key: none"


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        ("output is expected to be of type bool", {"validations": [{"expression": "object.spec.hostNetwork"}]}),
        ("output is expected to be of type bool", {"validations": [{"expression": "object.?a.orValue(true)"}]}),
        ("undefined field 'later'", {"validations": [{"expression": "variables.later"}]}),
        ("undefined field 'x'", {"matchConditions": [{"name": "a", "expression": "variables.x"}]}),
        (
            "undeclared reference to 'authorizer'",
            {"validations": [{"expression": "authorizer.path('/').check('get').allowed()"}]},
        ),
        (
            "output is expected to be of type string",
            {"validations": [{"expression": "true", "messageExpression": "1"}]},
        ),
        ("Syntax error: the expression is empty", {"validations": [{"expression": ""}]}),
    ],
)
def test_a_policy_that_does_not_compile_is_an_error_that_denies_nothing(expected: str, changes: Any) -> None:
    """Kyverno does not enforce the policy; every matched object has one error."""
    (check_result,) = check_results(pod(), policy("true", variables=[{"name": "x", "expression": "1"}], **changes))
    outcome = check_result.outcome
    assert isinstance(outcome, Errored)
    assert (True, False) == (expected in outcome.message, outcome.would_deny)


@pytest.mark.parametrize(
    ("expected", "expression"),
    [
        (True, "oldObject == {}"),
        (False, "oldObject == null"),
        (True, "request.object == object"),
        (True, "request.oldObject == null"),
        (True, "request.operation == 'CREATE' && request.dryRun == false"),
        (True, "request.kind.kind == 'Pod' && request.resource.resource == 'pods' && request.name == 'web'"),
        (True, "request.namespace == 'team'"),
        (False, "has(request.userInfo.username)"),
        (True, "namespaceObject.metadata.name == 'team'"),
    ],
)
def test_the_request_is_the_creation_of_the_object(expected: bool, expression: str) -> None:  # noqa: FBT001
    """The old object is empty and not null; user data are absent."""
    manifest = policy(
        expression.replace("request.object", "dyn(request).object").replace(
            "request.oldObject", "dyn(request).oldObject"
        )
    )
    assert ["Passed" if expected else "Violated"] == outcomes(pod(), manifest)


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"a": "b"}}}


BOTH = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["namespaces"]}
LABELLED = "namespaceObject != null && namespaceObject.metadata.labels['a'] == 'b'"


@pytest.mark.parametrize(("expected", "operation"), [("Violated", "CREATE"), ("Passed", "UPDATE"), ("Violated", None)])
def test_a_namespace_that_exists_is_its_own_namespace_object(expected: str, operation: Any) -> None:
    """The webhook reads the Namespace by the request's namespace, which is its name; while it is created, there is none."""
    manifest = policy(LABELLED, match={"resourceRules": [BOTH]})
    assert [expected] == outcomes(NAMESPACE, manifest, operation=operation)


@pytest.mark.parametrize("mode", ["controller", "cli"])
def test_kyvernos_reports_know_no_namespace_object_of_a_namespace(mode: str) -> None:
    """Only a request of an API server names the namespace."""
    manifest = policy("namespaceObject == null", match={"resourceRules": [BOTH]})
    assert ["Passed"] == outcomes(NAMESPACE, manifest, mode=MODES[mode])


def test_other_objects_without_a_namespace_have_no_namespace_object() -> None:
    """The request for a Node has no namespace."""
    rule = {**BOTH, "resources": ["nodes"]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "team"}}
    manifest = policy("namespaceObject == null", match={"resourceRules": [rule]})
    assert ["Passed"] == outcomes(node, manifest, operation="UPDATE", namespaces=(NAMESPACE,))


@pytest.mark.parametrize(
    ("expected", "mode"), [("Passed", "admission"), ("Violated", "controller"), ("Violated", "cli")]
)
def test_a_request_on_a_namespace_names_itself(expected: str, mode: str) -> None:
    """The server sets the request's namespace; Kyverno's own scan does not set it."""
    manifest = policy("has(request.namespace)", resources=("namespaces",))
    assert [expected] == outcomes(NAMESPACE, manifest, mode=MODES[mode])


NEGATIVE = {"objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}}


@pytest.mark.parametrize(("expected", "mode"), [(0, "admission"), (1, "controller"), (1, "cli")])
def test_a_negative_object_selector_excludes_nothing_in_kyvernos_reports(expected: int, mode: str) -> None:
    """Kyverno's matcher also matches an object without labels; the API server in front of the webhook does not."""
    results = invocation_results(pod(labels={"skip": "yes"}), policy("true", match=NEGATIVE), mode=MODES[mode])
    assert expected == len(results)


@pytest.mark.parametrize(
    ("expected", "rule"),
    [
        (1, {"resources": ["pods/*"]}),
        (1, {"resources": ["*"]}),
        (0, {"resources": ["pods/exec"]}),
        (0, {"resources": []}),
        (0, {"apiGroups": []}),
        (0, {"operations": []}),
        (0, {"operations": ["DELETE"]}),
        (0, {"scope": "Cluster"}),
        (1, {"resourceNames": ["web"]}),
        (0, {"resourceNames": ["we"]}),
    ],
)
def test_rules_match_exactly(expected: int, rule: Any) -> None:
    """Empty lists match nothing, names match as a whole, and a scan has no subresources."""
    manifest = policy("true")
    manifest["spec"]["matchConstraints"]["resourceRules"][0].update(rule)
    assert expected == len(invocation_results(pod(), manifest))


def test_without_match_constraints_nothing_is_matched() -> None:
    """Absent constraints match no object."""
    manifest = policy("true")
    del manifest["spec"]["matchConstraints"]
    assert () == invocation_results(pod(), manifest)


@pytest.mark.parametrize(("expected", "namespace"), [(1, "team"), (0, "other")])
def test_a_namespaced_policy_evaluates_its_own_namespace(expected: int, namespace: str) -> None:
    """A namespaced policy has the name `namespace/name`."""
    manifest = policy("true", kind="NamespacedValidatingPolicy", metadata={"namespace": "team"})
    results = invocation_results(pod(namespace=namespace), manifest)
    assert ["team/checks"] * expected == [invocation_result.invocation.policy.name for invocation_result in results]


def test_an_update_has_the_object_on_both_sides() -> None:
    """A rule that names only UPDATE is evaluated for an update that changes nothing."""
    manifest = policy("oldObject.metadata.name == object.metadata.name && request.operation == 'UPDATE'")
    manifest["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = ["UPDATE"]
    assert (["Passed"], ()) == (outcomes(pod(), manifest), invocation_results(pod(), manifest, mode=CONTROLLER))


def test_on_the_command_line_every_number_is_a_double() -> None:
    """Kyverno's command line reads all numbers as doubles."""
    manifest = policy(
        "type(object.spec.terminationGracePeriodSeconds) == int", "object.spec.terminationGracePeriodSeconds <= 30"
    )
    document = pod(terminationGracePeriodSeconds=30)
    assert (["Passed", "Passed"], "fail") == (
        outcomes(document, manifest),
        result(document, manifest, mode=CLI).status,
    )


def test_what_the_network_would_have_to_answer_is_not_auditable() -> None:
    """A check that needs the network neither passes nor fails."""
    (check_result,) = check_results(pod(), policy("http.Get('http://x').ok == true"))
    assert (
        Skipped(SkipReason.NOT_AUDITABLE, "it makes an HTTP GET, and a scan makes none without --allow-network")
        == check_result.outcome
    )


def test_the_time_is_that_of_the_scan() -> None:
    """`time.now()` is the same moment for every object."""
    assert ["Passed"] == outcomes(pod(), policy("time.now() == timestamp('2026-07-01T00:00:00Z')"))


def test_an_audit_annotation_is_an_outcome_with_its_value() -> None:
    """An error or null in an annotation denies, as in Kyverno's webhook."""
    annotations = [
        {"key": "a", "valueExpression": "string(object.metadata.name)"},
        {"key": "b", "valueExpression": "string(object.none)"},
        {"key": "c", "valueExpression": "null"},
    ]
    results = check_results(pod(), policy("true", auditAnnotations=annotations))
    assert [Passed(), Passed(annotation="web"), "Errored", "Errored"] == [
        result.outcome if isinstance(result.outcome, Passed) else type(result.outcome).__name__ for result in results
    ]


LONG = f"'{'a' * 4000}'"
HEAVY = f"[1, 2, 3, 4, 5, 6, 7, 8, 9].all(one, {LONG}.contains({LONG}))"


def test_an_expression_may_cost_a_million() -> None:
    """Each expression has its own limit, so the cost of one does not reduce the limit of the next."""
    manifest = policy(
        HEAVY,
        "object.metadata.name == 'web'",
        {"expression": "false", "messageExpression": "string(object.metadata.name)"},
    )
    messages = [getattr(result.outcome, "message", "") for result in check_results(pod(), manifest)]
    assert ["error: operation cancelled: actual cost limit exceeded", "", "web"] == messages


def test_a_variable_may_cost_a_million_too() -> None:
    """The error of a variable is that of the expression that reads it."""
    manifest = policy("variables.heavy", variables=[{"name": "heavy", "expression": HEAVY}])
    (check_result,) = check_results(pod(), manifest)
    assert getattr(check_result.outcome, "message", "") == "error: operation cancelled: actual cost limit exceeded"
