"""Evaluations that exceed the cost limit stop at the same place on the server and in Assay, with the same message.

Searching the text of the object for itself costs 900,601: one evaluation may cost a million, those of a policy ten million
together, and its match conditions two and a half.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from scanner.api import Auditor
from scanner.cel import AuthorizerAnswer
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.outcome import Errored, Violated
from scanner.policies.mutating.evaluator import write_refusal
from tests.integration.apiserver import ApiServer
from tests.integration.made import binding, labelled, policy
from tests.integration.manifests import Violation, apply, dry_run, dry_run_create, violations, wait_until_enforced

SECONDS_TO_MUTATE = 45.0
TRUE = "object.data.t.contains(object.data.t)"
TOO_MUCH = "(object.data.t + object.data.t).contains(object.data.t)"


def validated(*expressions: str, **fields: Any) -> dict[str, Any]:
    """Validations, each with the same further fields."""
    return {"validations": [{"expression": expression, **fields} for expression in expressions]}


def variables(number: int) -> dict[str, Any]:
    """Expensive variables, and a validation and a message that read each."""
    names = [f"v{index}" for index in range(number)]
    return {
        "variables": [{"name": name, "expression": TRUE} for name in names],
        "validations": [
            {"expression": f"!variables.{name}", "messageExpression": f"'{name} ' + string(variables.{name})"}
            for name in names
        ],
    }


def conditions(*expressions: str) -> dict[str, Any]:
    """Match conditions, and a validation that fails."""
    named = [{"name": f"c{index}", "expression": expression} for index, expression in enumerate(expressions)]
    return {"matchConditions": named, **validated("false")}


def annotated(number: int) -> dict[str, Any]:
    """Expensive audit annotations, and a validation that fails."""
    named = [{"key": f"k{index}", "valueExpression": f"string({TRUE})"} for index in range(number)]
    return {"auditAnnotations": named, **validated("false")}


CHECK = "authorizer.group('').resource('endpoints').check('create').allowed()"
PODS = "authorizer.group('').resource('pods')"
SPECS: dict[str, dict[str, Any]] = {
    "validations-within": validated(*[f"!{TRUE}"] * 11),
    "validations-beyond": validated("false", *[f"!{TRUE}"] * 12),
    "validations-ignored": validated("false", *[TRUE] * 12) | {"failurePolicy": "Ignore"},
    "one-too-expensive": validated(TOO_MUCH, "false"),
    "stopped-is-paid": validated(*[TOO_MUCH] * 6, "false"),
    "conditions-within": conditions(TRUE, TRUE),
    "conditions-beyond": conditions(TRUE, TRUE, TRUE),
    "conditions-false-and-beyond": conditions("false", TRUE, TRUE, TRUE),
    "conditions-false": conditions(TRUE, "false", TOO_MUCH),
    "conditions-too-expensive": conditions(TOO_MUCH),
    "messages-beyond": validated(*[f"!{TRUE}"] * 6, messageExpression=f"string({TRUE})"),
    "messages-beyond-of-passing": validated(*[TRUE] * 6, messageExpression=f"string({TRUE})"),
    "message-too-expensive": validated("false", messageExpression=f"string({TOO_MUCH})", message="plain"),
    "annotations-within": annotated(11),
    "annotations-beyond": annotated(12),
    "variables-within": variables(5),
    "variables-beyond": variables(6),
    "variables-far-beyond": variables(12),
    "variable-too-expensive": {"variables": [{"name": "v", "expression": TOO_MUCH}], **validated("variables.v")},
    "two-checks": validated(" || ".join(["!authorizer.path('/x').check('get').allowed()"] * 2)),
    "checks-within": validated("false", *[CHECK] * 28),
    "checks-beyond": validated("false", *[CHECK] * 29),
    "condition-checks-within": conditions(*[CHECK] * 7),
    "condition-checks-beyond": conditions(*[CHECK] * 8),
    "selectors": validated(f"{PODS}.fieldSelector('{'a=b,' * 200}').check('list').errored()", "false"),
    "loops": validated("lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))", "false"),
    "free-below-zero": validated("has((true ? object : object).?missing.deeper)", "false"),
    "memory": validated("[dyn(object.data.t)].map(x, x + x).map(x, x + x).size() == 0"),
}


def specs(**spec: Any) -> JsonObject:
    """A spec whose repeated validations have different messages."""
    for index, validation in enumerate(spec["validations"]):
        if "messageExpression" not in validation:
            validation.setdefault("message", f"validation {index}")
    return spec


def verdict_of_assay(document: JsonObject, name: str, spec: JsonObject) -> list[Violation]:
    """Assay's warnings, each text once, as the server sends them."""
    auditor = Auditor(
        policies=[policy(name, "configmaps", **spec)],  # type: ignore[arg-type]
        bindings=[binding(name)],
        kinds=builtin_kinds(),
        authorizer=AllowAll(),
    )
    outcomes = (
        check_result.outcome
        for invocation_result in auditor.evaluate(document, operation="CREATE")
        for check_result in invocation_result.check_results
    )
    messages = (
        outcome.message
        for outcome in outcomes
        if isinstance(outcome, Violated) or (isinstance(outcome, Errored) and outcome.would_deny)
    )
    return [Violation(name, name, message) for message in dict.fromkeys(messages)]


