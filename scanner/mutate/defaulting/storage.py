"""Defaults of storage classes and CSI drivers: `pkg/apis/storage/*/defaults.go`."""

from __future__ import annotations

from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rules, in_order, within

_STORAGE = "io.k8s.api.storage."
_class = when_absent(reclaimPolicy="Delete", volumeBindingMode="Immediate")  # SetDefaults_StorageClass
_driver = within(  # SetDefaults_CSIDriver
    "spec",
    in_order(
        when_absent(
            attachRequired=True,
            podInfoOnMount=False,
            storageCapacity=False,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            requiresRepublish=False,
            seLinuxMount=False,
        ),
        when_zero(volumeLifecycleModes=["Persistent"]),
    ),
)

RULES: Rules = {
    **{f"{_STORAGE}{version}.StorageClass": _class for version in ("v1", "v1beta1")},
    **{f"{_STORAGE}{version}.CSIDriver": _driver for version in ("v1", "v1beta1")},
}
