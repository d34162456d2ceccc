"""The object that a controller would make between a workload and its pods: the next Job of a CronJob, the next ReplicaSet of a Deployment.

Source of truth: `getJobFromTemplate2` of the CronJob controller, and `getNewReplicaSet`, `SetNewReplicaSetAnnotations` and `NewRSNewReplicas`
of the Deployment controller of kube-controller-manager 1.36. What only the controllers know, such as hashes and times, is made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.resource import Kind, Resource, UserInfo, build_user_info, resource_of

JOBS: Final = Kind("batch", "v1", "Job", "jobs", namespaced=True)
REPLICA_SETS: Final = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
MADE_FOR: Final = {("batch", "cronjobs"): JOBS, ("apps", "deployments"): REPLICA_SETS}
"""The kinds of these objects, by group and plural of the workload."""
MAKERS: Final = {
    JOBS: build_user_info("system:serviceaccount:kube-system:cronjob-controller"),
    REPLICA_SETS: build_user_info("system:serviceaccount:kube-system:deployment-controller"),
}
"""The users that create them."""
_HASH: Final = "xxxxxxxxxx"
_MOST_DIGITS: Final = 18
"""Those of a number of 64 bits."""
_MINUTES: Final = "29000000"
_SCHEDULED: Final = "2025-02-20T21:20:00Z"
_OF_DEPLOYMENT: Final = "deployment.kubernetes.io/"
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        *(f"{_OF_DEPLOYMENT}{name}" for name in ("revision", "revision-history", "desired-replicas", "max-replicas")),
    }
)
"""The annotations of a Deployment that its ReplicaSets do not have (`annotationsToSkip`)."""


@dataclass(frozen=True, slots=True)
class MadeObject:
    """An object of a workload, and the user that would create it."""

    resource: Resource
    user: UserInfo


def make_between(workload: Resource) -> MadeObject | None:
    """The next object between a workload and its pods; None for a kind whose controller creates the pods itself."""
    kind = MADE_FOR.get((workload.kind.group, workload.kind.plural))
    if kind is None:
        return None
    make = _make_job if kind is JOBS else _make_replica_set
    owner: dict[str, Json] = {
        "apiVersion": workload.kind.api_version,
        "kind": workload.kind.kind,
        "name": workload.name,
        "uid": workload.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata, spec = make(workload)
    body: JsonObject = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {**metadata, "namespace": workload.namespace, "ownerReferences": [owner]},
        "spec": spec,
    }
    return MadeObject(resource_of(kind, body), MAKERS[kind])


def _make_job(workload: Resource) -> tuple[JsonObject, JsonObject]:
    template = as_object(dig(workload.body, "spec", "jobTemplate"))
    metadata = as_object(template.get("metadata"))
    annotations = {
        **as_object(metadata.get("annotations")),
        "batch.kubernetes.io/cronjob-scheduled-timestamp": _SCHEDULED,
    }
    named: JsonObject = {
        "name": f"{workload.name}-{_MINUTES}",
        "labels": as_object(metadata.get("labels")),
        "annotations": annotations,
    }
    return named, as_object(template.get("spec"))


def _make_replica_set(workload: Resource) -> tuple[JsonObject, JsonObject]:
    spec, annotations = as_object(workload.body.get("spec")), as_object(dig(workload.body, "metadata", "annotations"))
    hashed = {"pod-template-hash": _HASH}
    template = as_object(spec.get("template"))
    metadata = as_object(template.get("metadata"))
    labels: JsonObject = {**as_object(metadata.get("labels")), **hashed}
    selector = as_object(spec.get("selector"))
    wanted, surge = _count_replicas(spec)
    revision = _read_number(as_text(annotations.get(f"{_OF_DEPLOYMENT}revision")))
    added: JsonObject = {
        f"{_OF_DEPLOYMENT}revision": str(revision + 1),
        f"{_OF_DEPLOYMENT}desired-replicas": str(wanted),
        f"{_OF_DEPLOYMENT}max-replicas": str(wanted + surge),
    }
    kept = {key: value for key, value in annotations.items() if key not in _NOT_COPIED}
    named: JsonObject = {"name": f"{workload.name}-{_HASH}", "labels": labels, "annotations": {**kept, **added}}
    rolls = dig(spec, "strategy", "type") == "RollingUpdate"
    made: JsonObject = {
        "replicas": min(wanted, surge) if rolls else wanted,
        "minReadySeconds": spec.get("minReadySeconds", 0),
        "selector": {**selector, "matchLabels": {**as_object(selector.get("matchLabels")), **hashed}},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    return named, made


def _count_replicas(spec: JsonObject) -> tuple[int, int]:
    """The wanted replicas, and how many more a rolling update may add; a server has set the defaults."""
    replicas, surge = spec.get("replicas"), dig(spec, "strategy", "rollingUpdate", "maxSurge")
    wanted = replicas if isinstance(replicas, int) else 1
    if isinstance(surge, int):
        return wanted, surge
    return wanted, ceil(wanted * _read_number(as_text(surge).removesuffix("%")) / 100)


def _read_number(text: str) -> int:
    """A number that people may have written; 0 for a text that is none, as one of thousands of digits is."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0
