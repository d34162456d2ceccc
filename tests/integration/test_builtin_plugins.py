"""Built-in plug-ins on a real server: a dry run returns the pod that `assay check` expects, or refuses it with the same message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.overlay import AppliedManifests, ClusterAfter
from scanner.model.json import JsonObject
from scanner.model.resource import Resource, resource_of
from scanner.model.scans.scan import Scope
from scanner.preview.pods import PODS
from scanner.preview.requested import make_request
from scanner.preview.rules import Rules, gather_rules
from scanner.preview.verdict import Decision, Effect
from scanner.scan.options import Options
from tests.integration.apiserver import ApiServer, running
from tests.integration.manifests import apply, dry_run

Document = dict[str, Any]
SPACES: Final = ("plain", "ranged", "sums", "ratio", "minimum", "claims")
SET_BY_SERVER: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def limit_range(namespace: str, **limit: Any) -> Document:
    """A LimitRange of one limit, of containers unless it names another type."""
    spec = {"limits": [{"type": "Container", **limit}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "own", "namespace": namespace}, "spec": spec}


def account(name: str, namespace: str = "plain", **fields: Any) -> Document:
    """A ServiceAccount."""
    metadata = {"name": name, "namespace": namespace, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, **fields}


def priority_class(name: str, value: int, **fields: Any) -> Document:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def runtime_class(name: str, **fields: Any) -> Document:
    """A RuntimeClass."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "runc",
        **fields,
    }


STORED: Final[list[Document]] = [
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in SPACES),
    *(account("default", name) for name in SPACES),
    account("puller", imagePullSecrets=[{"name": "registry"}], automountServiceAccountToken=False),
    account(
        "limited",
        secrets=[{"name": "own"}],
        imagePullSecrets=[{"name": "registry"}],
        metadata={"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
    ),
    limit_range("ranged", default={"cpu": "500m", "memory": "256Mi"}, defaultRequest={"cpu": "0.1"}, max={"cpu": "2"}),
    limit_range("sums", type="Pod", max={"memory": "1Gi"}),
    limit_range("ratio", maxLimitRequestRatio={"cpu": "2"}),
    limit_range("minimum", min={"cpu": "100m"}),
    limit_range("claims", type="PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "5Gi"}),
    priority_class("high", 1000),
    priority_class("never", 7, preemptionPolicy="Never"),
    priority_class("usual", 5, globalDefault=True),
    runtime_class(
        "heavy",
        overhead={"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        scheduling={
            "nodeSelector": {"sandbox": "yes"},
            "tolerations": [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}],
        },
    ),
    runtime_class("light"),
]


def container(name: str = "web", **fields: Any) -> Document:
    """A container."""
    return {"name": name, "image": "web:1", **fields}


def sized(name: str = "web", **amounts: Mapping[str, str]) -> Document:
    """A container with requests and limits."""
    return container(name, resources=amounts)


def pod(namespace: str = "plain", **spec: Any) -> Document:
    """A pod, of one container unless the spec has others."""
    metadata = {"name": "p", "namespace": namespace, **spec.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container()], **spec}}


