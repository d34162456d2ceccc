"""A real API server that holds the objects, and what predictions need to know of it.

The objects are in `objects/` as users write them; they are evaluated as the server stores them, with its defaults.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

import orjson
import urllib3

from scanner.api import UserInfo
from scanner.cluster.files.manifests import read_documents
from scanner.cluster.live.cluster import LiveCluster
from scanner.model.json import JsonObject, as_object, as_text, dig
from scanner.model.policy import Operation
from scanner.model.resource import Kind
from scanner.mutate.schema import Schemas
from tests.integration.apiserver import ApiServer, running
from tests.integration.client import Answer
from tests.integration.fuzz.manifests import binding_named, policy_named
from tests.integration.manifests import apply, collection_path

FOLDER = Path(__file__).parent / "objects"
NAMESPACES = ("fuzz", "limits")
GROUPS = ("system:masters", "system:authenticated")
SECONDS_TO_ACT = 120.0
SECONDS_TO_ANSWER = 120.0
DEFINITION = "CustomResourceDefinition"
ADMISSION_PATH = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
CREATED = 201
_DROPPED = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
_CANARIES = count()


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the server returns it, and the path it is created at."""

    document: JsonObject
    collection: str

    @property
    def path(self) -> str:
        """The path of the object itself."""
        return f"{self.collection}/{as_text(dig(self.document, 'metadata', 'name'))}"

    @property
    def copy(self) -> JsonObject:
        """What is sent to create the object once more."""
        metadata = as_object(self.document["metadata"])
        copied = {
            **self.document,
            "metadata": {name: value for name, value in metadata.items() if name not in _DROPPED},
        }
        return _without_identity(copied) if copied["kind"] == "Job" else copied

    def sent(self, operation: Operation) -> JsonObject:
        """What is sent with an operation: an update changes nothing by itself."""
        return self.copy if operation == "CREATE" else self.document


