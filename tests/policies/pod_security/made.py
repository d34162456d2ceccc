"""Namespaces, pods and workloads that the tests of Pod Security judge."""

from __future__ import annotations

from typing import Any

from scanner.policies.pod_security.labels import Mode
from tests.documents import DEPLOYMENTS, Document, namespace, thing

PRIVILEGED = {"name": "app", "securityContext": {"privileged": True}}
PLAIN = {"name": "app"}
SAFE = {
    "name": "app",
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}


def labelled(name: str, enforce: str = "", *, warn: str = "", audit: str = "", version: str = "") -> Document:
    """A namespace with levels, and a version for `enforce`."""
    labels = {Mode.ENFORCE.level_key: enforce, Mode.WARN.level_key: warn, Mode.AUDIT.level_key: audit}
    labels[Mode.ENFORCE.version_key] = version
    return namespace(name, **{key: value for key, value in labels.items() if value})


def deployment(name: str = "web", space: str = "shop", *containers: Any, **pod_spec: Any) -> Document:
    """A deployment whose template has some containers."""
    spec = {"containers": list(containers) or [PLAIN], **pod_spec}
    return thing(DEPLOYMENTS, name, space, spec={"template": {"metadata": {}, "spec": spec}})
