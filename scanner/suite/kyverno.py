"""Kyverno's format of a suite: a Test document with the contents of its files.

Source of truth: `cli.kyverno.io/v1alpha1` of Kyverno 1.16 to 1.19: Test, Values, UserInfo, Context and ClusterResource.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from scanner.cel import EvaluationError
from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.policy import Operation
from scanner.model.resource import UserInfo
from scanner.policies.kyverno.exceptions import is_exception
from scanner.policies.kyverno.libraries.cluster_data import projected
from scanner.policies.kyverno.request import with_doubles
from scanner.suite.form import Expectation, Suite, is_evaluated

_OPERATIONS: Mapping[str, Operation] = {"CREATE": "CREATE", "UPDATE": "UPDATE", "DELETE": "DELETE"}


def suite_of(name: str, documents: Mapping[str, Json]) -> Suite:
    """The suite of a Test.

    `documents` maps the fields that name files to their contents (`policies`, `resources`, `exceptions`, `paramResources`,
    `clusterResources`, `values`, `userinfo`, `given` for the context), and has the `results`, `apiCallResponses` and
    `globalContextEntries` unchanged; the contents of `resourceFiles` are in the `resources` of the last.

    Raises UsageError for a test that cannot be read.
    """
    policies = _objects(documents.get("policies"))
    context = _objects(documents.get("given"))
    cluster = _objects(documents.get("clusterResources"))
    described = [
        resource for document in (*context, *cluster) for resource in _objects(dig(document, "spec", "resources"))
    ]
    plain = [document for document in cluster if dig(document, "spec", "resources") is None]
    usual = _operation(_objects(documents.get("values")))
    images = [image for document in context for image in _objects(dig(document, "spec", "images"))]
    return Suite(
        name=name,
        policies=tuple(document for document in policies if is_evaluated(document)),
        others=tuple(document for document in policies if not is_evaluated(document) and not is_exception(document)),
        resources=_objects(documents.get("resources")),
        expectations=tuple(_expectation(result, usual) for result in as_list(documents.get("results"))),
        exceptions=tuple(document for document in _objects(documents.get("exceptions")) if is_exception(document)),
        params=_objects(documents.get("paramResources")),
        namespaces=tuple(_namespaces(_objects(documents.get("values")))),
        given=(*described, *plain),
        images={as_text(image.get("image")): image for image in images},
        answers={
            (as_text(call.get("method")), as_text(call.get("url")) or as_text(call.get("urlPath"))): as_object(
                call.get("response")
            )
            for call in _objects(documents.get("apiCallResponses"))
        },
        entries={
            as_text(described.get("name")): _entry(described)
            for described in _objects(documents.get("globalContextEntries"))
        },
        user=_user(_objects(documents.get("userinfo"))),
        as_command_line=True,
    )


def _entry(described: JsonObject) -> Json:
    """The value of a global context entry: data or objects, a field of these, or named projections."""
    resources = described.get("resources")
    data = with_doubles(described.get("data") if resources is None else resources)
    if path := as_text(described.get("fieldPath")):
        data = _projected(data, path)
    named = _objects(described.get("projections"))
    if not named:
        return data
    return {as_text(field.get("name")): _projected(data, as_text(field.get("path"))) for field in named}


def _projected(data: Json, path: str) -> Json:
    try:
        return cast("Json", projected(data, path))
    except EvaluationError as error:
        raise UsageError(f"globalContextEntries: {path}: {error}") from None


def _objects(value: Json) -> tuple[JsonObject, ...]:
    return tuple(as_object(item) for item in as_list(value))


def _expectation(result: Json, usual: Operation) -> Expectation:
    operation = as_text(dig(result, "operation"))
    return Expectation(
        policy=as_text(dig(result, "policy")),
        result=as_text(dig(result, "result")),
        resources=texts(dig(result, "resources")),
        operation=_OPERATIONS.get(operation, usual),
    )


def _operation(values: tuple[JsonObject, ...]) -> Operation:
    """The operation in the values, which applies to all expectations."""
    named = (as_text(dig(document, "globalValues", "request.operation")) for document in values)
    return next((_OPERATIONS[name] for name in named if name in _OPERATIONS), "CREATE")


def _namespaces(values: tuple[JsonObject, ...]) -> Iterator[JsonObject]:
    """The namespaces in the values, and the namespaces for which the values have labels only."""
    described = [namespace for document in values for namespace in _objects(document.get("namespaces"))]
    yield from described
    names = {dig(namespace, "metadata", "name") for namespace in described}
    for document in values:
        for selector in _objects(document.get("namespaceSelector")):
            if selector.get("name") not in names:
                yield {"apiVersion": "v1", "kind": "Namespace", "metadata": selector}


def _user(documents: tuple[JsonObject, ...]) -> UserInfo:
    for document in documents:
        user = document.get("userInfo")
        return UserInfo(as_text(dig(user, "username")), as_text(dig(user, "uid")), texts(dig(user, "groups")))
    return UserInfo()
