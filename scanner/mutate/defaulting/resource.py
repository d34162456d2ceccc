"""Defaults of dynamic resources: `pkg/apis/resource/*/defaults.go`, and `+default` in `resource/*/types.go`.

A taint without `timeAdded` gets the time of the request (`SetDefaults_DeviceTaint`), which is unknown: it stays absent.
"""

from __future__ import annotations

from scanner.model.json import JsonObject
from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rules

_RESOURCE = "io.k8s.api.resource."
_EXACTLY = "ExactCount"


def _device_request(request: JsonObject) -> JsonObject:
    """`SetDefaults_ExactDeviceRequest`, `SetDefaults_DeviceSubRequest`."""
    request = when_zero(allocationMode=_EXACTLY)(request)
    return when_zero(count=1)(request) if request["allocationMode"] == _EXACTLY else request


def _beta_request(request: JsonObject) -> JsonObject:
    """A request without a class has alternatives instead (`SetDefaults_DeviceRequest` of v1beta1)."""
    return _device_request(request) if request.get("deviceClassName") else request


RULES: Rules = {
    f"{_RESOURCE}v1beta1.DeviceRequest": _beta_request,
    f"{_RESOURCE}v1alpha3.ResourcePoolStatusRequestSpec": when_absent(limit=100),
    **{f"{_RESOURCE}{version}.ExactDeviceRequest": _device_request for version in ("v1", "v1beta2")},
    **{f"{_RESOURCE}{version}.DeviceSubRequest": _device_request for version in ("v1", "v1beta1", "v1beta2")},
    **{
        f"{_RESOURCE}{version}.DeviceToleration": when_zero(operator="Equal")
        for version in ("v1", "v1alpha3", "v1beta1", "v1beta2")
    },
    **{
        f"{_RESOURCE}{version}.NodeAllocatableResourceMapping": when_absent(allocationMultiplier="1")
        for version in ("v1", "v1beta1", "v1beta2")
    },
}
