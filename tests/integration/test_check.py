"""`assay check --ask-server` on a real server: the API server decides the same about random manifests, and stores none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import yaml

from scanner.model.json import Json, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer, running
from tests.integration.checked import WITHOUT, compare, prepare
from tests.integration.faults import wait_until
from tests.integration.made import LABEL, binding, labelled, namespace, policy
from tests.integration.manifests import apply, wait_until_enforced

SEED = 20261128
NUMBER = 120
FIRST = "first"
TEXT = "type(object.status[k]) == string || type(object.status[k]) == int ? string(object.status[k]) : type(object.status[k]) == map ? object.status[k].map(q, q).sort().join('.') : 'other'"
PRINTED = f"object.map(k, k).sort().join(',') + ' status ' + object.status.map(k, k + '=' + ({TEXT})).sort().join(',')"
TEMPLATE: Json = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "a", "resources": {"limits": {"cpu": "1"}}}]},
}
SELECTED: dict[str, Json] = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
NEW: dict[tuple[str, str], Json] = {
    ("v1", "Pod"): dig(TEMPLATE, "spec"),
    ("v1", "PersistentVolumeClaim"): {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
    ("v1", "ReplicationController"): {"template": TEMPLATE, "selector": {"a": "b"}},
    ("v1", "ResourceQuota"): {},
    ("apps/v1", "Deployment"): SELECTED,
    ("apps/v1", "DaemonSet"): SELECTED,
    ("apps/v1", "StatefulSet"): {**SELECTED, "serviceName": "s"},
    ("policy/v1", "PodDisruptionBudget"): {"minAvailable": 1, "selector": {}},
    ("networking.k8s.io/v1", "Ingress"): {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    },
}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of our own, with Pod Security."""
    with running(assets, tmp_path_factory.mktemp("checked"), without_plugins=WITHOUT) as server:
        yield server


def test_the_api_server_decides_the_same(server: ApiServer) -> None:
    """Refused, admitted with warnings or admitted; `make nightly` compares 2,000 manifests."""
    chance = Random(SEED)
    prepare(server, chance)
    tally = compare(server, chance, NUMBER, batches=1)

    print(*tally.write(), sep="\n")  # noqa: T201 - what `pytest -s` is for
    assert [] == tally.differences
    assert tally.compared["agrees"] >= NUMBER * 0.6
    assert {"CREATE", "UPDATE"} <= tally.operations.keys()
    assert {"refused", "admittedWithWarnings", "admitted"} <= tally.verdicts.keys()


def test_the_generated_roles_are_enough(server: ApiServer, assay: Assay, home: Path) -> None:
    """A user with the roles of --for-check alone decides everything; without them, nothing is claimed."""
    rights = [policy("for-check", "secrets"), binding("for-check")]
    apply(server, [namespace("checked"), *rights])
    wait_until_enforced(server)
    (home / "app.json").write_text(json.dumps(labelled("Secret", "for-check", "s", namespace="checked")))
    flags = ("check", "-f", "app.json", "-o", "json", "--kubeconfig", server.kubeconfig_for("guest"))
    before = assay(*flags)
    roles = assay("rbac", "generate", "--for-check", "--for", "user:guest", "--kubeconfig", server.kubeconfig)
    apply(server, yaml.safe_load_all(roles.stdout))
    wait_until(lambda: assay(*flags).code != 3)
    after = assay(*flags)

    assert 3 == before.code
    assert {0, 1} & {after.code}, after.report
    assert True is after.report["complete"]


def test_a_new_object_has_the_status_that_the_server_gives_it(server: ApiServer, assay: Assay, home: Path) -> None:
    """The message that prints it is that of the API server; a status in the manifest changes nothing."""
    rule: Json = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    matched: Json = {"resourceRules": [rule], "objectSelector": {"matchLabels": {LABEL: FIRST}}}
    checks: Json = [{"expression": "false", "messageExpression": PRINTED}]
    rules = policy(FIRST, matchConstraints=matched, validations=checks)
    apply(server, [namespace("first"), rules, binding(FIRST, validationActions=["Deny"])])
    wait_until_enforced(server)
    documents = [
        {**labelled(kind, FIRST, "x", namespace="first", spec=spec), "apiVersion": version}
        for (version, kind), spec in NEW.items()
    ]
    documents.append(
        {
            **documents[0],
            "metadata": {**as_object(documents[0]["metadata"]), "name": "y"},
            "status": {"phase": "Running"},
        }
    )
    (home / "new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    ran = assay("check", "-f", "new.json", "-o", "json", "--ask-server", "--kubeconfig", server.kubeconfig)

    assert 1 == ran.code
    for each in as_list(ran.report["objects"]):
        messages = tuple(as_text(dig(decision, "message")) for decision in as_list(dig(each, "decisions")))
        assert "agrees" == dig(each, "server", "compared"), each
        assert as_text(dig(each, "server", "text")).endswith(messages), each
