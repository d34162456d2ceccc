"""Workloads of a changing cluster: Deployments, their ReplicaSets and Pods, and the operators above them."""

from __future__ import annotations

from scanner.model.resource import Kind
from tests.documents import DEPLOYMENTS, Document, binding, namespace, pod, policy, rule, thing

SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
JOBS = Kind("batch", "v1", "Job", "jobs", namespaced=True)
CRON_JOBS = Kind("batch", "v1", "CronJob", "cronjobs", namespaced=True)
OPERATORS = Kind("example.com", "v1", "Database", "databases", namespaced=True)
RULES = (
    namespace("shop"),
    policy("p", "!has(object.spec.hostNetwork)", matchConstraints={"resourceRules": [rule("pods")]}),
    binding("b", "p", "Deny"),
)


def owned(document: Document, uid: str, version: int = 1, owner: Document | None = None) -> Document:
    """An object with a UID and a resource version, and with the reference to its controller."""
    metadata = {**document["metadata"], "uid": uid, "resourceVersion": str(version)}
    if owner is not None:
        top = owner["metadata"]
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": top["name"], "uid": top["uid"]}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    return {**document, "metadata": metadata}


def deployment(name: str = "web", owner: Document | None = None) -> Document:
    """A Deployment."""
    return owned(thing(DEPLOYMENTS, name, "shop"), f"uid-of-{name}", owner=owner)


def replica_set(owner: Document | None, name: str = "web-1a") -> Document:
    """A ReplicaSet of a Deployment."""
    return owned(thing(SETS, name, "shop"), f"uid-of-{name}", owner=owner)


def running(name: str, owner: Document | None, *, broken: bool = True, version: int = 1) -> Document:
    """A Pod, which breaks the rule or not."""
    spec = {"hostNetwork": True} if broken else {}
    document = pod(name, "shop")
    labels = {"pod-template-hash": owner["metadata"]["name"].rpartition("-")[2]} if owner else {}
    document = {**document, "spec": spec, "metadata": {**document["metadata"], "labels": labels}}
    return owned(document, f"uid-of-{name}", version, owner)
