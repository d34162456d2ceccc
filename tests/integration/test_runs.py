"""The completeness sheet of a run agrees with the counts in the metrics of a real API server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scanner.model.json import JsonObject
from tests.cli.conftest import Assay
from tests.integration import examples
from tests.integration.apiserver import ApiServer, running
from tests.integration.faults import wait_until
from tests.integration.manifests import apply, delete

OFTEN = "--etcd-count-metric-poll-period=1s"
TO_COUNT = 3.0
"""Seconds after which every count is renewed: the server adds up to a half of its period."""
GUEST = "guest"


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with the example cluster and its policies, which counts its objects every second."""
    with running(assets, tmp_path_factory.mktemp("counted"), flags=[OFTEN]) as server:
        apply(server, [*examples.objects("after"), *examples.policies()])
        time.sleep(TO_COUNT)
        yield server


def sheet(server: ApiServer, assay: Assay, *flags: str, user: str = "admin") -> dict[str, Any]:
    """The completeness sheet of a scan as a user."""
    assay("scan", "--kubeconfig", server.kubeconfig_for(user), "--db", "assay.db", "-q", *flags)
    newest = json.loads(assay("runs", "--db", "assay.db", "-o", "json").stdout)["runs"][0]["run"]["number"]
    document: dict[str, Any] = json.loads(assay("runs", str(newest), "--db", "assay.db", "-o", "json").stdout)
    return document


def counted(server: ApiServer, resource: str) -> int:
    """The server's count of a resource, from the metric that older releases have too."""
    headers = {"Authorization": f"Bearer {server.token}"}
    text = server.client.pool.request("GET", f"{server.url}/metrics", headers=headers).data.decode()
    found = re.search(rf'^apiserver_storage_objects{{resource="{re.escape(resource)}"}} (\d+)$', text, re.MULTILINE)
    return int(found[1]) if found else -1


def config_map(name: str) -> JsonObject:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_every_kind_agrees_with_the_server(server: ApiServer, assay: Assay) -> None:
    """Custom resources too, and with namespaces that the user excludes."""
    document = sheet(server, assay, "--exclude-namespace", "kube-*")
    listed = {kind["kind"]: (kind["listed"], kind["server"]["atEnd"]) for kind in document["kinds"]}

    assert {"equal"} == {kind["agreement"] for kind in document["kinds"]}
    assert len(document["kinds"]) == document["comparison"]["kinds"]["equal"]
    assert (4, 4) == listed["Backup"]
    assert sum(kind["excluded"] for kind in document["kinds"]) > 0


def test_new_objects_are_counted(server: ApiServer, assay: Assay) -> None:
    """Both numbers grow alike."""
    before = counted(server, "configmaps")
    made = [config_map(f"made-{number}") for number in range(40)]
    apply(server, made)
    wait_until(lambda: counted(server, "configmaps") == before + len(made))
    [kind] = [kind for kind in sheet(server, assay)["kinds"] if kind["kind"] == "ConfigMap"]
    for document in made:
        delete(server, document)
    wait_until(lambda: counted(server, "configmaps") == before)

    assert ("equal", before + len(made), 0) == (kind["agreement"], kind["listed"], kind["difference"])


def test_the_right_is_optional(server: ApiServer, assay: Assay) -> None:
    """Without it the scan has no other gap, and the sheet names the right; `rbac generate` grants it."""
    generated = assay("rbac", "generate", "--for", f"user:{GUEST}", "--kubeconfig", server.kubeconfig)
    roles = list(yaml.safe_load_all(generated.stdout))
    url = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    without = [{**roles[0], "rules": [rule for rule in roles[0]["rules"] if rule != url]}, *roles[1:]]
    apply(server, without)
    wait_until(lambda: allowed(server, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"))
    denied = sheet(server, assay, user=GUEST)
    apply(server, roles)
    wait_until(lambda: allowed(server, "/metrics"))
    granted = sheet(server, assay, user=GUEST)
    for document in roles:
        delete(server, document)

    assert url in roles[0]["rules"]
    assert ("complete", []) == (denied["state"], denied["gaps"])
    assert (
        "cannot read /metrics: forbidden for guest. Grant `get` on the non-resource URL /metrics"
        == (denied["comparison"]["whyNot"])
    )
    assert {"notCompared"} == {kind["agreement"] for kind in denied["kinds"]}
    # The roles of this test are younger than the last count of roles may be.
    older = [kind for kind in granted["kinds"] if "rbac" not in kind["apiVersion"]]
    assert {"equal"} == {kind["agreement"] for kind in older}


def allowed(server: ApiServer, path: str) -> bool:
    """Return whether the guest may read a path."""
    return server.client.request("GET", path, token=server.tokens[GUEST]).status == 200
