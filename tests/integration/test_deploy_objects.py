"""A real API server accepts every object of the chart and of kustomize in a namespace that enforces the restricted standard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from tests.deploy.matrix import FLEET, MATRIX
from tests.deploy.programs import CHART, DEPLOY, NAMESPACE, against_a_server, base, built, documents, rendered
from tests.integration.apiserver import ApiServer, running
from tests.integration.client import Answer
from tests.integration.made import namespace
from tests.integration.manifests import apply, collection_path, dry_run
from tests.integration.monitoring import DEFINITIONS

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
        apply(server, [restricted, namespace("settings"), HTTP_ROUTES, *DEFINITIONS])
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


def test_the_server_accepts_the_cronjob_of_a_fleet(server: ApiServer) -> None:
    """The same for the file beside them."""
    assert [] == refusals(server, documents((DEPLOY / "fleet.yaml").read_text()))


def test_the_server_accepts_the_alerts_of_deploy(server: ApiServer) -> None:
    """The same for the PrometheusRule that is installed without the chart."""
    assert [] == refusals(server, documents((DEPLOY / "prometheus" / "rules.yaml").read_text()))


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        ("PrometheusRule", {"groups": [{"name": "assay", "rules": [{"alert": "AssayRunFailed"}]}]}, "expr"),
        ("ServiceMonitor", {"selector": {}, "endpoints": [{"ports": "http"}]}, "unknown field"),
        ("ServiceMonitor", {"selector": {}, "endpoints": [{"interval": "often"}]}, "interval"),
    ],
    ids=str,
)
def test_the_server_refuses_objects_that_the_operator_would(
    server: ApiServer, kind: str, changed: JsonObject, message: str
) -> None:
    """So its acceptance of the chart's has a meaning."""
    (document,) = (each for each in rendered(MATRIX["everything"]) if each["kind"] == kind)
    answer = strictly(server, {**document, "spec": changed})
    assert answer.status in (400, 422)
    assert message in as_text(dig(answer.body, "message"))


def test_a_pod_that_is_not_restricted_is_refused(server: ApiServer) -> None:
    """The server of these tests enforces the standard."""
    case: JsonObject = {"securityContext": {"allowPrivilegeEscalation": True}}
    (pod,) = pods_of([document for document in rendered(case) if document["kind"] == "CronJob"])
    assert 403 == dry_run(server, pod).status


@pytest.mark.parametrize(
    ("case", "notes"),
    [
        ({}, ["Assay scans this cluster at", "Check the rights of the scan:"]),
        (FLEET, ["Assay scans 2 clusters at", "Check the rights of the scan in each cluster, with the kubeconfigs:"]),
    ],
    ids=["cluster", "fleet"],
)
def test_the_notes_name_what_is_scanned(server: ApiServer, case: JsonObject, notes: list[str]) -> None:
    """Helm prints them after an installation."""
    flags = ("--namespace", NAMESPACE, "--kubeconfig", str(server.kubeconfig), "--dry-run=server")
    ran = against_a_server("install", "noted", str(CHART), *flags, values=case)
    printed = ran.stdout.partition("\nNOTES:\n")[2]
    assert [] == [each for each in notes if each not in printed], ran.stderr


def test_helm_installs_upgrades_and_uninstalls_a_release(server: ApiServer) -> None:
    """The history stays when the release goes."""
    apply(server, [namespace("released")])
    flags = ("--namespace", "released", "--kubeconfig", str(server.kubeconfig))
    ran = [
        against_a_server("install", "assay", str(CHART), *flags),
        against_a_server(
            "upgrade", "assay", str(CHART), *flags, values={"schedule": "@hourly", "waivers": {"enabled": True}}
        ),
    ]
    schedule = dig(server.request("GET", "/apis/batch/v1/namespaces/released/cronjobs/assay").body, "spec", "schedule")
    ran.append(against_a_server("uninstall", "assay", *flags))
    claims = as_list(dig(server.request("GET", "/api/v1/namespaces/released/persistentvolumeclaims").body, "items"))
    jobs = as_list(dig(server.request("GET", "/apis/batch/v1/namespaces/released/cronjobs").body, "items"))

    assert [0, 0, 0] == [each.returncode for each in ran], [each.stderr for each in ran]
    assert ("@hourly", ["assay"], []) == (schedule, [dig(claim, "metadata", "name") for claim in claims], jobs)
