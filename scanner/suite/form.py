"""A suite and its expectations, with the contents of its files, and the short format of a suite.

In the short format, objects are evaluated as admission does:

kind: PolicyTest
policies: [policy.yaml, binding.yaml]
params: [limits.yaml]
resources: [pods.yaml]
results:
- {policy: no-latest, resources: [web, team/api], result: fail, message: no tag}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.policy import ADMISSION_API, Operation
from scanner.model.resource import Kind, UserInfo
from scanner.mutate.schema import NO_SCHEMAS, Schemas
from scanner.policies.kyverno.exceptions import is_exception
from scanner.policies.kyverno.spec import is_policy
from scanner.policies.manifest import GROUP


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected result of a policy for some objects.

    `resources` are names or `namespace/name`s of objects of any kind; none means all objects. `result` is pass, fail, warn, error
    or skip, `message` the expected message of a failure. `operation` is the simulated request: an UPDATE changes nothing, a DELETE
    (for Kyverno's policies alone) has the old object only.
    """

    policy: str
    result: str
    resources: tuple[str, ...] = ()
    message: str = ""
    operation: Operation = "CREATE"


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite. `policies` are policies and bindings of any language, `given` the objects that expressions can read.

    `images` are image data by reference, `answers` HTTP responses by method and URL (an empty method stands for all), `entries` the
    global context by name. With `as_command_line` the suite is evaluated as the Kyverno CLI does.

    `others` are policies of kinds that Assay does not evaluate, `payloads` is the field with payloads that are no objects of a
    cluster, or empty. `kinds` and `schemas` are those of the CustomResourceDefinitions among the files.
    """

    name: str
    policies: tuple[JsonObject, ...]
    resources: tuple[JsonObject, ...]
    expectations: tuple[Expectation, ...]
    exceptions: tuple[JsonObject, ...] = ()
    params: tuple[JsonObject, ...] = ()
    namespaces: tuple[JsonObject, ...] = ()
    given: tuple[JsonObject, ...] = ()
    images: Mapping[str, JsonObject] = field(default_factory=dict)
    answers: Mapping[tuple[str, str], JsonObject] = field(default_factory=dict)
    entries: Mapping[str, Json] = field(default_factory=dict)
    user: UserInfo = field(default_factory=UserInfo)
    as_command_line: bool = False
    others: tuple[JsonObject, ...] = ()
    payloads: str = ""
    kinds: tuple[Kind, ...] = ()
    schemas: Schemas = NO_SCHEMAS


@dataclass(frozen=True, slots=True)
class BrokenSuite:
    """A suite that cannot be run, with the reason."""

    name: str
    error: str


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
        policies=tuple(document for document in policies if is_evaluated(document)),
        others=tuple(document for document in policies if not is_evaluated(document) and not is_exception(document)),
        resources=resources,
        expectations=tuple(_expectation(result) for result in as_list(documents.get("results"))),
        exceptions=tuple(document for document in policies if is_exception(document)),
        params=_objects(documents.get("params")),
        namespaces=_objects(documents.get("namespaces")),
        given=resources,
        user=UserInfo(as_text(dig(user, "username")), as_text(dig(user, "uid")), texts(dig(user, "groups"))),
    )


def is_evaluated(document: JsonObject) -> bool:
    """Return whether a document is a policy of a kind that Assay evaluates, or a binding of one."""
    kind, group = as_text(document.get("kind")), as_text(document.get("apiVersion")).partition("/")[0]
    return is_policy(document) or (group == GROUP and kind.removesuffix("Binding") in ADMISSION_API)


def _objects(value: Json) -> tuple[JsonObject, ...]:
    return tuple(as_object(item) for item in as_list(value))


def _expectation(result: Json) -> Expectation:
    return Expectation(
        policy=as_text(dig(result, "policy")),
        result=as_text(dig(result, "result")),
        resources=texts(dig(result, "resources")),
        message=as_text(dig(result, "message")),
    )
