"""The identity of deploy/cronjob.yaml can do what the scan needs, and nothing more, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration import examples
from tests.integration.apiserver import ApiServer, running
from tests.integration.manifests import apply

DEPLOY = Path(__file__).parents[2] / "deploy" / "cronjob.yaml"
IDENTITY = "system:serviceaccount:assay:assay"
CUSTOM: JsonObject = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "assay-custom"},
    "rules": [
        {"apiGroups": ["ops.example.com"], "resources": ["backups"], "verbs": ["get", "list"]},
        {"apiGroups": ["governance.example.com"], "resources": ["storagelimits"], "verbs": ["get", "list"]},
    ],
}
CUSTOM_BINDING: JsonObject = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "assay-custom"},
    "subjects": [{"kind": "ServiceAccount", "name": "assay", "namespace": "assay"}],
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "assay-custom"},
}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that holds the example cluster, its policies and what deploy/ brings."""
    with running(assets, tmp_path_factory.mktemp("deployed")) as server:
        apply(server, [*examples.objects("after"), *deployed(), *examples.policies()])
        yield server


def deployed() -> list[JsonObject]:
    """The manifests of deploy/cronjob.yaml."""
    return [as_object(document) for document in yaml.safe_load_all(DEPLOY.read_text())]


def arguments() -> list[str]:
    """The arguments that the CronJob passes to `assay`."""
    (job,) = (document for document in deployed() if document["kind"] == "CronJob")
    pod = dig(job, "spec", "jobTemplate", "spec", "template", "spec")
    return [as_text(argument) for argument in as_list(dig(as_list(dig(pod, "containers"))[0], "args"))]


def scanned(server: ApiServer, assay: Assay, *connection: str) -> Ran:
    """Run the job's command, by default as the administrator."""
    return assay(*arguments(), "--kubeconfig", server.kubeconfig, *connection, "--db", "assay.db", "-o", "json")


def violations(ran: Ran) -> set[tuple[str, str, str]]:
    """Policy, namespace and name of every finding."""
    return {
        (
            as_text(dig(finding, "policy")),
            as_text(dig(finding, "object", "namespace")),
            as_text(dig(finding, "object", "name")),
        )
        for finding in as_list(ran.report["findings"])
    }


def test_only_custom_resources_are_missing(server: ApiServer, assay: Assay) -> None:
    """Every built-in kind can be read; what the file leaves to its user is named, and the scan is incomplete."""
    ran = scanned(server, assay, "--as", IDENTITY)
    gaps = [f"{dig(gap, 'where')}: {dig(gap, 'why')}".lower() for gap in as_list(ran.report["gaps"])]
    assert (3, 2) == (ran.code, len(gaps))
    assert "backup" in " ".join(gaps)
    assert "storagelimit" in " ".join(gaps)


def test_with_custom_resources_granted_nothing_is_missing(server: ApiServer, assay: Assay) -> None:
    """With the rules of the file's comment, the identity has the same findings as an administrator."""
    apply(server, [CUSTOM, CUSTOM_BINDING])
    administrator = scanned(server, assay)
    ran = scanned(server, assay, "--as", IDENTITY)
    assert (0, []) == (ran.code, ran.report["gaps"])
    assert violations(administrator) == violations(ran)


@pytest.mark.parametrize("path", ["/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets"])
def test_secrets_cannot_be_read(server: ApiServer, path: str) -> None:
    """The server refuses the list."""
    assert 403 == answered(server, "GET", path)


def test_nothing_can_be_written(server: ApiServer) -> None:
    """The server refuses an object that anybody with a right to write could make."""
    body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written"}}
    assert 403 == answered(server, "POST", "/api/v1/namespaces/assay/configmaps", body)


def answered(server: ApiServer, method: str, path: str, body: JsonObject | None = None) -> int:
    """The status of a request that the job's identity makes."""
    token = server.request("POST", "/api/v1/namespaces/assay/serviceaccounts/assay/token", {"spec": {}}).body
    return server.request(method, path, body, token=as_text(dig(token, "status", "token"))).status
