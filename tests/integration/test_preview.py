"""`assay preview` on a real server with the real controllers: what it predicts of a change of rules is what happens after the change.

`make nightly` (LONG_JOBS) has more workloads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.integration.apiserver import ApiServer, running
from tests.integration.checked import WITHOUT
from tests.integration.controllers.controller_manager import OF_DEPLOYMENTS, running_controllers
from tests.integration.faults import wait_until
from tests.integration.made import ADMISSION
from tests.integration.manifests import apply, wait_until_enforced

WORKLOADS = 120 if os.environ.get("LONG_JOBS") else 40
SEED = 20261128
SECONDS = 180.0
KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "Job")
ENFORCE = "pod-security.kubernetes.io/enforce"
GROUPS = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of our own, with Pod Security and the controllers of pods."""
    folder = tmp_path_factory.mktemp("previewed")
    with (
        running(assets, folder, without_plugins=WITHOUT) as server,
        running_controllers(assets, server, [*OF_DEPLOYMENTS, "statefulset-controller"]),
    ):
        yield server


@dataclass(frozen=True, slots=True)
class Story:
    """A change of rules in a namespace of its own: the rules before, the flags of the preview, and the same change, applied."""

    namespace: str
    before: list[JsonObject]
    flags: tuple[str, ...]
    after: list[JsonObject]


def policy(name: str, namespace: str, expression: str, **spec: Json) -> JsonObject:
    """A policy about the pods of one namespace."""
    rule: JsonObject = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods"],
    }
    selector: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    constraints: JsonObject = {"resourceRules": [rule], "namespaceSelector": selector}
    checks: list[Json] = [{"expression": expression, "message": f"{name} denies it"}]
    body = {"matchConstraints": constraints, "validations": checks, **spec}
    return {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": body}


def binding(name: str, action: str, **spec: Json) -> JsonObject:
    """The binding of a policy."""
    body = {"policyName": name, "validationActions": [action], **spec}
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": body,
    }


def config_map(namespace: str, highest: str) -> JsonObject:
    """The param of a policy about sizes."""
    metadata = {"name": "sizes", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"max": highest}}


def namespace(name: str, **labels: str) -> JsonObject:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def list_stories(home: Path) -> list[Story]:
    """A flip from Audit to Deny, a level of Pod Security, a param tightened, and an expression that errs with Fail."""
    limits = policy("limits", "flip", "object.spec.containers.all(c, has(c.resources.limits))")
    kind: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    sizes = policy("sizes", "param", "int(object.metadata.labels.size) <= int(params.data.max)", paramKind=kind)
    ref: JsonObject = {"name": "sizes", "namespace": "param", "parameterNotFoundAction": "Deny"}
    erring = "object.spec.containers[0].resources.limits.cpu != '7'"
    ignored = policy("erring", "erring", erring, failurePolicy="Ignore")
    fail = policy("erring", "erring", erring, failurePolicy="Fail")
    (home / "param.json").write_text(json.dumps(config_map("param", "4")))
    (home / "fail.json").write_text(json.dumps(fail))
    return [
        Story("flip", [limits, binding("limits", "Audit")], ("--action", "limits=Deny"), [binding("limits", "Deny")]),
        Story(
            "level",
            [],
            ("--namespace-label", f"level={ENFORCE}=baseline"),
            [namespace("level", **{ENFORCE: "baseline"})],
        ),
        Story(
            "param",
            [config_map("param", "9"), sizes, binding("sizes", "Deny", paramRef=ref)],
            ("--param", "param.json"),
            [config_map("param", "4")],
        ),
        Story("erring", [ignored, binding("erring", "Deny")], ("-f", "fail.json"), [fail]),
    ]


def make_workload(chance: Random, namespace: str, number: int) -> JsonObject:
    """A workload of one pod, which some rules deny."""
    kind = KINDS[number % len(KINDS)]
    name = f"{kind.lower()}-{number}"
    container: dict[str, Json] = {"name": "c", "image": "example.com/web:1"}
    if chance.random() < 0.6:
        container["resources"] = {"limits": {"cpu": "1"}}
    labels: dict[str, Json] = {"app": name, "size": str(chance.randint(1, 9))}
    spec: dict[str, Json] = {"containers": [container], "hostNetwork": chance.random() < 0.3}
    template: JsonObject = {"metadata": {"labels": labels}, "spec": spec}
    body: dict[str, Json] = {"template": template}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        body["backoffLimit"] = 100
    else:
        body |= {"replicas": 1, "selector": {"matchLabels": {"app": name}}}
        body |= {"serviceName": name} if kind == "StatefulSet" else {}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": GROUPS[kind], "kind": kind, "metadata": metadata, "spec": body}