class AllowAll:
    """The authorizer of an administrator."""

    def decide(self, question: object) -> AuthorizerAnswer:
        del question
        return AuthorizerAnswer(allowed=True)


def config_map(name: str) -> JsonObject:
    """The object of the policy with that name; its text makes one search of the text in itself cost 900,601."""
    return labelled("ConfigMap", name, "any", namespace="default", data={"t": "a" * 9490})


@pytest.fixture(scope="module")
def validating_server(api_server: ApiServer) -> ApiServer:
    """The shared server, on which every policy of SPECS is enforced; each matches the object of its name alone."""
    for name, spec in SPECS.items():
        apply(api_server, [policy(name, "configmaps", **specs(**spec)), binding(name)])  # type: ignore[arg-type]
    wait_until_enforced(api_server)
    return api_server


@pytest.mark.parametrize("name", SPECS)
def test_assay_stops_where_the_server_stops(validating_server: ApiServer, name: str) -> None:
    """Every warning of the server is Assay's as well, in the same words, and the other way round."""
    document = config_map(name)

    expected = violations(dry_run_create(validating_server, document))

    assert sorted(expected) == sorted(verdict_of_assay(document, name, specs(**SPECS[name])))


def mutating(name: str, *mutations: str) -> list[JsonObject]:
    """A mutating policy with twelve expensive variables, and its binding."""
    validating = policy(name, "configmaps", **variables(12))
    spec: dict[str, Json] = {key: value for key, value in as_object(validating["spec"]).items() if key != "validations"}
    changes: list[Json] = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}} for text in mutations
    ]
    spec |= {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "mutations": changes}
    bound = {"policyName": name}
    return [
        {**validating, "kind": "MutatingAdmissionPolicy", "spec": spec},
        {**binding(name), "kind": "MutatingAdmissionPolicyBinding", "spec": bound},
    ]


def setting(key: str, *names: int) -> str:
    """A mutation that reads some of the variables and sets a label."""
    condition = " && ".join(f"variables.v{name}" for name in names)
    return f"Object{{metadata: Object.metadata{{labels: {{'{key}': string({condition})}}}}}}"


MUTATIONS = {
    "mutations-within": [setting("a", *range(11)), setting("b", *range(11))],
    "mutations-beyond": [setting("a", 0), setting("b", *range(12))],
    "mutation-too-expensive": [f"Object{{metadata: Object.metadata{{labels: {{'a': string({TOO_MUCH})}}}}}}"],
}


@pytest.fixture(scope="module")
def mutating_server(api_server: ApiServer) -> ApiServer:
    """The shared server, on which every policy of MUTATIONS acts on the object of its name."""
    for name, mutations in MUTATIONS.items():
        apply(api_server, mutating(name, *mutations))
    for name in MUTATIONS:
        wait_until_mutated(api_server, config_map(name))
    return api_server


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_has_a_budget(mutating_server: ApiServer, name: str) -> None:
    """Each mutation evaluates the variables anew: the server denies what Assay predicts that it denies."""
    document = config_map(name)

    answer = dry_run(mutating_server, document)

    message = as_text(dig(answer.body, "message")) if answer.status != 201 else ""
    assert message == predicted_refusal(document, mutating(name, *MUTATIONS[name]))


def predicted_refusal(document: JsonObject, policy_and_binding: list[JsonObject]) -> str:
    """The message with which Assay predicts that the object is denied; empty if it is admitted."""
    auditor = Auditor(
        policies=policy_and_binding[:1],
        bindings=policy_and_binding[1:],
        kinds=builtin_kinds(),
        schemas=KnownSchemas(builtin_schemas()),
    )
    (invocation_result,) = auditor.evaluate(document, operation="CREATE")
    outcomes = (check_result.outcome for check_result in invocation_result.check_results)
    errors = (outcome for outcome in outcomes if isinstance(outcome, Errored))
    return next((write_refusal(invocation_result.invocation, error) for error in errors), "")


def wait_until_mutated(server: ApiServer, document: JsonObject) -> None:
    """Return when the policies about an object act; raises AssertionError when they do not in time."""
    deadline = time.monotonic() + SECONDS_TO_MUTATE
    answer = dry_run(server, document)
    while answer.status == 201 and len(as_object(dig(answer.body, "metadata", "labels"))) <= 1:
        assert time.monotonic() < deadline, f"no policy acts on {dig(document, 'metadata', 'labels')}"
        time.sleep(0.2)
        answer = dry_run(server, document)
