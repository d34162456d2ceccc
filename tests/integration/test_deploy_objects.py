"""A real API server accepts every object of the chart and of kustomize in a namespace that enforces the restricted standard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from scanner.model.json import JsonObject, as_object, as_text, dig
from tests.deploy.matrix import MATRIX
from tests.deploy.programs import NAMESPACE, base, built, rendered
from tests.integration.apiserver import ApiServer, running
from tests.integration.client import Answer
from tests.integration.made import namespace
from tests.integration.manifests import apply, collection_path, dry_run

HTTP_ROUTES: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "httproutes.gateway.networking.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api/pull/3106"},
    },
    "spec": {
        "group": "gateway.networking.k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "HTTPRoute", "plural": "httproutes", "singular": "httproute"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["parentRefs", "rules"],
                                "properties": {
                                    "hostnames": {"type": "array", "items": {"type": "string"}},
                                    "parentRefs": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}},
                                        },
                                    },
                                    "rules": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "backendRefs": {
                                                    "type": "array",
                                                    "items": {
                                                        "type": "object",
                                                        "required": ["name"],
                                                        "properties": {
                                                            "name": {"type": "string"},
                                                            "port": {"type": "integer"},
                                                        },
                                                    },
                                                }
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
"""The fields of an HTTPRoute that the chart sets."""


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that enforces the standards of pod security, with the namespaces of the tests."""
    directory = tmp_path_factory.mktemp("restricted")
    with running(assets, directory, without_plugins=("ServiceAccount", "TaintNodesByCondition")) as server:
        (restricted,) = (document for document in base() if document["kind"] == "Namespace")
        apply(server, [restricted, namespace("settings"), HTTP_ROUTES])
        yield server


def strictly(server: ApiServer, document: JsonObject) -> Answer:
    """The answer to a dry-run create in which an unknown field is an error."""
    return server.request(
        "POST", collection_path(server, document), document, {"dryRun": "All", "fieldValidation": "Strict"}
    )


def pods_of(documents: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """The pods that the controllers would make of objects."""
    places = {"CronJob": ("spec", "jobTemplate", "spec", "template"), "Deployment": ("spec", "template")}
    for document in documents:
        if place := places.get(as_text(document["kind"])):
            template = as_object(dig(document, *place))
            name = f"{dig(document, 'metadata', 'name')}-pod"
            metadata: JsonObject = {**as_object(template["metadata"]), "name": name, "namespace": NAMESPACE}
            yield {**template, "apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def refusals(server: ApiServer, documents: Sequence[JsonObject]) -> list[str]:
    """The objects, and the pods that controllers make of them, that the server does not accept without a warning."""
    answers = [(document, strictly(server, document)) for document in [*documents, *pods_of(documents)]]
    return [
        f"{document['kind']}: {answer.status} {dig(answer.body, 'message')} {answer.warnings()}"
        for document, answer in answers
        if (answer.status != 201 and dig(answer.body, "reason") != "AlreadyExists") or answer.warnings()
    ]


@pytest.mark.parametrize("case", MATRIX.values(), ids=MATRIX)
def test_the_server_accepts_every_object_of_the_chart(server: ApiServer, case: JsonObject) -> None:
    """In a namespace that enforces the restricted standard, without an unknown field and without a warning."""
    assert [] == refusals(server, rendered(case, release="chart"))


@pytest.mark.parametrize("folder", ["base", "overlays/postgres"])
def test_the_server_accepts_every_object_of_kustomize(server: ApiServer, folder: str) -> None:
    """The same for the base and for the overlay."""
    assert [] == refusals(server, built(folder))


def test_a_pod_that_is_not_restricted_is_refused(server: ApiServer) -> None:
    """The server of these tests enforces the standard."""
    case: JsonObject = {"securityContext": {"allowPrivilegeEscalation": True}}
    (pod,) = pods_of([document for document in rendered(case) if document["kind"] == "CronJob"])
    assert 403 == dry_run(server, pod).status