def list_pods(server: ApiServer, namespace: str) -> Sequence[Json]:
    """The pods of a namespace."""
    return as_list(dig(server.request("GET", f"/api/v1/namespaces/{namespace}/pods").body, "items"))


def have_pods(server: ApiServer, namespace: str) -> set[str]:
    """The workloads with a pod that is not being deleted."""
    return {
        as_text(dig(pod, "metadata", "labels", "app"))
        for pod in list_pods(server, namespace)
        if not dig(pod, "metadata", "deletionTimestamp")
    }


def are_stuck(server: ApiServer, namespace: str) -> set[str]:
    """The workloads with a pod that is being deleted, and still has its finalizer."""
    return {
        as_text(dig(pod, "metadata", "labels", "app"))
        for pod in list_pods(server, namespace)
        if dig(pod, "metadata", "deletionTimestamp") and dig(pod, "metadata", "finalizers")
    }


def fail_to_create(server: ApiServer, namespace: str) -> set[str]:
    """The workloads whose controller reports that it cannot create a pod; a ReplicaSet of a Deployment has a hash in its name."""
    events = as_list(dig(server.request("GET", f"/api/v1/namespaces/{namespace}/events").body, "items"))
    failed = (dig(each, "involvedObject", "name") for each in events if dig(each, "reason") == "FailedCreate")
    return {"-".join(as_text(name).split("-")[:2]) for name in failed}


def list_denied(assay: Assay, server: ApiServer) -> set[tuple[str, str]]:
    """The objects that admission would deny, with the policy, as a scan finds them."""
    report: Any = assay("scan", "-q", "--kubeconfig", server.kubeconfig, "-o", "json").report
    return {(each["policy"], each["object"]["uid"]) for each in report["findings"] if each["wouldDeny"]}


def test_what_is_predicted_of_a_change_happens(server: ApiServer, assay: Assay, home: Path) -> None:
    """Four changes with 40 workloads each: the pods of exactly the named workloads do not come back, and are stuck."""
    chance = Random(SEED)
    stories = list_stories(home)
    for story in stories:
        made = [make_workload(chance, story.namespace, number) for number in range(WORKLOADS)]
        apply(server, [namespace(story.namespace), *story.before, *made])
    wait_until_enforced(server)
    names = {story.namespace: {f"{KINDS[n % 4].lower()}-{n}" for n in range(WORKLOADS)} for story in stories}
    broken: dict[str, set[str]] = {}
    stuck: dict[str, set[str]] = {}
    for story in stories:
        wait_until(partial(_equal, names[story.namespace], have_pods, server, story.namespace), seconds=SECONDS)
    for story in stories:
        before = list_denied(assay, server)
        ran = assay("preview", "-q", "--kubeconfig", server.kubeconfig, "-o", "json", *story.flags)
        report: Any = ran.report
        assert 0 == ran.code, ran.stderr
        apply(server, story.after)
        wait_until_enforced(server)
        after = list_denied(assay, server)

        predicted = report["workloads"]
        for action, found in (("recreate", broken), ("finalize", stuck)):
            found[story.namespace] = {
                each["workload"]["name"]
                for each in predicted
                if any(risk["action"] == action and risk["refused"] for risk in each["risks"])
            }
        assert {story.namespace} == {each["workload"]["namespace"] for each in predicted}
        newly = {
            (policy["name"], each["name"])
            for each in report["objects"]
            for policy in each["policies"]
            if policy["difference"] == "newlyDenied"
        }
        assert len(after - before) == len(newly) > 0
        assert before <= after

    for story in stories:
        server.request("DELETE", f"/api/v1/namespaces/{story.namespace}/pods")
    for story in stories:
        survivors = names[story.namespace] - broken[story.namespace]
        assert 0 < len(survivors) < WORKLOADS
        wait_until(partial(_equal, broken[story.namespace], fail_to_create, server, story.namespace), seconds=SECONDS)
        wait_until(partial(_equal, survivors, have_pods, server, story.namespace), seconds=SECONDS)
        wait_until(partial(_equal, stuck[story.namespace], are_stuck, server, story.namespace), seconds=SECONDS)


def _equal(expected: set[str], read: Any, server: ApiServer, namespace: str) -> bool:
    return bool(expected == read(server, namespace))
