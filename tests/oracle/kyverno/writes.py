"""Writes to a real API server whose webhooks are Kyverno's: dry runs, and what the server answers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import urllib3

from scanner.model.json import as_list, as_object, dig
from tests.integration.apiserver import ApiServer
from tests.integration.client import Answer
from tests.integration.manifests import collection_path
from tests.oracle.kyverno.policies import NAMESPACES

Class = Literal["allowed", "denied", "refused"]
"""Kyverno denies a request, and the API server refuses one whose match conditions have errors."""

USER = "bob"
GROUPS = ("system:masters", "system:authenticated")
MARK = "set"
"""The extra field of the user that tells to which set of policies a request is sent."""
_PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_LABEL = "assay-random"
_DENIED = re.compile(r"admission webhook \"[^\"]*\" denied the request: (?P<text>.*)", re.DOTALL)
_REFUSED = re.compile(r".*expression '.*' resulted in error: .*", re.DOTALL)
_SERVERS_OWN = 500
_TRIES = 3
_ADMITTED = (200, 201, 409)
_SECONDS_TO_SETTLE = 30.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the sender of a request sees: the text of the denial or refusal, and the warnings of policies."""

    what: Class
    text: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """A dry-run create of an object, or a dry-run update that changes nothing. `document` is the object as admission sees it."""

    operation: Literal["CREATE", "UPDATE"]
    path: str
    body: dict[str, Any]
    document: dict[str, Any]

    @property
    def plural(self) -> str:
        """The resource of the object."""
        names = self.path.split("/")
        return names[-1] if self.operation == "CREATE" else names[-2]

    def send(self, server: ApiServer, name: str) -> Seen:
        """Send the request to the policies of a set. Raises RuntimeError when the webhooks do not answer."""
        method = "POST" if self.operation == "CREATE" else "PUT"
        for _ in range(_TRIES):
            with suppress(urllib3.exceptions.TimeoutError):
                answer = _sent(server, method, self.path, self.body, name)
                if not _has_failed(answer):
                    return seen(answer)
        raise RuntimeError(f"the webhooks of {name} do not answer")


def _has_failed(answer: Answer) -> bool:
    """Return whether a webhook was not called in time, as on a machine that is busy."""
    return answer.status >= _SERVERS_OWN


def _sent(server: ApiServer, method: str, path: str, document: dict[str, Any], name: str) -> Answer:
    headers = {"Impersonate-User": USER, "Impersonate-Group": GROUPS[0], f"Impersonate-Extra-{MARK}": name}
    return server.client.request(method, path, document, {"dryRun": "All"}, headers=headers)


def seen(answer: Answer) -> Seen:
    """Read an answer of the server. Raises RuntimeError for one that is not about policies."""
    warnings = tuple(sorted(warning for warning in answer.warnings() if warning.startswith("Policy ")))
    if answer.status in _ADMITTED:
        return Seen("allowed", warnings=warnings)
    message = str(answer.body["message"]) if isinstance(answer.body, dict) else ""
    if denied := _DENIED.fullmatch(message):
        return Seen("denied", denied["text"], warnings)
    if _REFUSED.fullmatch(message):
        return Seen("refused", message, warnings)
    raise RuntimeError(f"an answer that is not about policies: {answer.status} {answer.body}")


class Webhooks:
    """The webhooks of sets of policies on one API server, side by side.

    Each webhook has a further match condition, before the others: the user of a request names the set. A false condition decides
    before errors do, so that the others are those of the set alone.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._settled = 0

    def register(self, name: str, configuration: dict[str, Any]) -> str:
        """Register what Kyverno registers for a set. Return the reason why the API refuses it, or an empty string."""
        webhooks = [_marked(webhook, name) for webhook in configuration.get("webhooks", ())]
        return self._create({"metadata": {"name": name, "labels": {_LABEL: "yes"}}, "webhooks": webhooks})

    def settle(self) -> None:
        """Return when the server calls all webhooks registered so far: a later one refuses a request."""
        self._settled += 1
        name = f"settled-{self._settled}"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        webhook = {
            "name": "settled.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [rule],
            "matchConditions": [{"name": "error", "expression": "object.missing == 1"}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        if refused := self.register(name, {"webhooks": [webhook]}):
            raise RuntimeError(refused)
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settled"}}
        write = Write("CREATE", "/api/v1/namespaces/default/configmaps", document, document)
        deadline = time.monotonic() + _SECONDS_TO_SETTLE
        while write.send(self._server, name).what != "refused":
            if time.monotonic() > deadline:
                raise RuntimeError(f"no webhook is called after {_SECONDS_TO_SETTLE:.0f} s")
            time.sleep(0.02)

    def clear(self) -> None:
        """Remove all webhooks."""
        self._server.request("DELETE", _PATH, params={"labelSelector": _LABEL})

    def _create(self, configuration: dict[str, Any]) -> str:
        answer = self._server.request("POST", _PATH, configuration)
        return "" if answer.status == 201 else str(answer.body)


def _marked(webhook: dict[str, Any], name: str) -> dict[str, Any]:
    mine = {"name": "the-set-of-the-user", "expression": f"request.userInfo.?extra.?{MARK}.orValue([]) == ['{name}']"}
    return {**webhook, "matchConditions": [mine, *webhook.get("matchConditions", ())]}


def make_namespaces(server: ApiServer) -> None:
    """Store the namespaces of the policies."""
    for namespace in NAMESPACES:
        server.request("POST", "/api/v1/namespaces", namespace)


def namespaces(server: ApiServer) -> list[Any]:
    """Return all namespaces that are stored."""
    listed = as_list(dig(server.request("GET", "/api/v1/namespaces").body, "items"))
    return [{"apiVersion": "v1", "kind": "Namespace", **as_object(item)} for item in listed]


def writes(server: ApiServer, documents: Iterable[dict[str, Any]]) -> Iterator[Write]:
    """Yield writes of documents: creates, and updates of those that are stored now."""
    for document in documents:
        path = collection_path(server, document)
        created = _whole(_sent(server, "POST", path, document, "nothing"), document)
        if created is not None:
            yield Write("CREATE", path, document, created)
        stored = _whole(server.request("POST", path, _to_store(document)), document)
        if stored is not None:
            yield Write("UPDATE", f"{path}/{stored['metadata']['name']}", stored, stored)


def _to_store(document: dict[str, Any]) -> dict[str, Any]:
    """The object that is stored: a Namespace has another name, because Kyverno reads a Namespace that exists while it is created."""
    metadata = document["metadata"]
    renamed = {"name": f"{metadata['name']}-stored"} if document["kind"] == "Namespace" else {}
    return {**document, "metadata": {**metadata, **renamed}}


def _whole(answer: Answer, document: dict[str, Any]) -> dict[str, Any] | None:
    if answer.status == 409:
        return None
    if answer.status != 201 or not isinstance(answer.body, dict):
        raise RuntimeError(f"the API does not accept an object: {answer.body} {document}")
    return dict(answer.body)
