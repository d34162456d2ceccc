"""The pod that a workload would create, and the user that would create it.

Source of truth: the controllers of kube-controller-manager: each creates pods from the template of its own object (`GetPodFromTemplate`),
and makes the objects between, as a Deployment makes ReplicaSets and a CronJob makes Jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.population import Controller
from scanner.model.resource import SERVER_SET_METADATA, Kind, Resource, UserInfo, build_user_info, resource_of
from scanner.policies.pod_security.pods import TEMPLATES, find_template

PODS: Final = Kind("", "v1", "Pod", "pods", namespaced=True)
_ACCOUNT: Final = "system:serviceaccount:kube-system:{}"
CONTROLLERS: Final = {
    ("", "replicationcontrollers"): ("replication-controller", None),
    ("apps", "replicasets"): ("replicaset-controller", None),
    ("apps", "deployments"): ("replicaset-controller", ("apps/v1", "ReplicaSet")),
    ("apps", "statefulsets"): ("statefulset-controller", None),
    ("apps", "daemonsets"): ("daemon-set-controller", None),
    ("batch", "jobs"): ("job-controller", None),
    ("batch", "cronjobs"): ("job-controller", ("batch/v1", "Job")),
}
"""The service account of the controller that creates the pods, and the kind of the pods' owner if it is another one."""
_SUFFIX: Final = "-xxxxx"
_MARK: Final = "00000000-0000-0000-0000-000000000000"


def has_pods(kind: Kind) -> bool:
    """Return whether a controller creates pods from the template of the objects of a kind."""
    return (kind.group, kind.plural) in CONTROLLERS and (kind.group, kind.plural) in TEMPLATES


def make_pod(workload: Resource) -> tuple[Resource, UserInfo] | None:
    """The manifest of the pod of a workload, and the user that creates it; None for an object without pods."""
    kind = workload.kind
    found = find_template(kind, workload.body) if has_pods(kind) else None
    if found is None:
        return None
    account, between = CONTROLLERS[kind.group, kind.plural]
    owner_version, owner_kind = between or (kind.api_version, kind.kind)
    owner_name = f"{workload.name}{_SUFFIX}" if between else workload.name
    owner: dict[str, Json] = {
        "apiVersion": owner_version,
        "kind": owner_kind,
        "name": owner_name,
        "uid": _MARK,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    template = _complete_template(workload, found[1])
    metadata = as_object(template.get("metadata"))
    kept = {key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)}
    # The server makes the names of all other pods, after mutating policies.
    named = {"name": _name_of_ordinal(workload)} if kind.plural == "statefulsets" else {}
    body: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **kept,
            **named,
            "generateName": f"{owner_name}-",
            "namespace": workload.namespace,
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }
    return resource_of(PODS, body), build_user_info(_ACCOUNT.format(account))


# What each controller adds to the template.

