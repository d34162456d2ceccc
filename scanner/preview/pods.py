"""The pod that a workload would create, and the user that would create it.

Source of truth: the controllers of kube-controller-manager: each creates pods from the template of its own object (`GetPodFromTemplate`),
and makes the objects between, as a Deployment makes ReplicaSets and a CronJob makes Jobs.
"""

from __future__ import annotations

from typing import Final

from scanner.model.json import Json, JsonObject, as_object
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
    _, template = found
    metadata = as_object(template.get("metadata"))
    kept = {key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)}
    body: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            **kept,
            "name": f"{owner_name}{_SUFFIX}",
            "generateName": f"{owner_name}-",
            "namespace": workload.namespace,
            "ownerReferences": [owner],
        },
        "spec": template["spec"],
    }
    return resource_of(PODS, body), build_user_info(_ACCOUNT.format(account))


# The pod that a controller would create again, given a living one of it.

_SET_LATER: Final = ("nodeName", "ephemeralContainers")
"""The fields of a pod that the scheduler and a subresource set after admission."""


def scrub_pod(pod: Resource) -> Resource:
    """A living pod as its controller would create it: without status, and without what servers set. Injected containers stay."""
    metadata = as_object(pod.body.get("metadata"))
    left_out = (*SERVER_SET_METADATA, "deletionTimestamp", "deletionGracePeriodSeconds")
    body: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {key: value for key, value in metadata.items() if key not in left_out},
        "spec": {key: value for key, value in as_object(pod.body.get("spec")).items() if key not in _SET_LATER},
    }
    return resource_of(PODS, body)


def find_creator(group: str, kind: str) -> UserInfo | None:
    """The user that creates the pods of a controller, None for one that is not of kube-controller-manager."""
    found = CONTROLLERS.get((group, f"{kind.lower()}s"))
    return build_user_info(_ACCOUNT.format(found[0])) if found else None
