"""Kyverno's own form of a suite, out of a Test document whose files have been read.

Source of truth: `cli.kyverno.io/v1alpha1` of Kyverno 1.18: Test, Values, UserInfo, Context and ClusterResource.
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
from scanner.policies.kyverno.libraries.projections import projected
from scanner.policies.kyverno.request import with_doubles
from scanner.policies.kyverno.spec import is_policy
from scanner.policies.manifest import GROUP
from scanner.suite.form import Expectation, Suite

_OPERATIONS: Mapping[str, Operation] = {"CREATE": "CREATE", "UPDATE": "UPDATE", "DELETE": "DELETE"}
_ADMISSION = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")


def suite_of(name: str, documents: Mapping[str, Json]) -> Suite:
    """The suite of a Test.

    `documents` maps the fields that name files to what is in them (`policies`, `resources`, `exceptions`, `paramResources`,
    `clusterResources`, `values`, `userinfo`, `given` for the context), and has the `results`, `apiCallResponses` and
    `globalContextEntries` as they are; `resourceFiles` of the last are in their `resources`.

    Raises UsageError for a test that cannot be read.
    """
    context = _objects(documents.get("given"))
    cluster = _objects(documents.get("clusterResources"))
    described = [one for document in (*context, *cluster) for one in _objects(dig(document, "spec", "resources"))]
    plain = [document for document in cluster if dig(document, "spec", "resources") is None]
    usual = _operation(_objects(documents.get("values")))
    images = [one for document in context for one in _objects(dig(document, "spec", "images"))]
    return Suite(
        name=name,
        policies=tuple(one for one in _objects(documents.get("policies")) if _is_judged(one)),
        resources=_objects(documents.get("resources")),
        expectations=tuple(_expectation(one, usual) for one in as_list(documents.get("results"))),
        exceptions=tuple(one for one in _objects(documents.get("exceptions")) if is_exception(one)),
        params=_objects(documents.get("paramResources")),
        namespaces=tuple(_namespaces(_objects(documents.get("values")))),
        given=(*described, *plain),
        images={as_text(one.get("image")): one for one in images},
        answers={
            (as_text(one.get("method")), as_text(one.get("url")) or as_text(one.get("urlPath"))): as_object(
                one.get("response")
            )
            for one in _objects(documents.get("apiCallResponses"))
        },
        entries={as_text(one.get("name")): _entry(one) for one in _objects(documents.get("globalContextEntries"))},
        user=_user(_objects(documents.get("userinfo"))),
        as_command_line=True,
    )


def _entry(described: JsonObject) -> Json:
    """What an entry of the global context holds: some data or objects, a part of it, or named projections of that."""
    resources = described.get("resources")
    data = with_doubles(described.get("data") if resources is None else resources)
    if path := as_text(described.get("fieldPath")):
        data = _projected(data, path)
    named = _objects(described.get("projections"))
    return {as_text(one.get("name")): _projected(data, as_text(one.get("path"))) for one in named} if named else data


def _projected(data: Json, path: str) -> Json:
    try:
        return cast("Json", projected(data, path))
    except EvaluationError as error:
        raise UsageError(f"globalContextEntries: {path}: {error}") from None


def _objects(value: Json) -> tuple[JsonObject, ...]:
    return tuple(as_object(one) for one in as_list(value))


def _is_judged(document: JsonObject) -> bool:
    kind, group = as_text(document.get("kind")), as_text(document.get("apiVersion")).partition("/")[0]
    return is_policy(document) or (group == GROUP and kind.removesuffix("Binding") in _ADMISSION)


def _expectation(entry: Json, usual: Operation) -> Expectation:
    asked = as_text(dig(entry, "operation"))
    return Expectation(
        policy=as_text(dig(entry, "policy")),
        result=as_text(dig(entry, "result")),
        resources=texts(dig(entry, "resources")),
        operation=_OPERATIONS.get(asked, usual),
    )


def _operation(values: tuple[JsonObject, ...]) -> Operation:
    """The operation that the values name for all expectations."""
    named = (as_text(dig(document, "globalValues", "request.operation")) for document in values)
    return next((_OPERATIONS[name] for name in named if name in _OPERATIONS), "CREATE")


def _namespaces(values: tuple[JsonObject, ...]) -> Iterator[JsonObject]:
    """Namespaces as they are described, and those of which only the labels are."""
    described = [one for document in values for one in _objects(document.get("namespaces"))]
    yield from described
    names = {dig(one, "metadata", "name") for one in described}
    for document in values:
        for selector in _objects(document.get("namespaceSelector")):
            if selector.get("name") not in names:
                yield {"apiVersion": "v1", "kind": "Namespace", "metadata": selector}


def _user(documents: tuple[JsonObject, ...]) -> UserInfo:
    for document in documents:
        user = document.get("userInfo")
        return UserInfo(as_text(dig(user, "username")), as_text(dig(user, "uid")), texts(dig(user, "groups")))
    return UserInfo()
