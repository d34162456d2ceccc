"""Recording of what Pod Security answers about pods and workloads in namespaces of random levels.

The form is that of the cases `pod` and `template` of the file `pod-security`, without audit annotations. Objects are recorded as the
server stores them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from scanner.model.json import dig
from scanner.policies.pod_security.pods import find_template
from tests.conformance.pod_security import kind_of
from tests.integration.apiserver import ApiServer
from tests.integration.client import Answer
from tests.integration.pod_security import FREE, Document, Objects, create_namespace, judging, try_create

_EACH = 10
_OF_THE_SERVER = ("uid", "creationTimestamp", "managedFields", "generation", "namespace")


@contextmanager
def served(assets: Path, directory: Path) -> Iterator[ApiServer]:
    """A server with Pod Security, without a configuration."""
    with judging(assets, directory, configured=False) as (server, _):
        yield server


def record(server: ApiServer, seed: int, number: int) -> Document:
    """Return so many recorded objects, ten in each namespace."""
    objects = Objects(Random(seed))
    version = str(dig(server.request("GET", "/version").body, "gitVersion")).removeprefix("v")
    recorded: Document = {"server": version, "namespaces": {"default": {}}, "objects": [], "cases": []}
    create_namespace(server, FREE, {})
    while len(recorded["cases"]) < number:
        name = f"ps-{len(recorded['namespaces']['default'])}"
        labels = objects.labels()
        create_namespace(server, name, labels)
        recorded["namespaces"]["default"][name] = labels
        for _ in range(_EACH):
            _record(server, name, *objects.document(), recorded)
    return recorded


def _record(server: ApiServer, namespace: str, place: str, document: Document, recorded: Document) -> None:
    stored: Any = try_create(server, place, FREE, document)
    if stored.status != 201:
        return
    body: Document = {**stored.body, "metadata": dict(stored.body["metadata"])}
    for name in _OF_THE_SERVER:
        body["metadata"].pop(name, None)
    body.pop("status", None)
    is_pod = body["kind"] == "Pod"
    case = {
        "id": len(recorded["cases"]),
        "kind": "pod" if is_pod else "template",
        "server": "default",
        "namespace": namespace,
        "object": len(recorded["objects"]),
        **_answered(try_create(server, place, namespace, document)),
    }
    if not is_pod:
        case["pod"] = _answered(try_create(server, "/api/v1 pods", namespace, _pod_of(body)))
    recorded["objects"].append(body)
    recorded["cases"].append(case)


def _pod_of(body: Document) -> Document:
    found = find_template(kind_of(body), body)
    assert found
    template: Document = dict(found[1])
    metadata = {**template.get("metadata", {}), "name": "p"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _answered(answer: Answer) -> Document:
    warnings = [each for each in answer.warnings() if each.startswith("would violate PodSecurity")]
    message = (
        {} if answer.status == 201 else {"message": dig(answer.body, "message"), "reason": dig(answer.body, "reason")}
    )
    return {"code": answer.status, **message, "warnings": warnings}