MOUNTED: Final = [{"name": "own", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
TOLERATED: Final = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
REFERENCE: Final = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}
CASES: Final[dict[str, Document]] = {
    "nothing of its own": pod(),
    "an init container and a sidecar": pod(
        initContainers=[container("init"), container("side", restartPolicy="Always")]
    ),
    "a mount at the path of the token": pod(
        containers=[container(volumeMounts=MOUNTED)], volumes=[{"name": "own", "emptyDir": {}}]
    ),
    "a mount in one of two containers": pod(
        containers=[container(volumeMounts=MOUNTED), container("b")], volumes=[{"name": "own", "emptyDir": {}}]
    ),
    "a volume with the token": pod(volumes=[{"name": "kube-api-access-1", "emptyDir": {}}]),
    "no token by the pod": pod(automountServiceAccountToken=False),
    "no token by the account": pod(serviceAccountName="puller"),
    "the token although the account has none": pod(serviceAccountName="puller", automountServiceAccountToken=True),
    "the older name of the account": pod(serviceAccount="puller"),
    "pull secrets of its own": pod(serviceAccountName="puller", imagePullSecrets=[{"name": "mine"}]),
    "an unknown account": pod(serviceAccountName="nobody"),
    "a volume of another secret": pod(
        serviceAccountName="limited", volumes=[{"name": "s", "secret": {"secretName": "other"}}]
    ),
    "a volume of the account's secret": pod(
        serviceAccountName="limited", volumes=[{"name": "s", "secret": {"secretName": "own"}}]
    ),
    "a variable of another secret": pod(serviceAccountName="limited", containers=[container(env=[REFERENCE])]),
    "variables of another secret, in an init container": pod(
        serviceAccountName="limited",
        initContainers=[container("init", envFrom=[{"secretRef": {"name": "other"}}])],
    ),
    "another pull secret": pod(serviceAccountName="limited", imagePullSecrets=[{"name": "mine"}]),
    "a priority class": pod(priorityClassName="high"),
    "a class that does not preempt": pod(priorityClassName="never"),
    "a class of the system": pod(priorityClassName="system-node-critical"),
    "an unknown class": pod(priorityClassName="nothing"),
    "the priority of its class": pod(priorityClassName="high", priority=1000),
    "another priority": pod(priorityClassName="high", priority=3),
    "another preemption": pod(priorityClassName="never", preemptionPolicy="PreemptLowerPriority"),
    "one toleration": pod(tolerations=[TOLERATED]),
    "a toleration of everything": pod(tolerations=[{"operator": "Exists"}]),
    "a toleration of another effect": pod(tolerations=[{**TOLERATED, "effect": "NoSchedule"}]),
    "a runtime class": pod(runtimeClassName="light"),
    "a runtime class with overhead": pod(runtimeClassName="heavy"),
    "the overhead of the class": pod(runtimeClassName="heavy", overhead={"cpu": "0.25", "memory": "120Mi"}),
    "another overhead": pod(runtimeClassName="heavy", overhead={"cpu": "1"}),
    "an overhead without a class": pod(overhead={"cpu": "1"}),
    "a toleration that the class includes": pod(
        runtimeClassName="heavy",
        nodeSelector={"zone": "a"},
        tolerations=[{"key": "sandbox", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
    ),
    "another node": pod(runtimeClassName="heavy", nodeSelector={"sandbox": "no"}),
    "an unknown runtime class": pod(runtimeClassName="nothing"),
    "defaults of a range": pod("ranged"),
    "defaults for all containers": pod(
        "ranged", containers=[container(), sized("b", limits={"cpu": "1"})], initContainers=[container("init")]
    ),
    "requests of its own": pod("ranged", containers=[sized(requests={"cpu": "300m", "memory": "100Mi"})]),
    "an annotation of its own": pod("ranged", metadata={"annotations": {"a": "b"}}),
    "more than the range": pod("ranged", containers=[sized(limits={"cpu": "3"})]),
    "a sum within the range": pod("sums", containers=[sized(limits={"memory": "600Mi"}), sized("b", limits={"memory": "400Mi"})]),
    "a sum beyond the range": pod("sums", containers=[sized(limits={"memory": "600Mi"}), sized("b", limits={"memory": "600Mi"})]),
    "an init container beyond the range": pod(
        "sums",
        containers=[sized(limits={"memory": "600Mi"})],
        initContainers=[sized("init", limits={"memory": "2Gi"})],
    ),
    "limits of the pod": pod("sums", resources={"limits": {"memory": "512Mi"}}),
    "no limit for the sum": pod("sums"),
    "a ratio within": pod("ratio", containers=[sized(requests={"cpu": "250m"}, limits={"cpu": "0.5"})]),
    "a ratio beyond": pod("ratio", containers=[sized(requests={"cpu": "200m"}, limits={"cpu": "0.5"})]),
    "no request for the ratio": pod("ratio"),
    "less than the range": pod("minimum", containers=[sized(requests={"cpu": "50m"})]),
}  # fmt: skip


def of_class(api_version: str, kind: str, name: str, **fields: Any) -> Document:
    """A StorageClass or an IngressClass that is the default one."""
    annotations = {f"{kind.lower()}.kubernetes.io/is-default-class": "true"}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "annotations": annotations}, **fields}


def claim(**spec: Any) -> Document:
    """A claim."""
    metadata = {"name": "p", "namespace": "plain", **spec.pop("metadata", {})}
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**size, **spec}}


