"""A release of each earlier chart becomes one of the chart of deploy/, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.deploy.programs import CHART, against_a_server, documents, rendered
from tests.integration.apiserver import ApiServer, running

CHARTS = sorted((Path(__file__).parents[1] / "deploy" / "charts").glob("*.tgz"))
RELEASE = "assay"
NUMBERS = count()
CUSTOM: JsonObject = {"apiGroups": ["example.com"], "resources": ["limits"], "verbs": ["get", "list"]}
VALUES: dict[str, JsonObject] = {
    "defaults": {},
    "own values": {
        "image": {"repository": "registry.example.com/kube-assay"},
        "rbac": {"extraRules": [CUSTOM], "roles": [{"namespace": "default", "rules": [CUSTOM]}]},
        "database": {"existingSecret": "assay-db"},
        "config": {
            "skipKind": None,
            "failOn": ["new"],
            "oidcIssuer": "https://id.example.com",
            "oidcClientId": "assay",
        },
        "upgrade": {"enabled": False},
        "schedule": "@daily",
        "serve": {"enabled": True},
        "networkPolicy": {"enabled": True},
    },
}
PLURALS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
}
OF_RELEASE = {"labelSelector": f"app.kubernetes.io/instance={RELEASE}"}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server on which nothing is installed."""
    with running(assets, tmp_path_factory.mktemp("upgraded")) as server:
        yield server


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    """A namespace for one release, which is uninstalled."""
    name = f"upgraded-{next(NUMBERS)}"
    yield name
    helm(server, name, "uninstall")


def helm(server: ApiServer, namespace: str, command: str, *arguments: str, values: JsonObject | None = None) -> str:
    """The output of a command of helm about the release, which succeeds."""
    place = ("--namespace", namespace, "--kubeconfig", str(server.kubeconfig))
    ran = against_a_server(*command.split(), RELEASE, *arguments, *place, values=values)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def stored(server: ApiServer, namespace: str) -> set[tuple[str, str]]:
    """Kind and name of every object of the release on the server."""
    return {
        (kind, as_text(dig(item, "metadata", "name")))
        for kind, path in PLURALS.items()
        for item in as_list(dig(server.request("GET", path.format(namespace), params=OF_RELEASE).body, "items"))
    }


def configuration(server: ApiServer, namespace: str) -> Json:
    """The content of assay.yaml on the server."""
    config = server.request("GET", f"{PLURALS['ConfigMap'].format(namespace)}/{RELEASE}").body
    configured: Json = yaml.safe_load(as_text(dig(config, "data", "assay.yaml")))
    return configured


@pytest.mark.parametrize("flag", ["--reset-then-reuse-values", "--reuse-values"])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.stem)
def test_an_earlier_release_is_upgraded(server: ApiServer, namespace: str, chart: Path, values: str, flag: str) -> None:
    """The release then has the objects of a new installation with the same values, and no others."""
    helm(server, namespace, "install", str(chart), "--create-namespace", values=VALUES[values])
    helm(server, namespace, "upgrade", str(CHART), flag)

    expected = rendered(VALUES[values], namespace=namespace)
    objects = {(as_text(each["kind"]), as_text(dig(each, "metadata", "name"))) for each in expected}
    assert {each for each in objects if each[0] != "Pod"} == stored(server, namespace)
    assert [each for each in expected if each["kind"] != "Pod"] == documents(helm(server, namespace, "get manifest"))
    [config] = [each for each in expected if each["kind"] == "ConfigMap"]
    assert yaml.safe_load(as_text(as_object(config["data"])["assay.yaml"])) == configuration(server, namespace)


@pytest.mark.parametrize("place", ["kube-assay", "registry.example.com/assay/kube-assay"])
def test_the_notes_have_the_commands_that_build_and_push(server: ApiServer, namespace: str, place: str) -> None:
    """Only nodes that have the image can start one without a registry; with a registry, the notes have no warning."""
    values: JsonObject = {"image": {"repository": place}}
    notes = helm(server, namespace, "install", str(CHART), "--create-namespace", values=values).partition("NOTES:")[2]
    commands = [line.split()[:2] for line in notes.splitlines()]
    assert ("/" not in place, "/" not in place) == (
        "WARNING: the image kube-assay:" in notes,
        ["docker", "push"] in commands,
    )
    assert ["helm", "upgrade"] in commands


def test_a_packaged_chart_is_installed_by_the_documents_alone(
    server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """With the one value that the page names."""
    packed = against_a_server("package", str(CHART), "--destination", str(tmp_path))
    assert packed.returncode == 0, packed.stderr
    [chart] = tmp_path.glob("assay-*.tgz")
    page = (CHART.parents[1] / "docs" / "install.md").read_text()
    [line] = [line for line in page.splitlines() if line.startswith("$ helm install ")]
    place = line.partition("--set ")[2].replace("$IMAGE", "registry.example.com/assay/kube-assay")
    helm(server, namespace, "install", str(chart), "--create-namespace", "--set", place)
    assert {"CronJob", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim", "ClusterRole", "ClusterRoleBinding"} == {
        kind for kind, _ in stored(server, namespace)
    }
