"""Rights for workloads on a real API server: the generated roles have them, and the check names the missing ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from scanner.model.json import JsonObject, as_list, as_object, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer
from tests.integration.faults import wait_until
from tests.integration.made import binding, policy
from tests.integration.manifests import apply, delete

GUEST = "guest"
Run = Callable[..., Ran]


@pytest.fixture
def run(api_server: ApiServer, assay: Assay, home: Path) -> Run:
    """Run `assay rbac` as a user, for one policy on Pods."""
    path = home / "pods.yaml"
    path.write_text(yaml.safe_dump_all([policy("pods", "pods"), binding("pods")]))

    def ran(user: str, command: str, *flags: str) -> Ran:
        connection = ("--kubeconfig", str(api_server.kubeconfig_for(user)))
        return assay("rbac", command, "-f", str(path), "--no-cluster-policies", *flags, *connection)

    return ran


def allows(server: ApiServer, group: str, resource: str) -> bool:
    """Return whether the guest may list a resource."""
    spec: JsonObject = {"resourceAttributes": {"group": group, "resource": resource, "verb": "list"}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = server.request("POST", path, {"spec": spec}, token=server.tokens[GUEST])
    return dig(answer.body, "status", "allowed") is True


def test_workloads_need_rights_that_are_optional(api_server: ApiServer, run: Run) -> None:
    """With the role alone that the policy itself needs, the check passes with a note; with the generated role, without."""
    roles = [
        as_object(document)
        for document in yaml.safe_load_all(run("admin", "generate", "--for", f"user:{GUEST}").stdout)
    ]
    rules = {
        as_list(dig(rule, "apiGroups"))[0]: as_list(dig(rule, "resources"))
        for rule in as_list(roles[0]["rules"])
        if dig(rule, "apiGroups")
    }
    core: JsonObject = {"apiGroups": [""], "resources": ["namespaces", "pods"], "verbs": ["list"]}
    apply(api_server, [{**roles[0], "rules": [core]}, *roles[1:]])
    # Rules are read from a cache, which knows the roles of an earlier test for some time.
    wait_until(lambda: allows(api_server, "", "pods") and not allows(api_server, "batch", "jobs"))
    before = run(GUEST, "check")
    apply(api_server, roles)
    wait_until(partial(allows, api_server, "batch", "jobs"))
    after = run(GUEST, "check")
    for document in roles:
        delete(api_server, document)

    assert ["limitranges", "namespaces", "nodes", "pods", "replicationcontrollers", "resourcequotas"] == rules[""]
    assert ["daemonsets", "deployments", "replicasets", "statefulsets"] == rules["apps"]
    assert ["cronjobs", "jobs"] == rules["batch"]
    note = (
        "Note: without `list` on nodes, replicationcontrollers, daemonsets.apps, deployments.apps, replicasets.apps, "
        "statefulsets.apps, cronjobs.batch, jobs.batch, workloads are derived from names and owner references"
    )
    text = re.sub(r"\s+", " ", before.stdout.decode())
    assert (0, True, True) == (before.code, note in text, "All required permissions are granted" in text)
    assert (0, False) == (after.code, b"Note:" in after.stdout)
