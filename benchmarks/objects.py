"""Objects like those of a busy cluster, the same for the same seed: kinds, sizes and faults in fixed shares.

About one object in a hundred breaks any given rule of `benchmarks.policies`. Status is given as a controller would write
it; managed fields are the API server's own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from scanner.model.json import Json, JsonObject

Body = dict[str, Json]

NAMESPACES: Final = 60
FAULT: Final = 0.01
WORDS: Final = (
    "checkout", "cart", "search", "billing", "ledger", "gateway", "notifier", "catalog", "inventory", "identity",
    "session", "reports", "exporter", "ingest", "worker", "scheduler", "proxy", "cache", "queue", "frontend",
)  # fmt: skip
REGISTRY: Final = "registry.example.com/shop"
SHARES: Final = {
    "Pod": 38,
    "ReplicaSet": 14,
    "ConfigMap": 14,
    "Secret": 6,
    "Service": 6,
    "EndpointSlice": 5,
    "Deployment": 5,
    "ServiceAccount": 4,
    "Job": 3,
    "RoleBinding": 2,
    "Ingress": 2,
    "PersistentVolumeClaim": 1,
}


@dataclass(frozen=True, slots=True)
class Made:
    """An object as it is created, and its status, if a controller would write one."""

    path: str
    body: Body
    status: Body = field(default_factory=dict)


def namespaces() -> Iterator[Made]:
    """Yield the namespaces of all objects."""
    for number in range(NAMESPACES):
        labels: Body = {"team": WORDS[number % len(WORDS)], "env": "prod" if number % 3 else "test"}
        metadata: Body = {"name": f"team-{number:02}", "labels": labels}
        yield Made("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


class FaultyDice(random.Random):
    """Random numbers with another share of objects that break a rule."""

    fault: float


def objects(count: int, seed: int = 1, fault: float = FAULT) -> Iterator[Made]:
    """Yield so many objects, in an order that mixes the kinds; a share of them, `fault`, breaks any given rule."""
    dice = FaultyDice(seed)
    dice.fault = fault
    kinds = dice.choices(list(SHARES), weights=list(SHARES.values()), k=count)
    for number, kind in enumerate(kinds):
        namespace = f"team-{dice.randrange(NAMESPACES):02}"
        yield MAKERS[kind](dice, f"{dice.choice(WORDS)}-{number:06x}", namespace)


def _metadata(dice: random.Random, name: str, namespace: str) -> Body:
    app = name.rsplit("-", 1)[0]
    labels: Body = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/version": f"1.{dice.randrange(40)}.{dice.randrange(9)}",
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": f"{dice.getrandbits(36):09x}",
    }
    if not _is_faulty(dice):
        labels["owner"] = f"team-{app}"
    annotations: Body = {
        "meta.helm.sh/release-name": app,
        "meta.helm.sh/release-namespace": namespace,
        "checksum/config": f"{dice.getrandbits(256):064x}",
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9090",
    }
    return {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}


def _unless(dice: random.Random, good: Json, bad: Json) -> Json:
    return bad if _is_faulty(dice) else good


def _is_faulty(dice: random.Random) -> bool:
    return dice.random() < (dice.fault if isinstance(dice, FaultyDice) else FAULT)


def _container(dice: random.Random, name: str) -> Body:
    environment: list[Json] = [{"name": f"{word.upper()}_URL", "value": f"http://{word}:8080/v1"} for word in WORDS[:6]]
    reference: Body = {"secretKeyRef": {"name": f"{name}-db", "key": "password"}}
    field_reference: Body = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    return {
        "name": name,
        "image": _unless(dice, f"{REGISTRY}/{name}:1.{dice.randrange(40)}.0", f"docker.io/{name}:latest"),
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen=:8080", "--log-format=json", f"--shards={dice.randrange(1, 9)}"],
        "env": [
            *environment,
            {"name": "DB_PASSWORD", "valueFrom": reference},
            {"name": "NAMESPACE", "valueFrom": field_reference},
        ],
        "ports": [{"name": "http", "containerPort": 9090 if name == "metrics" else 8080, "protocol": "TCP"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "timeoutSeconds": 2},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5, "timeoutSeconds": 2},
        "resources": {
            "limits": {"cpu": "1", "memory": _unless(dice, "512Mi", "64Gi")},
            "requests": {"cpu": _unless(dice, "100m", "1"), "memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": _unless(dice, good=False, bad=True),
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": _unless(dice, good=True, bad=False),
            "runAsNonRoot": _unless(dice, good=True, bad=False),
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}, {"name": "tmp", "mountPath": "/tmp"}],
    }


def _pod_spec(dice: random.Random, name: str) -> Body:
    app = name.rsplit("-", 1)[0]
    sidecar = [_container(dice, "metrics")] if dice.random() < 0.3 else []
    return {
        "containers": [_container(dice, app), *sidecar],
        "serviceAccountName": app,
        "automountServiceAccountToken": _unless(dice, good=False, bad=True),
        "hostNetwork": _unless(dice, good=False, bad=True),
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"fsGroup": 2000, "seccompProfile": {"type": _unless(dice, "RuntimeDefault", "Unconfined")}},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"}],
        "volumes": [
            {"name": "config", "configMap": {"name": f"{app}-config"}},
            _unless(dice, {"name": "tmp", "emptyDir": {}}, {"name": "tmp", "hostPath": {"path": "/tmp"}}),
        ],
    }


def _pod(dice: random.Random, name: str, namespace: str) -> Made:
    spec = {**_pod_spec(dice, name), "nodeName": f"node-{dice.randrange(200):03}"}
    containers = spec["containers"]
    assert isinstance(containers, list)
    moment = f"2026-0{dice.randrange(1, 9)}-1{dice.randrange(9)}T0{dice.randrange(9)}:00:00Z"
    conditions: list[Json] = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": moment}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    statuses: list[Json] = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": f"{container['image']}@sha256:{dice.getrandbits(256):064x}",
            "containerID": f"containerd://{dice.getrandbits(256):064x}",
            "ready": True,
            "started": True,
            "restartCount": dice.randrange(4),
            "state": {"running": {"startedAt": moment}},
            "lastState": {},
        }
        for container in containers
        if isinstance(container, dict)
    ]
    address = f"10.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(256)}"
    status: Body = {
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": statuses,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": f"192.168.0.{dice.randrange(256)}",
        "qosClass": "Burstable",
        "startTime": moment,
    }
    return _made("v1", "Pod", "pods", _metadata(dice, name, namespace), {"spec": spec}, status)


def _workload(kind: str, plural: str) -> Callable[[random.Random, str, str], Made]:
    def make(dice: random.Random, name: str, namespace: str) -> Made:
        metadata = _metadata(dice, name, namespace)
        replicas = _unless(dice, dice.randrange(1, 6), 60)
        labels: Body = {"app.kubernetes.io/instance": name}
        owner = {"owner": f"team-{name.rsplit('-', 1)[0]}"} if dice.random() >= FAULT else {}
        template: Body = {"metadata": {"labels": {**labels, **owner}}, "spec": _pod_spec(dice, name)}
        spec: Body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        status: Body = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}
        return _made("apps/v1", kind, plural, metadata, {"spec": spec}, {**status, "observedGeneration": 1})

    return make


def _config_map(dice: random.Random, name: str, namespace: str) -> Made:
    lines = [f"{dice.choice(WORDS)}.{number}={dice.getrandbits(64):x}" for number in range(dice.choice((4, 20, 60)))]
    data: Body = {"application.properties": "\n".join(lines), "log.level": "info"}
    if dice.random() < FAULT:
        data |= {"password": "in-the-wrong-place"}
    return _made("v1", "ConfigMap", "configmaps", _metadata(dice, name, namespace), {"data": data})


def _secret(dice: random.Random, name: str, namespace: str) -> Made:
    rest: Body = {
        "type": _unless(dice, "Opaque", "example.com/odd"),
        "stringData": {"password": f"{dice.getrandbits(128):x}"},
    }
    return _made("v1", "Secret", "secrets", _metadata(dice, name, namespace), rest)


def _service(dice: random.Random, name: str, namespace: str) -> Made:
    spec: Body = {
        "type": _unless(dice, "ClusterIP", "ExternalName"),
        "clusterIP": "None",
        "selector": {"app.kubernetes.io/instance": name},
        "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
    }
    if spec["type"] == "ExternalName":
        spec = {"type": "ExternalName", "externalName": "elsewhere.example.com"}
    return _made("v1", "Service", "services", _metadata(dice, name, namespace), {"spec": spec})


def _endpoints(dice: random.Random, name: str, namespace: str) -> Made:
    endpoints: list[Json] = [
        {
            "addresses": [f"10.0.{dice.randrange(256)}.{dice.randrange(1, 255)}"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": f"node-{dice.randrange(200):03}",
            "targetRef": {"kind": "Pod", "name": f"{name}-{number}", "namespace": namespace},
        }
        for number in range(dice.randrange(1, 6))
    ]
    ports: list[Json] = [{"name": "http", "port": int(str(_unless(dice, 8080, 22))), "protocol": "TCP"}]
    rest: Body = {"addressType": "IPv4", "endpoints": endpoints, "ports": ports}
    return _made("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", _metadata(dice, name, namespace), rest)


def _account(dice: random.Random, name: str, namespace: str) -> Made:
    rest: Body = {"automountServiceAccountToken": _unless(dice, good=False, bad=True)}
    return _made("v1", "ServiceAccount", "serviceaccounts", _metadata(dice, name, namespace), rest)


def _job(dice: random.Random, name: str, namespace: str) -> Made:
    template: Body = {
        "metadata": {"labels": {"job": name}},
        "spec": {**_pod_spec(dice, name), "restartPolicy": "Never"},
    }
    spec: Body = {
        "backoffLimit": _unless(dice, 2, 100),
        "ttlSecondsAfterFinished": _unless(dice, 3600, 999999),
        "activeDeadlineSeconds": 7200,
        "template": template,
    }
    return _made("batch/v1", "Job", "jobs", _metadata(dice, name, namespace), {"spec": spec})


def _role_binding(dice: random.Random, name: str, namespace: str) -> Made:
    group = _unless(dice, f"team-{name}", "system:authenticated")
    subjects: list[Json] = [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group}]
    reference: Body = {"kind": "Role", "apiGroup": "rbac.authorization.k8s.io", "name": "developer"}
    rest: Body = {"subjects": subjects, "roleRef": reference}
    metadata = _metadata(dice, name, namespace)
    return _made("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", metadata, rest)


def _ingress(dice: random.Random, name: str, namespace: str) -> Made:
    host = f"{name}.{_unless(dice, 'shop.example.com', 'evil.example.org')}"
    backend: Body = {"service": {"name": name, "port": {"name": "http"}}}
    paths: list[Json] = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec: Body = {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": paths}}]}
    if dice.random() >= FAULT:
        spec["tls"] = [{"hosts": [host], "secretName": f"{name}-tls"}]
    return _made("networking.k8s.io/v1", "Ingress", "ingresses", _metadata(dice, name, namespace), {"spec": spec})


def _claim(dice: random.Random, name: str, namespace: str) -> Made:
    spec: Body = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": _unless(dice, "20Gi", "900Gi")}},
    }
    metadata = _metadata(dice, name, namespace)
    return _made("v1", "PersistentVolumeClaim", "persistentvolumeclaims", metadata, {"spec": spec})


def _made(version: str, kind: str, plural: str, metadata: Body, rest: JsonObject, status: Body | None = None) -> Made:
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    path = f"{root}/namespaces/{metadata['namespace']}/{plural}"
    return Made(path, {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}, status or {})


MAKERS: Final[dict[str, Callable[[random.Random, str, str], Made]]] = {
    "Pod": _pod,
    "ReplicaSet": _workload("ReplicaSet", "replicasets"),
    "ConfigMap": _config_map,
    "Secret": _secret,
    "Service": _service,
    "EndpointSlice": _endpoints,
    "Deployment": _workload("Deployment", "deployments"),
    "ServiceAccount": _account,
    "Job": _job,
    "RoleBinding": _role_binding,
    "Ingress": _ingress,
    "PersistentVolumeClaim": _claim,
}