def ingress(**spec: Any) -> Document:
    """An Ingress."""
    metadata = {"name": "p", "namespace": "plain", **spec.pop("metadata", {})}
    backend = {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": {**backend, **spec},
    }


CLASSES: Final = [
    *(of_class("storage.k8s.io/v1", "StorageClass", name, provisioner="a") for name in ("slow", "fast")),
    *(of_class("networking.k8s.io/v1", "IngressClass", name, spec={"controller": "a.b/c"}) for name in ("b", "a")),
]
OTHERS: Final[dict[str, Document]] = {
    "a claim without a class": claim(),
    "a claim with a class": claim(storageClassName="own", metadata={"finalizers": ["a.b/c"]}),
    "a claim of a static volume": claim(storageClassName=""),
    "a claim with the older annotation": claim(
        metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "a"}}
    ),
    "an Ingress without a class": ingress(),
    "an Ingress with a class": ingress(ingressClassName="own"),
    "an Ingress with the older annotation": ingress(metadata={"annotations": {"kubernetes.io/ingress.class": "a"}}),
    "a volume": {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "p"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}},
    },
    "attributes of volumes": {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttributesClass",
        "metadata": {"name": "p"},
        "driverName": "a.b",
        "parameters": {"a": "b"},
    },
}


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server with all of its default plug-ins for pods, and the objects that they read."""
    folder = tmp_path_factory.mktemp("plugins")
    with running(assets, folder, without_plugins=("TaintNodesByCondition",)) as server:
        apply(server, [*STORED, *CLASSES])
        yield server


@pytest.fixture(scope="module")
def rules(server: ApiServer) -> Rules:
    """The rules for pods in every namespace of the cases."""
    live = LiveCluster(kubeconfig=str(server.kubeconfig))
    options = Options(Scope(namespaces=("plain",)))
    after = ClusterAfter(live, AppliedManifests((), options.languages, "plain"))
    after.identity()
    return gather_rules(after, after.discover(), options, {space: [PODS] for space in SPACES}, datetime.now(UTC))


def expected(rules: Rules, resource: Resource) -> tuple[Any, list[Decision]]:
    """The object that policies read, and what plug-ins decide."""
    requested = make_request(resource, None, rules.schemas.schema(resource.kind))
    decisions: list[Decision] = []
    changed = rules.plugins.change(requested.resource, decisions, created=True)
    if changed is None:
        return None, decisions
    admitted = requested.after_mutation(changed.body)
    rules.plugins.validate(admitted, decisions, created=True)
    return admitted.body, decisions


def without_server_fields(body: Any) -> Any:
    """The object without what a server sets in a new one, its status included; the name of the volume of the token is random."""
    metadata = {name: value for name, value in body["metadata"].items() if name not in SET_BY_SERVER}
    rest = {name: value for name, value in body.items() if name != "status"}
    text = json.dumps({**rest, "metadata": metadata})
    return json.loads(re.sub(r"kube-api-access-[a-z0-9]{5}", "kube-api-access-xxxxx", text))


@pytest.mark.parametrize("name", CASES)
def test_a_server_makes_the_same_pod(server: ApiServer, rules: Rules, name: str) -> None:
    """The whole object is equal; a refusal has the message of the server."""
    answer = dry_run(server, CASES[name])
    body, decisions = expected(rules, resource_of(PODS, CASES[name]))

    if answer.status == 201:
        assert [] == decisions
        assert without_server_fields(answer.body) == without_server_fields(body)
    else:
        forbidden: JsonObject = answer.body  # type: ignore[assignment]
        text = str(forbidden["message"]).removeprefix('pods "p" is forbidden: ')
        assert [(Effect.REFUSES, text)] == [(each.effect, each.message) for each in decisions]


@pytest.mark.parametrize("name", OTHERS)
def test_a_server_gives_the_same_defaults(server: ApiServer, rules: Rules, name: str) -> None:
    """The default classes, the first name of those that are equally new, and finalizers."""
    document = OTHERS[name]
    after = LiveCluster(kubeconfig=str(server.kubeconfig))
    after.identity()
    named = (document["apiVersion"], document["kind"])
    kind = next(each for each in after.discover().kinds if (each.api_version, each.kind) == named)
    answer = dry_run(server, document)
    body, decisions = expected(rules, resource_of(kind, document))

    assert (201, []) == (answer.status, decisions)
    assert without_server_fields(answer.body) == without_server_fields(body)
