"""The defaults that the API server gives to fields of its own kinds, where a mutation may take them away.

Source of truth: `SetDefaults_*` of Kubernetes 1.36 for core/v1, apps/v1, batch/v1, networking.k8s.io/v1, storage.k8s.io/v1,
rbac.authorization.k8s.io/v1 and autoscaling. A field that is not listed has none, or one that depends on more than the object.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.model.json import Json, JsonObject, as_object, as_text, dig

_NAME_LABEL = "kubernetes.io/metadata.name"
_CORE = "io.k8s.api.core.v1."
_APPS = "io.k8s.api.apps.v1."
_BATCH = "io.k8s.api.batch.v1."
_ROLLING: Json = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
_CONTAINER: JsonObject = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_VOLUME: JsonObject = {"defaultMode": 420}
_RBAC: JsonObject = {"apiGroup": "rbac.authorization.k8s.io"}
_DEFAULTS: Mapping[str, JsonObject] = {
    f"{_CORE}Container": _CONTAINER,
    f"{_CORE}EphemeralContainer": _CONTAINER,
    f"{_CORE}ContainerPort": {"protocol": "TCP"},
    f"{_CORE}ServicePort": {"protocol": "TCP"},
    f"{_CORE}Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    f"{_CORE}HTTPGetAction": {"scheme": "HTTP", "path": "/"},
    f"{_CORE}GRPCAction": {"service": ""},
    f"{_CORE}SecretVolumeSource": _VOLUME,
    f"{_CORE}ConfigMapVolumeSource": _VOLUME,
    f"{_CORE}DownwardAPIVolumeSource": _VOLUME,
    f"{_CORE}ProjectedVolumeSource": _VOLUME,
    f"{_CORE}ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    f"{_CORE}HostPathVolumeSource": {"type": ""},
    f"{_CORE}ISCSIVolumeSource": {"iscsiInterface": "default"},
    f"{_CORE}RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    f"{_CORE}ObjectFieldSelector": {"apiVersion": "v1"},
    f"{_CORE}PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    f"{_CORE}ServiceSpec": {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    },
    f"{_CORE}PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    f"{_CORE}PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    f"{_CORE}NamespaceSpec": {"finalizers": ["kubernetes"]},
    f"{_CORE}Secret": {"type": "Opaque"},
    f"{_APPS}DeploymentSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": _ROLLING,
    },
    f"{_APPS}DeploymentStrategy": {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    },
    f"{_APPS}RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    f"{_APPS}ReplicaSetSpec": {"replicas": 1},
    f"{_APPS}StatefulSetSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    },
    f"{_APPS}StatefulSetUpdateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    f"{_APPS}RollingUpdateStatefulSetStrategy": {"partition": 0},
    f"{_APPS}DaemonSetSpec": {
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    },
    f"{_APPS}DaemonSetUpdateStrategy": {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    },
    f"{_APPS}RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    f"{_BATCH}JobSpec": {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "completions": 1,
        "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed",
        "suspend": False,
    },
    f"{_BATCH}CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "io.k8s.api.networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "io.k8s.api.storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "io.k8s.api.rbac.v1.RoleRef": _RBAC,
    "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
}


def default_of(type_name: str, field: str, siblings: JsonObject) -> Json:
    """What a field is when it is not given, None when it stays away. Some defaults follow other fields of the object."""
    match type_name.rpartition(".")[2], field:
        case ("Container" | "EphemeralContainer", "imagePullPolicy"):
            return _pull_policy(as_text(siblings.get("image")))
        case ("ServicePort", "targetPort"):
            return siblings.get("port")
        case ("Subject", "apiGroup"):
            return "" if siblings.get("kind") == "ServiceAccount" else _RBAC["apiGroup"]
        case ("ResourceRequirements", "requests"):
            return siblings.get("limits")
        case ("DeploymentStrategy", "rollingUpdate") if dig(siblings, "type") == "Recreate":
            return None
        case _:
            return _DEFAULTS.get(type_name, {}).get(field)


def labels_of(document: JsonObject, given: JsonObject) -> JsonObject:
    """The labels of an object that was given some: namespaces keep their name, jobs without any take their template's."""
    match document.get("apiVersion"), document.get("kind"):
        case ("v1", "Namespace"):
            return {**given, _NAME_LABEL: dig(document, "metadata", "name")}
        case ("batch/v1", "Job") | ("v1", "ReplicationController"):
            return given or as_object(dig(document, "spec", "template", "metadata", "labels"))
        case _:
            return given


def _pull_policy(image: str) -> Json:
    """Always for the tag `latest`, said or not."""
    last = image.rpartition("/")[2]
    if "@" in last and ":" not in last.partition("@")[0]:
        return "IfNotPresent"
    tag = last.partition("@")[0].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"
