"""Store manifests on a real API server, and read the results of its admission.

The server evaluates policies: nothing here does. Discovery gives the path of each kind.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TypeVar

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.integration.apiserver import ApiServer
from tests.integration.client import Answer

T = TypeVar("T")

SECONDS_TO_SETTLE = 45.0
FIRST = ("Namespace", "CustomResourceDefinition")
LAST = (
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
)
WARNED = re.compile(
    r"Validation failed for ValidatingAdmissionPolicy '([^']*)' with binding '([^']*)': (.*)", re.DOTALL
)
CANARIES = count()


class RefusedError(AssertionError):
    """The server did not do what a test assumes; `answer` is its answer."""

    def __init__(self, message: str, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One failure that a binding with the action Warn reported; the message is cut where the server cut the warning."""

    policy: str
    binding: str
    message: str


def apply(server: ApiServer, documents: Iterable[JsonObject]) -> list[Json]:
    """Store manifests and return them as stored, in the order of storing; those already there are replaced.

    Namespaces come first, then custom resource definitions, then everything else in the order given, then policies, and
    bindings last, so that no policy stands in the way of an object stored with it.
    """
    return [_stored(server, document) for document in sorted(documents, key=_rank)]


def dry_run(server: ApiServer, document: JsonObject, *, token: str | None = None) -> Answer:
    """The answer to a server-side dry-run create: nothing is stored, all of admission happens.

    An object that is there already may be asked about, admission comes before the server finds that out: 409 means
    admitted, as 201 does. A refusal carries the warnings of the other policies too. The server drops a warning that
    holds a line break; once the texts of a request pass 4,096 characters in total it cuts each to 256 and drops what is
    beyond the total.
    """
    params = {"dryRun": "All", "fieldValidation": "Ignore"}
    return server.request("POST", collection_path(server, document), _without_version(document), params, token)


def dry_run_create(server: ApiServer, document: JsonObject, *, token: str | None = None) -> list[str]:
    """The warnings of a dry-run create that the server admits; see `dry_run`."""
    answer = dry_run(server, document, token=token)
    if answer.status != 201 and not _exists_already(answer):
        raise RefusedError(_refusal("dry-run create", document, answer), answer)
    return answer.warnings()


def violations(warnings: Iterable[str]) -> list[Violation]:
    """The failures among the warnings that bindings with the action Warn reported, sorted."""
    matches = (WARNED.fullmatch(warning) for warning in warnings)
    return sorted(Violation(*match.groups()) for match in matches if match)


def wait_until_enforced(server: ApiServer) -> None:
    """Return when every policy and binding stored or deleted so far has taken effect.

    The server reads policies and bindings from two streams, each in order, and acts on a common snapshot of both about
    once a second. A policy and a binding made now are therefore enforced only after all that came before. They match
    no object but their own canary and are deleted at the end. This does not cover a paramKind whose definition was
    stored a moment ago: admission looks up kinds in a list that it renews every 30 seconds, so wait for such a policy
    with `wait_until_warned`.
    """
    name = f"canary-{server.url.rpartition(':')[2]}-{next(CANARIES)}"
    policy, binding, canary = _canary_policy(name), _canary_binding(name), _config_map(name)
    apply(server, [policy, binding])
    wait_until_warned(server, canary, policy=name)
    for document in (binding, policy):
        delete(server, document)


def wait_until_warned(server: ApiServer, document: JsonObject, *, policy: str) -> list[str]:
    """The warnings of a dry-run create, as soon as `policy` is among those that complain."""

    def warned() -> list[str] | None:
        warnings = dry_run_create(server, document)
        return warnings if any(violation.policy == policy for violation in violations(warnings)) else None

    return _eventually(warned, f"no warning of ValidatingAdmissionPolicy {policy!r} about {_label(document)}")


def delete(server: ApiServer, document: JsonObject) -> None:
    """Delete the object that a manifest names; a Job too goes at once, instead of waiting for a controller."""
    answer = server.request("DELETE", _object_path(server, document), params={"propagationPolicy": "Background"})
    if answer.status not in (200, 202):
        raise RefusedError(_refusal("delete", document, answer), answer)


def collection_path(server: ApiServer, document: JsonObject) -> str:
    """The path that objects of the document's kind are created at; a namespaced one without namespace goes to default."""
    api_version = as_text(document["apiVersion"])
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    resource = _resource(server, root, as_text(document["kind"]))
    if not resource["namespaced"]:
        return f"{root}/{resource['name']}"
    return f"{root}/namespaces/{as_text(dig(document, 'metadata', 'namespace')) or 'default'}/{resource['name']}"


