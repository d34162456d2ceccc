"""`assay verify-parity` with mutating policies on a real server: what a dry-run update makes of each stored object.

More than fifty policies, each for the one object that bears its name; one object that two policies change together, and one
that two fight over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.integration import mutations
from tests.integration.apiserver import ApiServer, running
from tests.integration.fuzz.manifests import binding_named
from tests.integration.made import namespace
from tests.integration.manifests import apply
from tests.integration.parity import stored

HERE = "mutated"
SECONDS_TO_MUTATE = 45.0
ALONE = tuple(name for name in mutations.POLICIES if "-in-" not in name)
LABELS: Json = {"app": "x"}
CONTAINER: Json = {"name": "c", "image": "registry.example.com/c:1", "resources": {"limits": {"memory": "1Gi"}}}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
MADE: dict[str, JsonObject] = {
    "ConfigMap": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}},
    "Service": {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80, "name": "http"}]}},
    "Role": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    "Deployment": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": TEMPLATE},
    },
}
KINDS = {"configmaps": "ConfigMap", "services": "Service", "roles": "Role"}


def kind_of(name: str) -> str:
    """A kind that a policy matches."""
    resources = mutations.POLICIES[name].resources
    return next((KINDS[resource] for resource in resources if resource in KINDS), "Deployment")


def thing(name: str, kind: str) -> JsonObject:
    """The object of that name."""
    return {**MADE[kind], "metadata": {"name": name, "namespace": HERE, "labels": LABELS}}


def acting(name: str, on: str, mutation: Json = None) -> Iterator[JsonObject]:
    """A policy for the object that bears a name, and its binding."""
    made = mutations.policy_of(name if mutation is None else "label")
    condition: Json = {"name": "its-own", "expression": f'object.metadata.name == "{on}"'}
    changed = {} if mutation is None else {"mutations": [mutation]}
    yield {
        **made,
        "metadata": {"name": name},
        "spec": {**as_object(made["spec"]), "matchConditions": [condition], **changed},
    }
    yield {**binding_named("label"), "metadata": {"name": name}, "spec": {"policyName": name}}


def labels(text: str) -> Json:
    """A mutation of labels."""
    expression = f"Object{{metadata: Object.metadata{{labels: {text}}}}}"
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def documents() -> Iterator[JsonObject]:
    """All objects and all policies."""
    yield namespace(HERE)
    for name in ALONE:
        yield thing(name, kind_of(name))
        yield from acting(name, name)
    yield thing("shared", "ConfigMap")
    yield from acting("shared-one", "shared", labels("{'one': '1'}"))
    yield from acting("shared-two", "shared", labels("{'two': '2'}"))
    yield thing("fought-over", "ConfigMap")
    yield from acting("fight-one", "fought-over", labels("{'whose': 'one'}"))
    yield from acting("fight-two", "fought-over", labels("{'whose': 'two'}"))
    yield thing("left-alone", "ConfigMap")


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with all of them; objects come first, and are stored as they are made."""
    with running(assets, tmp_path_factory.mktemp("mutating")) as server:
        everything = [*documents()]
        policies = [document for document in everything if as_text(document["kind"]).startswith("Mutating")]
        apply(server, [document for document in everything if document not in policies])
        apply(server, policies)
        _wait_until_mutating(server)
        yield server


def _wait_until_mutating(server: ApiServer) -> None:
    """The plug-in reads policies and bindings from streams of their own: the first and the last must have come."""
    probes = {
        as_text(dig(document, "metadata", "name")): document
        for document in stored(server)
        if document["kind"] in ("ConfigMap", "Deployment")
    }
    deadline = time.monotonic() + SECONDS_TO_MUTATE
    for name in (ALONE[0], "fought-over"):
        while not as_object(dig(mutations.updated(server, probes[name], "admin").body, "metadata", "labels")).keys() - {
            "app"
        }:
            assert time.monotonic() < deadline, f"no policy acts on {name}"
            time.sleep(0.2)


def test_the_server_makes_of_every_object_what_was_predicted(server: ApiServer, assay: Assay) -> None:
    """The only object that cannot be compared is the one with which two policies conflict."""
    before = [document for document in stored(server) if document["kind"] != "Lease"]
    ran = assay("verify-parity", "--kubeconfig", server.kubeconfig, "-o", "json", "-n", HERE, "--sample", "500")

    print(ran.stdout.decode(), ran.stderr)  # noqa: T201 - what `pytest -s` is for
    assert (0, []) == (ran.code, ran.report["differences"])
    agreed = ran.report["agreed"]
    assert isinstance(agreed, int)
    assert len(ALONE) + 1 <= agreed
    assert ["the result depends on the order of mutating policies, which an API server does not define"] == [
        dig(item, "reason") for item in as_list(ran.report["notComparable"])
    ]
    assert before == [document for document in stored(server) if document["kind"] != "Lease"]
