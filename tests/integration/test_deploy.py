"""The identity of deploy/ can do what the scan needs, and nothing more, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import yaml

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig, texts
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.deploy.programs import NAMESPACE, base, rendered
from tests.integration import examples
from tests.integration.apiserver import ApiServer, running
from tests.integration.faults import wait_until
from tests.integration.manifests import apply

IDENTITY = "system:serviceaccount:assay:assay"
VERBS = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
)
REVIEWS = {
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
}
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
    """A server that holds the example cluster, its policies and the base."""
    with running(assets, tmp_path_factory.mktemp("deployed")) as server:
        apply(server, [*examples.objects("after"), *base(), *examples.policies()])
        yield server


def configured(folder: Path) -> str:
    """Write assay.yaml of the base into a folder, and return its path."""
    (config_map,) = (document for document in base() if document["kind"] == "ConfigMap")
    path = folder / "assay.yaml"
    path.write_text(as_text(dig(config_map, "data", "assay.yaml")))
    return str(path)


def scanned(server: ApiServer, assay: Assay, folder: Path, *connection: str) -> Ran:
    """Scan with the configuration of the base, by default as the administrator."""
    flags = ("--config", configured(folder), "--kubeconfig", str(server.kubeconfig), "--db", "assay.db", "-o", "json")
    return assay("scan", *flags, *connection)


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


def test_only_custom_resources_are_missing(server: ApiServer, assay: Assay, tmp_path: Path) -> None:
    """Every built-in kind can be read; the gaps are the custom resources, for which the user adds rules."""
    ran = scanned(server, assay, tmp_path, "--as", IDENTITY)
    gaps = [f"{dig(gap, 'where')}: {dig(gap, 'why')}".lower() for gap in as_list(ran.report["gaps"])]
    assert (3, 2) == (ran.code, len(gaps))
    assert "backup" in " ".join(gaps)
    assert "storagelimit" in " ".join(gaps)


def test_with_custom_resources_granted_nothing_is_missing(server: ApiServer, assay: Assay, tmp_path: Path) -> None:
    """With the rules of the comment in rbac.yaml, the identity has the same findings as an administrator."""
    apply(server, [CUSTOM, CUSTOM_BINDING])
    administrator = scanned(server, assay, tmp_path)
    ran = scanned(server, assay, tmp_path, "--as", IDENTITY)
    assert (0, []) == (ran.code, ran.report["gaps"])
    assert violations(administrator) == violations(ran)


def test_the_identity_has_the_rights_of_a_scan_verb_by_verb(server: ApiServer) -> None:
    """Of every resource that the server serves: get and list where the role names it, create for reviews, and no other verb."""
    granted = {
        (group, resource, verb)
        for role in (*base(), CUSTOM)
        for rule in as_list(role.get("rules"))
        for group, resource, verb in product(
            texts(dig(rule, "apiGroups")), texts(dig(rule, "resources")), texts(dig(rule, "verbs"))
        )
    }
    apply(server, [CUSTOM, CUSTOM_BINDING])
    served_and_verbs = list(product(sorted(served(server)), VERBS))
    allowed = {(*resource, verb) for resource, verb in served_and_verbs if may(server, IDENTITY, *resource, verb)}
    expected = {right for right in granted if right[:2] in served(server)}
    assert expected == allowed
    assert {"get", "list"} == {verb for *resource, verb in allowed if tuple(resource) not in REVIEWS}
    assert ("", "secrets", "get") not in allowed


def test_the_identity_of_least_privilege_has_the_generated_rights_alone(
    server: ApiServer, assay: Assay, tmp_path: Path
) -> None:
    """The chart takes the rules that `assay rbac generate` prints; with them a scan is complete, and may do nothing else."""
    flags = ("--kubeconfig", str(server.kubeconfig))
    printed = assay("rbac", "generate", "--config", configured(tmp_path), *flags)
    roles = [as_object(document) for document in yaml.safe_load_all(printed.stdout)]
    rules = [rule for role in roles if role["kind"] == "ClusterRole" for rule in as_list(role["rules"])]
    namespaced: list[JsonObject] = [
        {"namespace": dig(role, "metadata", "namespace"), "rules": role["rules"]}
        for role in roles
        if role["kind"] == "Role"
    ]
    documents = rendered({"rbac": {"rules": rules, "roles": [*namespaced]}, "fullnameOverride": "least"})
    identity = "system:serviceaccount:assay:least"
    kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    apply(server, [document for document in documents if document["kind"] in kinds])
    wait_until(lambda: may(server, identity, "", "pods", "list"))

    checked = assay("rbac", "check", "--config", configured(tmp_path), *flags, "--as", identity)
    ran = scanned(server, assay, tmp_path, "--as", identity)
    assert (0, 0, []) == (checked.code, ran.code, ran.report["gaps"])

    rights = {
        (group, resource, verb)
        for rule in rules
        for group, resource, verb in product(
            texts(dig(rule, "apiGroups")), texts(dig(rule, "resources")), texts(dig(rule, "verbs"))
        )
        if not dig(rule, "resourceNames")
    }
    allowed = {
        (*resource, verb)
        for resource, verb in product(sorted(served(server)), VERBS)
        if may(server, identity, *resource, verb)
    }
    assert rights | _of_everybody(server) == allowed | _of_everybody(server)


def _of_everybody(server: ApiServer) -> set[tuple[str, str, str]]:
    """The rights that Kubernetes gives to every authenticated user: reviews of oneself."""
    return {
        (*resource, verb)
        for resource, verb in product(sorted(served(server)), VERBS)
        if may(server, "system:serviceaccount:assay:nothing", *resource, verb)
    }


def served(server: ApiServer) -> set[tuple[str, str]]:
    """Group and plural of every resource that the server serves, without subresources."""
    if (known := _SERVED.get(server.url)) is not None:
        return known
    groups = as_list(dig(server.request("GET", "/apis").body, "groups"))
    roots = [
        "/api/v1",
        *(f"/apis/{dig(v, 'groupVersion')}" for group in groups for v in as_list(dig(group, "versions"))),
    ]
    found = {
        ("" if root == "/api/v1" else root.split("/")[2], as_text(dig(resource, "name")))
        for root in roots
        for resource in as_list(dig(server.request("GET", root).body, "resources"))
        if "/" not in as_text(dig(resource, "name"))
    }
    _SERVED[server.url] = found
    return found


_SERVED: dict[str, set[tuple[str, str]]] = {}


def may(server: ApiServer, user: str, group: str, resource: str, verb: str) -> bool:
    """Whether the server allows a ServiceAccount a verb on all objects of a resource."""
    attributes: JsonObject = {"group": group, "resource": resource, "verb": verb}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    body: JsonObject = {"spec": {"user": user, "groups": [*groups], "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return dig(server.request("POST", path, body).body, "status", "allowed") is True


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
