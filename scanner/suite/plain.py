"""The short format of a suite: policies, bindings, params, objects and expected results, evaluated as admission does.

kind: PolicyTest
policies: [policy.yaml, binding.yaml]
params: [limits.yaml]
resources: [pods.yaml]
results:
- {policy: no-latest, resources: [web, team/api], result: fail, message: no tag}
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.resource import UserInfo
from scanner.policies.kyverno.exceptions import is_exception
from scanner.suite.form import Expectation, Suite

KIND = "PolicyTest"


def suite_of(name: str, documents: Mapping[str, Json]) -> Suite:
    """The suite of a PolicyTest.

    `documents` maps the fields that name files (`policies`, `params`, `resources`, `namespaces`) to their contents, and has
    `results` and `user` unchanged. `policies` include exceptions, `resources` the objects that policies read.
    """
    policies = _objects(documents.get("policies"))
    resources = _objects(documents.get("resources"))
    user = documents.get("user")
    return Suite(
        name=name,
        policies=tuple(document for document in policies if not is_exception(document)),
        resources=resources,
        expectations=tuple(_expectation(result) for result in as_list(documents.get("results"))),
        exceptions=tuple(document for document in policies if is_exception(document)),
        params=_objects(documents.get("params")),
        namespaces=_objects(documents.get("namespaces")),
        given=resources,
        user=UserInfo(as_text(dig(user, "username")), as_text(dig(user, "uid")), texts(dig(user, "groups"))),
    )


def _objects(value: Json) -> tuple[JsonObject, ...]:
    return tuple(as_object(item) for item in as_list(value))


def _expectation(result: Json) -> Expectation:
    return Expectation(
        policy=as_text(dig(result, "policy")),
        result=as_text(dig(result, "result")),
        resources=texts(dig(result, "resources")),
        message=as_text(dig(result, "message")),
    )
