"""Where evaluations run out of cost, the server and Assay stop at the same place and say the same.

Searching the text of the object for itself costs 900,601: one evaluation may cost a million, those of a policy ten million
together, and its match conditions two and a half.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from scanner.api import Auditor
from scanner.cel import Answer
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.outcome import Errored, Violated
from scanner.policies.mutating.bind import refusal
from tests.integration.apiserver import ApiServer
from tests.integration.made import binding, judged, policy
from tests.integration.manifests import Violation, apply, dry_run, dry_run_create, violations, wait_until_enforced

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
    """A spec whose repeated validations are told apart by their messages."""
    for index, validation in enumerate(spec["validations"]):
        if "messageExpression" not in validation:
            validation.setdefault("message", f"validation {index}")
    return spec


def verdict_of_assay(document: JsonObject, name: str, spec: JsonObject) -> list[Violation]:
    """What Assay warns of, each text once, as the server does."""
    auditor = Auditor(
        policies=[policy(name, "configmaps", **spec)],  # type: ignore[arg-type]
        bindings=[binding(name)],
        kinds=builtin_kinds(),
        authorizer=AllowAll(),
    )
    found = (
        check_result
        for invocation_result in auditor.evaluate(document, operation="CREATE")
        for check_result in invocation_result.check_results
    )
    outcomes = [one.outcome for one in found]
    heard = [one for one in outcomes if isinstance(one, Violated) or (isinstance(one, Errored) and one.would_deny)]
    return [Violation(name, name, message) for message in dict.fromkeys(one.message for one in heard)]


class AllowAll:
    """The authorizer of an administrator."""

    def decide(self, question: object) -> Answer:
        del question
        return Answer(allowed=True)


@pytest.mark.parametrize("name", SPECS)
def test_assay_stops_where_the_server_stops(api_server: ApiServer, name: str) -> None:
    """Every warning of the server is Assay's as well, in the same words, and the other way round."""
    spec = specs(**SPECS[name])
    document = judged("ConfigMap", name, "any", namespace="default", data={"t": "a" * 9490})
    apply(api_server, [policy(name, "configmaps", **spec), binding(name)])  # type: ignore[arg-type]
    wait_until_enforced(api_server)

    expected = violations(dry_run_create(api_server, document))

    assert sorted(expected) == sorted(verdict_of_assay(document, name, spec))


def mutating(name: str, *mutations: str) -> list[JsonObject]:
    """A mutating policy with twelve expensive variables, and its binding."""
    found = policy(name, "configmaps", **variables(12))
    spec: dict[str, Json] = {key: value for key, value in as_object(found["spec"]).items() if key != "validations"}
    changes: list[Json] = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}} for text in mutations
    ]
    spec |= {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "mutations": changes}
    bound = {"policyName": name}
    return [
        {**found, "kind": "MutatingAdmissionPolicy", "spec": spec},
        {**binding(name), "kind": "MutatingAdmissionPolicyBinding", "spec": bound},
    ]


def setting(key: str, *names: int) -> str:
    """A mutation that reads some of the variables and sets a label."""
    condition = " && ".join(f"variables.v{name}" for name in names)
    return f"Object{{metadata: Object.metadata{{labels: {{'{key}': string({condition})}}}}}}"


@pytest.mark.parametrize(
    ("name", "mutations"),
    [
        ("mutations-within", [setting("a", *range(11)), setting("b", *range(11))]),
        ("mutations-beyond", [setting("a", 0), setting("b", *range(12))]),
        ("mutation-too-expensive", [f"Object{{metadata: Object.metadata{{labels: {{'a': string({TOO_MUCH})}}}}}}"]),
    ],
)
def test_every_mutation_has_a_budget(api_server: ApiServer, name: str, mutations: list[str]) -> None:
    """A budget of its own, with the variables evaluated anew: the server refuses what Assay says that it refuses."""
    document = judged("ConfigMap", name, "any", namespace="default", data={"t": "a" * 9490})
    documents = mutating(name, *mutations)
    apply(api_server, documents)
    wait_until_mutated(api_server, document)

    answer = dry_run(api_server, document)

    auditor = Auditor(
        policies=documents[:1],
        bindings=documents[1:],
        kinds=builtin_kinds(),
        schemas=KnownSchemas(builtin_schemas()),
    )
    (invocation_result,) = auditor.evaluate(document, operation="CREATE")
    refusals = [one.outcome.message for one in invocation_result.check_results if isinstance(one.outcome, Errored)]
    said = as_text(dig(answer.body, "message")) if answer.status != 201 else ""
    assert said == next((refusal(invocation_result.invocation, message) for message in refusals), "")


def wait_until_mutated(server: ApiServer, document: JsonObject) -> None:
    """Wait until the policies about an object do something to it."""
    for _ in range(90):
        answer = dry_run(server, document)
        if answer.status != 201 or len(as_object(dig(answer.body, "metadata", "labels"))) > 1:
            return
        time.sleep(0.5)
