"""The short form of a suite: policies, bindings, params, objects, and what is expected; judged as admission would.

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

    `documents` maps the fields that name files (`policies`, `params`, `resources`, `namespaces`) to what is in them, and has
    `results` and `user` as they are. Exceptions stand among the policies; what policies read is among the resources.
    """
    policies = _objects(documents.get("policies"))
    resources = _objects(documents.get("resources"))
    user = documents.get("user")
    return Suite(
        name=name,
        policies=tuple(one for one in policies if not is_exception(one)),
        resources=resources,
        expectations=tuple(_expectation(one) for one in as_list(documents.get("results"))),
        exceptions=tuple(one for one in policies if is_exception(one)),
        params=_objects(documents.get("params")),
        namespaces=_objects(documents.get("namespaces")),
        given=resources,
        user=UserInfo(as_text(dig(user, "username")), as_text(dig(user, "uid")), texts(dig(user, "groups"))),
    )


def _objects(value: Json) -> tuple[JsonObject, ...]:
    return tuple(as_object(one) for one in as_list(value))


def _expectation(entry: Json) -> Expectation:
    return Expectation(
        policy=as_text(dig(entry, "policy")),
        result=as_text(dig(entry, "result")),
        resources=texts(dig(entry, "resources")),
        message=as_text(dig(entry, "message")),
    )
