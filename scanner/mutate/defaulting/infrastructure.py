"""Defaults of networks, storage and devices: `pkg/apis/{networking,discovery,storage,resource}/*/defaults.go`."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject
from scanner.mutate.walk import Rules, apply_when_set, apply_within, chain_rules, fill_absent, fill_zero

_NETWORKING = "io.k8s.api.networking."


def _default_policy_types(spec: JsonObject) -> JsonObject:
    """A policy without types applies to ingress, and to egress if it has egress rules (`SetDefaults_NetworkPolicy`)."""
    if spec.get("policyTypes"):
        return spec
    types: list[Json] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**spec, "policyTypes": types}


NETWORKING_RULES: Rules = {
    f"{_NETWORKING}v1.NetworkPolicy": apply_within("spec", _default_policy_types),
    f"{_NETWORKING}v1.NetworkPolicyPort": fill_absent(protocol="TCP"),
    f"{_NETWORKING}v1.IngressClass": apply_within("spec", apply_when_set("parameters", fill_absent(scope="Cluster"))),
    f"{_NETWORKING}v1beta1.HTTPIngressPath": fill_absent(pathType="ImplementationSpecific"),
    **{
        f"io.k8s.api.discovery.{version}.EndpointPort": fill_absent(name="", protocol="TCP")
        for version in ("v1", "v1beta1")
    },
}


# Defaults of storage classes and CSI drivers: `pkg/apis/storage/*/defaults.go`.

_STORAGE = "io.k8s.api.storage."
_class = fill_absent(reclaimPolicy="Delete", volumeBindingMode="Immediate")  # SetDefaults_StorageClass
_driver = apply_within(  # SetDefaults_CSIDriver
    "spec",
    chain_rules(
        fill_absent(
            attachRequired=True,
            podInfoOnMount=False,
            storageCapacity=False,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            requiresRepublish=False,
            seLinuxMount=False,
        ),
        fill_zero(volumeLifecycleModes=["Persistent"]),
    ),
)

STORAGE_RULES: Rules = {
    **{f"{_STORAGE}{version}.StorageClass": _class for version in ("v1", "v1beta1")},
    **{f"{_STORAGE}{version}.CSIDriver": _driver for version in ("v1", "v1beta1")},
}


# Defaults of dynamic resources: `pkg/apis/resource/*/defaults.go`, and `+default` in `resource/*/types.go`.
#
# A taint without `timeAdded` gets the time of the request (`SetDefaults_DeviceTaint`), which is unknown: it stays
# absent.

_RESOURCE = "io.k8s.api.resource."
_EXACTLY = "ExactCount"


def _default_device_request(request: JsonObject) -> JsonObject:
    """`SetDefaults_ExactDeviceRequest`, `SetDefaults_DeviceSubRequest`."""
    request = fill_zero(allocationMode=_EXACTLY)(request)
    return fill_zero(count=1)(request) if request["allocationMode"] == _EXACTLY else request


def _default_beta_request(request: JsonObject) -> JsonObject:
    """A request without a class has alternatives instead (`SetDefaults_DeviceRequest` of v1beta1)."""
    return _default_device_request(request) if request.get("deviceClassName") else request


RESOURCE_RULES: Rules = {
    f"{_RESOURCE}v1beta1.DeviceRequest": _default_beta_request,
    f"{_RESOURCE}v1alpha3.ResourcePoolStatusRequestSpec": fill_absent(limit=100),
    **{f"{_RESOURCE}{version}.ExactDeviceRequest": _default_device_request for version in ("v1", "v1beta2")},
    **{f"{_RESOURCE}{version}.DeviceSubRequest": _default_device_request for version in ("v1", "v1beta1", "v1beta2")},
    **{
        f"{_RESOURCE}{version}.DeviceToleration": fill_zero(operator="Equal")
        for version in ("v1", "v1alpha3", "v1beta1", "v1beta2")
    },
    **{
        f"{_RESOURCE}{version}.NodeAllocatableResourceMapping": fill_absent(allocationMultiplier="1")
        for version in ("v1", "v1beta1", "v1beta2")
    },
}