def _stored(server: ApiServer, document: JsonObject) -> Json:
    answer = server.request("POST", collection_path(server, document), document)
    if _exists_already(answer):
        answer = _replaced(server, document)
    if answer.status not in (200, 201):
        raise RefusedError(_refusal("create", document, answer), answer)
    if document["kind"] == "CustomResourceDefinition":
        _wait_until_established(server, document)
    return answer.body


def _replaced(server: ApiServer, document: JsonObject) -> Answer:
    path = _object_path(server, document)
    current = as_object(dig(server.request("GET", path).body, "metadata"))
    identity = {key: current[key] for key in ("uid", "resourceVersion") if key in current}
    metadata = {**as_object(document["metadata"]), **identity}
    return server.request("PUT", path, {**document, "metadata": metadata})


def _wait_until_established(server: ApiServer, document: JsonObject) -> None:
    path = _object_path(server, document)
    group = as_text(dig(document, "spec", "group"))
    kind = as_text(dig(document, "spec", "names", "kind"))
    versions = [
        as_text(dig(item, "name")) for item in as_list(dig(document, "spec", "versions")) if dig(item, "served")
    ]

    def established() -> bool | None:
        conditions = as_list(dig(server.request("GET", path).body, "status", "conditions"))
        return any(dig(item, "type") == "Established" and dig(item, "status") == "True" for item in conditions) or None

    _eventually(established, f"{_label(document)} is not Established")
    for root in (f"/apis/{group}/{version}" for version in versions):
        _eventually(partial(_served_resource, server, root, kind), f"{root} does not serve {kind}")


def _resource(server: ApiServer, root: str, kind: str) -> JsonObject:
    """A resource of discovery, which is read once for each kind; raises RefusedError for a missing kind."""
    if (root, kind) not in server.resources:
        resource = _served_resource(server, root, kind)
        if resource is None:
            raise RefusedError(f"{root} does not serve {kind}")
        server.resources[root, kind] = resource
    return server.resources[root, kind]


def _served_resource(server: ApiServer, root: str, kind: str) -> JsonObject | None:
    resources = as_list(dig(server.request("GET", root).body, "resources"))
    of_kind = (as_object(item) for item in resources if dig(item, "kind") == kind)
    return next((item for item in of_kind if "/" not in as_text(item["name"])), None)


def _eventually(question: Callable[[], T | None], trouble: str) -> T:
    deadline = time.monotonic() + SECONDS_TO_SETTLE
    while (answer := question()) is None:
        if time.monotonic() > deadline:
            raise RefusedError(f"{trouble} after {SECONDS_TO_SETTLE:.0f} s")
        time.sleep(0.1)
    return answer


def _rank(document: JsonObject) -> tuple[int, int]:
    kind = as_text(document["kind"])
    if kind in FIRST:
        return (0, FIRST.index(kind))
    return (2, LAST.index(kind)) if kind in LAST else (1, 0)


def _object_path(server: ApiServer, document: JsonObject) -> str:
    return f"{collection_path(server, document)}/{as_text(dig(document, 'metadata', 'name'))}"


def _without_version(document: JsonObject) -> JsonObject:
    metadata = as_object(document.get("metadata"))
    return {**document, "metadata": {key: value for key, value in metadata.items() if key != "resourceVersion"}}


def _exists_already(answer: Answer) -> bool:
    return answer.status == 409 and dig(answer.body, "reason") == "AlreadyExists"


def _label(document: JsonObject) -> str:
    metadata = as_object(document.get("metadata"))
    name = as_text(metadata.get("name")) or as_text(metadata.get("generateName"))
    return f"{document.get('apiVersion')} {document.get('kind')} {as_text(metadata.get('namespace'))}/{name}"


def _refusal(what: str, document: JsonObject, answer: Answer) -> str:
    return f"{what} of {_label(document)} answered {answer.status}: {dig(answer.body, 'message')}"


def _config_map(name: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default", "labels": {"canary": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _canary_policy(name: str) -> JsonObject:
    config_maps: JsonObject = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [config_maps],
                "objectSelector": {"matchLabels": {"canary": name}},
            },
            "validations": [{"expression": "false", "message": "the policies are enforced"}],
        },
    }


def _canary_binding(name: str) -> JsonObject:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Warn"]},
    }
