"""The refusal of a request by a plug-in, and the objects that plug-ins read."""

from __future__ import annotations

from typing import Final

from scanner.model.resource import Kind

ACCOUNTS: Final = Kind("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
INGRESS_CLASSES: Final = Kind("networking.k8s.io", "v1", "IngressClass", "ingressclasses", namespaced=False)
LIMIT_RANGES: Final = Kind("", "v1", "LimitRange", "limitranges", namespaced=True)
PRIORITY_CLASSES: Final = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
RUNTIME_CLASSES: Final = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
STORAGE_CLASSES: Final = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False)


class PluginRefusal(Exception):
    """A plug-in refuses the request; the message is that of the API server. `field` is the path of the field that decides."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field
