"""`assay preview --ask-server` on a real server: requests are asked as the controllers, compared, and nothing is changed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer
from tests.integration.faults import wait_until
from tests.integration.made import ADMISSION, namespace
from tests.integration.manifests import apply, delete, wait_until_enforced
from tests.integration.webhooks import answering

SPACE = "asked"
SIDECAR: JsonObject = {"name": "injected", "image": "example.com/proxy:1"}
LIMITED = "object.spec.containers.all(c, has(c.resources.limits))"
LISTED = ("/api/v1/{}", "pods"), ("/apis/apps/v1/{}", "statefulsets"), ("/apis/apps/v1/{}", "replicasets")


def rule(name: str, group: str, resource: str, expression: str) -> list[JsonObject]:
    """A policy about one resource of the namespace, and the binding that audits."""
    rules: list[Json] = [
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
    ]
    selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}
    spec: JsonObject = {
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
        "validations": [{"expression": expression, "message": f"{name} denies it"}],
    }
    of_binding: JsonObject = {"policyName": name, "validationActions": ["Audit"]}
    kind = "ValidatingAdmissionPolicy"
    return [
        {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec},
        {"apiVersion": ADMISSION, "kind": f"{kind}Binding", "metadata": {"name": name}, "spec": of_binding},
    ]


def stateful_set(name: str, **metadata: Json) -> JsonObject:
    """A StatefulSet whose container has limits, without pods: no controller runs."""
    container: JsonObject = {"name": "c", "image": "example.com/db:1", "resources": {"limits": {"cpu": "1"}}}
    template: JsonObject = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": SPACE, **metadata},
        "spec": {"serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def inject(request: JsonObject) -> JsonObject:
    """The response of a webhook that adds a label and a container without limits."""
    patch = [
        {"op": "add", "path": "/metadata/labels/injected", "value": "yes"},
        {"op": "add", "path": "/spec/containers/-", "value": SIDECAR},
    ]
    del request
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(patch)).decode()}


@pytest.fixture(scope="module")
def server(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The shared server with two StatefulSets, three rules that audit, and a webhook that injects a container."""
    kept = stateful_set("kept", finalizers=["example.com/keep"])
    documents: list[JsonObject] = [
        namespace(SPACE),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": SPACE}},
        stateful_set("db"),
        kept,
        *rule("asked-limits", "", "pods", LIMITED),
        *rule("asked-labels", "", "pods", "'injected' in object.metadata.labels"),
        *rule("asked-sets", "apps", "statefulsets", "'team' in object.metadata.labels"),
    ]
    with answering(tmp_path_factory.mktemp("injecting"), inject) as client:
        webhook: dict[str, Json] = {
            "name": "inject.example.com",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "clientConfig": client,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}},
        }
        configuration: JsonObject = {
            "apiVersion": ADMISSION,
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "asked-sidecars"},
            "webhooks": [webhook],
        }
        apply(api_server, [*documents, configuration])
        wait_until_enforced(api_server)
        yield api_server
        delete(api_server, configuration)
        for document in reversed(documents[4:]):
            delete(api_server, document)


def read_versions(server: ApiServer) -> dict[str, str]:
    """The resource versions of the objects that the preview asks about, by kind and name."""
    listed = (
        (plural, item)
        for path, plural in LISTED
        for item in as_list(dig(server.request("GET", path.format(plural)).body, "items"))
    )
    return {
        f"{plural}/{dig(item, 'metadata', 'name')}": as_text(dig(item, "metadata", "resourceVersion"))
        for plural, item in listed
    }


def preview(assay: Assay, *flags: str | Path) -> tuple[int, Any]:
    """The exit code and the JSON report of a preview."""
    ran = assay("preview", "-q", "-o", "json", *flags)
    return ran.code, ran.report


def summarise(report: Any) -> dict[str, list[tuple[str, str, bool, str]]]:
    """What each workload could no longer do, how sure that is, and how the answer of the server compares."""
    return {
        each["workload"]["name"]: [
            (risk["action"], risk["certainty"], risk["refused"], risk["server"]["compared"]) for risk in each["risks"]
        ]
        for each in report["workloads"]
    }


def test_the_pod_that_the_server_would_store_decides(server: ApiServer, assay: Assay) -> None:
    """The template has limits, the container that a webhook injects has none: only the asked preview knows."""
    flags = ("--kubeconfig", server.kubeconfig, "--action", "asked-limits=Deny")
    before = read_versions(server)
    _, alone = preview(assay, *flags)
    code, asked = preview(assay, *flags, "--ask-server")

    assert [] == alone["workloads"]
    recreate = [("recreate", "asked", True, "agrees")]
    assert {"db": recreate, "kept": recreate} == summarise(asked)
    assert {"agrees": 2, "differs": 0, "notCompared": 0, "notAsked": 0} == asked["asked"]
    assert 0 == code
    assert before == read_versions(server)


def test_what_a_webhook_adds_can_satisfy_the_rule(server: ApiServer, assay: Assay) -> None:
    """A template alone is undecided, because a webhook may change its pods; the API server knows what it adds."""
    flags = ("--kubeconfig", server.kubeconfig, "--action", "asked-labels=Deny")
    alone_code, alone = preview(assay, *flags)
    code, asked = preview(assay, *flags, "--ask-server")

    assert (3, {"db", "kept"}) == (alone_code, {each["workload"]["name"] for each in alone["workloads"]})
    assert (0, {}) == (code, summarise(asked))


def test_updates_and_finalizers_are_asked_about(server: ApiServer, assay: Assay) -> None:
    """The finalizer stays, and no object has another version afterwards."""
    before = read_versions(server)
    _, asked = preview(assay, "--kubeconfig", server.kubeconfig, "--action", "asked-sets=Deny", "--ask-server")

    edit = ("edit", "stored", True, "agrees")
    assert {"db": [edit], "kept": [("finalize", "stored", True, "agrees"), edit]} == summarise(asked)
    assert before == read_versions(server)


def test_without_rights_the_answer_is_missing_and_visible(server: ApiServer, assay: Assay) -> None:
    """A user with the roles of --for-preview alone reads everything, and cannot ask; with --ask-server, it can."""
    as_guest = ("--kubeconfig", server.kubeconfig_for("guest"), "--action", "asked-limits=Deny")
    generate = ("rbac", "generate", "--for-preview", "--for", "user:guest", "--kubeconfig", server.kubeconfig)
    reader = list(yaml.safe_load_all(assay(*generate, "--name", "asked-reader").stdout))
    apply(server, reader)
    wait_until(lambda: preview(assay, *as_guest)[0] == 0)
    code, asked = preview(assay, *as_guest, "--ask-server")
    asker = list(yaml.safe_load_all(assay(*generate, "--name", "asked-asker", "--ask-server").stdout))
    apply(server, asker)
    wait_until(lambda: preview(assay, *as_guest, "--ask-server")[0] == 0)
    _, granted = preview(assay, *as_guest, "--ask-server")
    for document in (*reader, *asker):
        delete(server, document)

    assert 3 == code
    assert {"agrees": 0, "differs": 0, "notCompared": 0, "notAsked": 2} == asked["asked"]
    assert "could not be asked: guest: permission to create on pods is missing" == asked["gaps"][0]["why"]
    recreate = [("recreate", "asked", True, "agrees")]
    assert {"db": recreate, "kept": recreate} == summarise(granted)
