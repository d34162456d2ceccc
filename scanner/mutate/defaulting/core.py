"""Defaults of the core group without its pods: `pkg/apis/core/v1/defaults.go`, and `+default` in `core/v1/types.go`.

A ConfigMap's empty `data` (`SetDefaults_ConfigMap`) is not written.
"""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_list, as_object, dig
from scanner.mutate.defaulting.resources import find_missing, round_resource_lists
from scanner.mutate.walk import (
    Rule,
    Rules,
    apply_to_each,
    apply_within,
    chain_rules,
    drop_members,
    fill_absent,
    fill_zero,
)

_CORE = "io.k8s.api.core.v1."
_NAME_LABEL = "kubernetes.io/metadata.name"
_CLIENT_SECONDS = 10800
_LIMITS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _default_service_spec(spec: JsonObject) -> JsonObject:
    """`SetDefaults_Service`."""
    spec = fill_zero(sessionAffinity="None", type="ClusterIP")(spec)
    spec = apply_to_each("ports", _default_service_port)(_default_session_affinity(spec))
    if is_externally_accessible(spec):
        spec = fill_zero(externalTrafficPolicy="Cluster")(spec)
    if spec["type"] in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec = fill_absent(internalTrafficPolicy="Cluster")(spec)
    return fill_absent(allocateLoadBalancerNodePorts=True)(spec) if spec["type"] == "LoadBalancer" else spec


def _default_session_affinity(spec: JsonObject) -> JsonObject:
    if spec["sessionAffinity"] == "None":
        return drop_members(spec, "sessionAffinityConfig")
    if (
        spec["sessionAffinity"] != "ClientIP"
        or dig(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") is not None
    ):
        return spec
    return {**spec, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": _CLIENT_SECONDS}}}


def _default_service_port(port: JsonObject) -> JsonObject:
    port = fill_zero(protocol="TCP")(port)
    return port if port.get("targetPort") else {**port, "targetPort": port.get("port") or 0}


def is_externally_accessible(spec: JsonObject) -> bool:
    """Return whether a service is reachable from outside the cluster (`service.ExternallyAccessible`)."""
    match spec.get("type"):
        case "LoadBalancer" | "NodePort":
            return True
        case kind:
            return kind == "ClusterIP" and bool(spec.get("externalIPs"))


def _default_balancer_modes(service: JsonObject) -> JsonObject:
    """The addresses of a load balancer are virtual ones (`SetDefaults_Service`)."""
    if dig(service, "spec", "type") != "LoadBalancer" or not dig(service, "status", "loadBalancer", "ingress"):
        return service
    return apply_within("status", apply_within("loadBalancer", apply_to_each("ingress", _default_balancer_mode)))(
        service
    )


def _default_balancer_mode(ingress: JsonObject) -> JsonObject:
    return fill_absent(ipMode="VIP")(ingress) if ingress.get("ip") else ingress


def _default_template_labels(controller: JsonObject) -> JsonObject:
    """A replication controller without selector or labels has those of its template (`SetDefaults_ReplicationController`)."""
    labels = as_object(dig(controller, "spec", "template", "metadata", "labels"))
    if not labels:
        return controller
    controller = apply_within("spec", fill_zero(selector=labels))(controller)
    return apply_within("metadata", fill_zero(labels=labels))(controller)


def _set_name_label(namespace: JsonObject) -> JsonObject:
    """The label that names a namespace (`SetDefaults_Namespace`)."""
    name = dig(namespace, "metadata", "name")
    if not name or dig(namespace, "metadata", "labels", _NAME_LABEL) == name:
        return namespace
    return apply_within("metadata", apply_within("labels", lambda labels: {**labels, _NAME_LABEL: name}))(namespace)


def _default_allocatable(status: JsonObject) -> JsonObject:
    """All that a node has can be allocated (`SetDefaults_NodeStatus`)."""
    capacity = status.get("capacity")
    return status if status.get("allocatable") is not None or not capacity else {**status, "allocatable": capacity}


def _default_limit_range_item(item: JsonObject) -> JsonObject:
    """`SetDefaults_LimitRangeItem`."""
    if item.get("type") != "Container":
        return item
    item = _complete(item, "default", item.get("max"))
    return _complete(item, "defaultRequest", item.get("default"), item.get("min"))


def _complete(item: JsonObject, name: str, *sources: Json) -> JsonObject:
    missing = find_missing(item.get(name), *map(as_object, sources))
    return {**item, name: {**as_object(item.get(name)), **missing}} if missing else item


def _default_endpoints(endpoints: JsonObject) -> JsonObject:
    """`SetDefaults_Endpoints`."""
    return (
        apply_to_each("subsets", apply_to_each("ports", fill_zero(protocol="TCP")))(endpoints)
        if as_list(endpoints.get("subsets"))
        else endpoints
    )


_iscsi = fill_zero(iscsiInterface="default")
_rbd = fill_zero(pool="rbd", user="admin", keyring="/etc/ceph/keyring")
_scale_io = fill_zero(storageMode="ThinProvisioned", fsType="xfs")
_azure_disk = fill_absent(cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared")


def _make_phase_rule(phase: str) -> Rule:
    return apply_within("status", fill_zero(phase=phase))


RULES: Rules = {
    f"{_CORE}Service": chain_rules(apply_within("spec", _default_service_spec), _default_balancer_modes),
    f"{_CORE}ReplicationController": _default_template_labels,
    f"{_CORE}ReplicationControllerSpec": fill_absent(replicas=1),
    f"{_CORE}Secret": fill_zero(type="Opaque"),
    f"{_CORE}Namespace": chain_rules(
        _set_name_label, _make_phase_rule("Active")
    ),  # SetDefaults_Namespace, SetDefaults_NamespaceStatus
    f"{_CORE}NodeStatus": chain_rules(_default_allocatable, round_resource_lists("capacity", "allocatable")),
    f"{_CORE}PersistentVolume": chain_rules(
        _make_phase_rule("Pending"),
        apply_within("spec", fill_zero(persistentVolumeReclaimPolicy="Retain")),
        apply_within("spec", fill_absent(volumeMode="Filesystem")),
    ),
    f"{_CORE}PersistentVolumeSpec": round_resource_lists("capacity"),
    f"{_CORE}PersistentVolumeClaim": _make_phase_rule("Pending"),
    f"{_CORE}PersistentVolumeClaimSpec": fill_absent(volumeMode="Filesystem"),
    f"{_CORE}PersistentVolumeClaimStatus": round_resource_lists("capacity", "allocatedResources"),
    f"{_CORE}VolumeResourceRequirements": round_resource_lists("limits", "requests"),
    f"{_CORE}Endpoints": _default_endpoints,
    f"{_CORE}LimitRangeItem": chain_rules(_default_limit_range_item, round_resource_lists(*_LIMITS)),
    f"{_CORE}ResourceQuotaSpec": round_resource_lists("hard"),
    f"{_CORE}ResourceQuotaStatus": round_resource_lists("hard", "used"),
    f"{_CORE}HostPathVolumeSource": fill_absent(type=""),
    f"{_CORE}ISCSIVolumeSource": _iscsi,
    f"{_CORE}ISCSIPersistentVolumeSource": _iscsi,
    f"{_CORE}RBDVolumeSource": _rbd,
    f"{_CORE}RBDPersistentVolumeSource": _rbd,
    f"{_CORE}ScaleIOVolumeSource": _scale_io,
    f"{_CORE}ScaleIOPersistentVolumeSource": _scale_io,
    f"{_CORE}AzureDiskVolumeSource": _azure_disk,
}