_PROBE = Stored(
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "canary", "namespace": "default"}},
    "/api/v1/namespaces/default/configmaps",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A server that holds objects, and what predictions need to know of it."""

    server: ApiServer
    objects: tuple[Stored, ...]
    namespaces: tuple[JsonObject, ...]
    kinds: tuple[Kind, ...]
    schemas: Schemas

    def write(self, stored: Stored, operation: Operation, user: UserInfo) -> Answer:
        """The answer to a dry-run write by some user; its status is 0 when the server ends the connection instead."""
        create = operation == "CREATE"
        url = f"{self.server.url}{stored.collection if create else stored.path}?{urlencode({'dryRun': 'All'})}"
        headers = urllib3.HTTPHeaderDict([*_headers(self.server.token, user)])
        body = orjson.dumps(stored.sent(operation))
        try:
            reply = self.server.client.pool.request(
                "POST" if create else "PUT", url, body=body, headers=headers, timeout=SECONDS_TO_ANSWER
            )
        except urllib3.exceptions.ProtocolError:
            return Answer(0, urllib3.HTTPHeaderDict(), {"message": "the connection ends"})
        return Answer(reply.status, reply.headers, as_object(orjson.loads(reply.data)))

    def remove(self, stored: Stored) -> None:
        """Delete an object and all that keeps it, so that an object of its name can be created."""
        freed = {"metadata": {"finalizers": None}}
        self.server.client.request("PATCH", stored.path, freed, content_type="application/merge-patch+json")
        self.server.request(
            "DELETE", stored.path, params={"propagationPolicy": "Background", "gracePeriodSeconds": "0"}
        )
        if stored.document["kind"] == "Namespace":
            self.server.request("PUT", f"{stored.path}/finalize", {**stored.copy, "spec": {"finalizers": []}})

    def current(self, stored: Stored) -> Stored:
        """The object as it is now: the server completes some after they were created, and gives a new one a new UID."""
        return Stored(as_object(self.server.request("GET", stored.path).body), stored.collection)

    def converted(self, stored: Stored, kind: Kind) -> JsonObject:
        """The object as the server returns it in another of its kinds."""
        metadata = as_object(stored.document["metadata"])
        space = f"namespaces/{metadata['namespace']}/" if kind.namespaced else ""
        path = f"{kind.path.removesuffix(kind.plural)}{space}{kind.plural}/{metadata['name']}"
        return as_object(self.server.request("GET", path).body)

    def restore(self, stored: Stored) -> None:
        """Create an object once more that was removed."""
        self.server.request("POST", stored.collection, stored.copy)

    def activate(self, documents: Iterable[JsonObject]) -> None:
        """Store policies and bindings, and return when they act.

        Both are read from streams, each in order, so that a policy stored after them acts after they do.
        """
        user = f"canary-{next(_CANARIES)}"
        label = f'Object{{metadata: Object.metadata{{labels: {{"canary": "{user}"}}}}}}'
        for document in (*documents, policy_named(user, (label,), user=user), binding_named(user)):
            path = f"{ADMISSION_PATH}/{PLURALS[as_text(document['kind'])]}"
            answer = self.server.request("POST", path, document)
            assert answer.status == CREATED, answer.body
        deadline = time.monotonic() + SECONDS_TO_ACT
        while dig(self.write(_PROBE, "CREATE", UserInfo(user, groups=GROUPS)).body, "metadata", "labels") is None:
            assert time.monotonic() < deadline, f"policy {user} does not act"
            time.sleep(0.1)

    def reorder(self) -> None:
        """Have the server put the policies into a new order: it does so at random whenever any policy changes."""
        self.activate(())

    def deactivate(self) -> None:
        """Delete all policies and bindings."""
        for plural in PLURALS.values():
            self.server.request("DELETE", f"{ADMISSION_PATH}/{plural}")


def _without_identity(job: JsonObject) -> JsonObject:
    """A Job without the selector and the labels that carry the UID of the one that is there."""
    spec = as_object(job["spec"])
    template = {**as_object(spec["template"]), "metadata": {}}
    return {
        **job,
        "spec": {**{name: value for name, value in spec.items() if name != "selector"}, "template": template},
    }


def _headers(token: str, user: UserInfo) -> Iterator[tuple[str, str]]:
    yield "Authorization", f"Bearer {token}"
    yield "Content-Type", "application/json"
    yield "Impersonate-User", user.username
    for group in user.groups:
        yield "Impersonate-Group", group
    for name, values in user.extra:
        for value in values:
            yield f"Impersonate-Extra-{name}", value


@contextmanager
def staged(assets: Path, directory: Path) -> Iterator[Stage]:
    """A server of our own: its policies act on every object."""
    with running(assets, directory) as server:
        yield prepared(server)


def prepared(server: ApiServer) -> Stage:
    """Store all objects on a server."""
    spaces: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES
    ]
    applied = apply(server, [*spaces, *documents()])
    live = LiveCluster(kubeconfig=str(server.kubeconfig))
    stored = [Stored(document, collection_path(server, document)) for document in map(as_object, applied)]
    names = {*NAMESPACES}
    stage = Stage(
        server,
        tuple(item for item in stored if dig(item.document, "metadata", "name") not in names),
        tuple(item.document for item in stored if item.document["kind"] == "Namespace"),
        live.discover().kinds,
        live.schemas(),
    )
    return replace(stage, objects=tuple(map(stage.current, stage.objects)))


def documents() -> list[JsonObject]:
    """The objects as they are written."""
    read, gaps = read_documents(FOLDER)
    assert gaps == ()
    return [document.body for document in read]


def where_of(document: Mapping[str, object]) -> str:
    """Kind and name of an object."""
    metadata = document["metadata"]
    return f"{document['kind']}/{metadata['name']}" if isinstance(metadata, Mapping) else str(document["kind"])
