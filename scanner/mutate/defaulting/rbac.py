"""Defaults of role bindings: `pkg/apis/rbac/*/defaults.go`."""

from __future__ import annotations

from scanner.model.json import JsonObject
from scanner.mutate.defaulting.rules import when_zero
from scanner.mutate.walk import Rules, within

_RBAC = "io.k8s.api.rbac.v1."
_GROUP = "rbac.authorization.k8s.io"

_binding = within("roleRef", when_zero(apiGroup=_GROUP))  # SetDefaults_RoleBinding, SetDefaults_ClusterRoleBinding


def _subject(subject: JsonObject) -> JsonObject:
    """`SetDefaults_Subject`."""
    return when_zero(apiGroup=_GROUP)(subject) if subject.get("kind") in ("User", "Group") else subject


RULES: Rules = {
    f"{_RBAC}RoleBinding": _binding,
    f"{_RBAC}ClusterRoleBinding": _binding,
    f"{_RBAC}Subject": _subject,
}