_HASH: Final = "xxxxxxxxxx"
_GENERATION: Final = "deprecated.daemonset.template.generation"
_TRACKING: Final = "batch.kubernetes.io/job-tracking"
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""The taints that the pods of a DaemonSet tolerate (`AddOrUpdateDaemonPodTolerations`)."""


def _complete_template(workload: Resource, template: JsonObject) -> JsonObject:
    """The template with what the controller adds; values that only it knows, such as hashes, are made up."""
    match workload.kind.plural:
        case "deployments":
            return _add(template, {"pod-template-hash": _HASH})
        case "statefulsets":
            return _complete_of_stateful_set(workload, template)
        case "daemonsets":
            return _complete_of_daemon_set(workload, template)
        case "jobs" | "cronjobs":
            return _complete_of_job(workload, template)
        case _:
            return template


def _add(template: JsonObject, labels: Mapping[str, str], **spec: Json) -> JsonObject:
    """A template with labels and fields of its spec added."""
    metadata = as_object(template.get("metadata"))
    added = {**metadata, "labels": {**as_object(metadata.get("labels")), **labels}}
    return {**template, "metadata": added, "spec": {**as_object(template["spec"]), **spec}}


def _name_of_ordinal(workload: Resource) -> str:
    return f"{workload.name}-{dig(workload.body, 'spec', 'ordinals', 'start') or 0}"


def _complete_of_stateful_set(workload: Resource, template: JsonObject) -> JsonObject:
    """`newStatefulSetPod`: the identity of the first pod, and its claims."""
    name = _name_of_ordinal(workload)
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": name.rpartition("-")[2],
        "controller-revision-hash": as_text(dig(workload.body, "status", "updateRevision"))
        or f"{workload.name}-{_HASH}",
    }
    claims = [
        as_text(dig(claim, "metadata", "name")) for claim in as_list(dig(workload.body, "spec", "volumeClaimTemplates"))
    ]
    others = [each for each in as_list(dig(template, "spec", "volumes")) if dig(each, "name") not in claims]
    claimed: list[Json] = [
        {"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims
    ]
    volumes = [*claimed, *others]
    identity: dict[str, Json] = {"hostname": name}
    if service := as_text(dig(workload.body, "spec", "serviceName")):
        identity["subdomain"] = service
    return _add(template, labels, **identity, **({"volumes": volumes} if volumes else {}))


def _complete_of_daemon_set(workload: Resource, template: JsonObject) -> JsonObject:
    """`CreatePodTemplate` and `ReplaceDaemonSetPodNodeNameNodeAffinity`: a pod for one node, which tolerates its conditions."""
    spec = as_object(template["spec"])
    taints = [*_TOLERATED, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    added: list[Json] = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in taints
    ]
    tolerations = [*(each for each in as_list(spec.get("tolerations")) if each not in added), *added]
    node: list[Json] = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"node{_SUFFIX}"]}]}]
    affinity = as_object(spec.get("affinity"))
    of_nodes = {
        **as_object(affinity.get("nodeAffinity")),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": node},
    }
    generation = dig(workload.body, "metadata", "annotations", _GENERATION)
    labels = {"controller-revision-hash": _HASH, "pod-template-generation": as_text(generation) or "1"}
    return _add(template, labels, tolerations=tolerations, affinity={**affinity, "nodeAffinity": of_nodes})


def _complete_of_job(workload: Resource, template: JsonObject) -> JsonObject:
    """The finalizer of `podTemplate`, and the labels that the API gives a Job without a selector of its own (`generateSelector`)."""
    is_cron_job = workload.kind.plural == "cronjobs"
    spec = dig(workload.body, "spec", "jobTemplate", "spec") if is_cron_job else workload.body.get("spec")
    name = f"{workload.name}{_SUFFIX}" if is_cron_job else workload.name
    generated = (("controller-uid", workload.uid or _MARK), ("job-name", name))
    labels = {f"{prefix}{key}": value for key, value in generated for prefix in ("", "batch.kubernetes.io/")}
    if dig(spec, "manualSelector"):
        labels = {}
    is_indexed = dig(spec, "completionMode") == "Indexed"
    if is_indexed:
        labels["batch.kubernetes.io/job-completion-index"] = "0"
    completed = _add(template, labels, **({"hostname": f"{name}-0"} if is_indexed else {}))
    metadata = as_object(completed["metadata"])
    finalizers = [*as_list(metadata.get("finalizers")), _TRACKING]
    return {**completed, "metadata": {**metadata, "finalizers": finalizers}}


# The template of which a pod was made.


def find_template_revision(workload: Resource) -> str:
    """The revision of the template of a StatefulSet or a DaemonSet, empty for other objects: their template never changes."""
    match workload.kind.plural:
        case "statefulsets":
            return as_text(dig(workload.body, "status", "updateRevision"))
        case "daemonsets":
            return as_text(dig(workload.body, "metadata", "annotations", _GENERATION))
        case _:
            return ""


_REVISION_LABELS: Final = {
    ("apps", "StatefulSet"): "controller-revision-hash",
    ("apps", "DaemonSet"): "pod-template-generation",
}


def find_pod_revision(pod: Resource, controller: Controller) -> str:
    """The revision of the template of which a pod was made, as `find_template_revision` has it; empty for pods of other controllers."""
    label = _REVISION_LABELS.get(controller.group_kind)
    return pod.labels.get(label, "") if label else ""


def keeps_earlier_pods(workload: Resource) -> bool:
    """Return whether a controller makes some pods again from the template before (`newVersionedStatefulSetPod`).

    A StatefulSet does so below its partition, by any strategy.
    """
    partition = dig(workload.body, "spec", "updateStrategy", "rollingUpdate", "partition")
    return workload.kind.plural == "statefulsets" and isinstance(partition, int) and partition > 0


# The pod that a controller would create again, given a living one of it.

_SET_LATER: Final = ("nodeName", "ephemeralContainers")
"""The fields of a pod that the scheduler and a subresource set after admission."""


def scrub_pod(pod: Resource) -> Resource:
    """A living pod as its controller would create it: without status, and without what servers set. Injected containers stay.

    The server makes the name of a controller's pod, after mutating policies, unless it is one of a StatefulSet.
    """
    metadata = as_object(pod.body.get("metadata"))
    left_out = [*SERVER_SET_METADATA, "deletionTimestamp", "deletionGracePeriodSeconds"]
    if _has_generated_name(pod, metadata):
        left_out.append("name")
    body: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {key: value for key, value in metadata.items() if key not in left_out},
        "spec": {key: value for key, value in as_object(pod.body.get("spec")).items() if key not in _SET_LATER},
    }
    return resource_of(PODS, body)


def _has_generated_name(pod: Resource, metadata: JsonObject) -> bool:
    prefix = as_text(metadata.get("generateName"))
    controllers = [each for each in as_list(metadata.get("ownerReferences")) if dig(each, "controller") is True]
    is_stateful = any(dig(each, "kind") == "StatefulSet" for each in controllers)
    return bool(prefix and controllers) and not is_stateful and pod.name.startswith(prefix)


def find_creator(group: str, kind: str) -> UserInfo | None:
    """The user that creates the pods of a controller, None for one that is not of kube-controller-manager."""
    found = CONTROLLERS.get((group, f"{kind.lower()}s"))
    return build_user_info(_ACCOUNT.format(found[0])) if found else None
