"""What the API server's own configuration adds to the labels: defaults, and what is exempt from every level.

No API shows it: the user gives the file of `--admission-control-config-file`.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38, packages `admission/api` and `admission`.

Rules: `docs/semantics/pod-security.md#configuration`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from scanner.model.json import JsonObject, as_text
from scanner.policies.pod_security.labels import NO_DEMANDS, Demands


class Configuration(Struct, frozen=True):
    """The defaults, and the exempt namespaces, users and runtime classes; names match exactly. `body` is the document."""

    defaults: Demands
    namespaces: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    runtime_classes: frozenset[str] = frozenset()
    body: JsonObject | None = None

    def find_exemption(self, namespace: str, user: str) -> str:
        """What exempts the requests of a user in a namespace, as the server writes it into `exempt`; empty without one."""
        if namespace in self.namespaces:
            return "namespace"
        return "user" if user in self.users else ""

    def find_runtime_exemption(self, spec: JsonObject) -> str:
        """What exempts a pod or a template by its spec; empty without an exemption."""
        return "runtimeClass" if as_text(spec.get("runtimeClassName")) in self.runtime_classes else ""


DEFAULT: Final = Configuration(NO_DEMANDS)
"""The configuration of a server without a file: labels alone decide, and nothing is exempt."""
