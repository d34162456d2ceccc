"""A scan reports the server's own type check of policies, and the webhooks that also decide."""

from __future__ import annotations

import re

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer
from tests.integration.made import ADMISSION, LABEL, binding, labelled, namespace, policy
from tests.integration.manifests import apply

HERE = "healthy"


@pytest.fixture
def name(api_server: ApiServer, request: pytest.FixtureRequest) -> str:
    """A policy name for the test, on a server with a namespace."""
    apply(api_server, [namespace(HERE)])
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")[:50].strip("-")


def scan(server: ApiServer, policy_name: str, assay: Assay) -> Ran:
    """Scan with one policy alone, into a database of the test's own."""
    return assay("scan", "--kubeconfig", server.kubeconfig, "--policy", policy_name, "-o", "json")


def health(ran: Ran) -> list[tuple[str, str]]:
    """Kind and detail of every entry."""
    return [
        (as_text(dig(problem, "kind")), as_text(dig(problem, "detail"))) for problem in as_list(ran.report["health"])
    ]


def test_type_warnings_of_the_server_are_shown(api_server: ApiServer, name: str, assay: Assay) -> None:
    """As long as they are about the policy as it is: after a change, the status is called stale."""
    warning: dict[str, Json] = {
        "fieldRef": "spec.validations[0].expression",
        "warning": "/v1, Kind=ConfigMap: undefined field 'x'",
    }
    path = f"/apis/{ADMISSION}/validatingadmissionpolicies/{name}"
    apply(api_server, [labelled("ConfigMap", name, name, namespace=HERE), policy(name, "configmaps"), binding(name)])
    stored = api_server.request("GET", path).body
    assert isinstance(stored, dict)
    status: Json = {"observedGeneration": 1, "typeChecking": {"expressionWarnings": [warning]}}
    assert 200 == api_server.request("PUT", f"{path}/status", {**stored, "status": status}).status
    checked = scan(api_server, name, assay)
    apply(api_server, [policy(name, "configmaps", message="changed")])
    changed = scan(api_server, name, assay)

    assert ("typeWarning", f"{warning['fieldRef']}: {warning['warning']}") in health(checked)
    assert (
        "staleStatus",
        "its types were checked as of generation 1, and it is at 2: the warnings are not shown",
    ) in health(changed)


def test_webhooks_are_named(api_server: ApiServer, name: str, assay: Assay) -> None:
    """They are in no scan, and a report that did not name them would look like the whole truth."""
    hook: JsonObject = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "objectSelector": {"matchLabels": {LABEL: name}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["nodes"]}],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration: JsonObject = {
        "apiVersion": ADMISSION,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }
    apply(api_server, [configuration, policy(name, "configmaps"), binding(name)])
    ran = scan(api_server, name, assay)

    outside = {(dig(item, "kind"), dig(item, "name"), dig(item, "why")) for item in as_list(ran.report["outside"])}
    why = "1 webhook (a.example.com): what a program decides is not written in the API"
    assert ("ValidatingWebhookConfiguration", name, why) in outside
