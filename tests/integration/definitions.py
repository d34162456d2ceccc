"""Kyverno's custom resource definitions, and those of its reports, with the fields of the real ones."""

from __future__ import annotations

from typing import Any

TEXT, WHOLE, FLAG, ANY = ({"type": kind} for kind in ("string", "integer", "boolean", "object"))
FREE = {**ANY, "x-kubernetes-preserve-unknown-fields": True}
FIVE = ("pass", "fail", "warn", "error", "skip")
REFERENCE = {
    **ANY,
    "properties": dict.fromkeys(("apiVersion", "kind", "name", "namespace", "uid", "resourceVersion"), TEXT),
}
RESULT = {
    **ANY,
    "required": ["policy"],
    "properties": {
        **dict.fromkeys(("source", "policy", "rule", "category", "message"), TEXT),
        "severity": {**TEXT, "enum": ["critical", "high", "medium", "low", "info"]},
        "timestamp": {**ANY, "properties": {"seconds": {**WHOLE, "format": "int64"}, "nanos": WHOLE}},
        "result": {**TEXT, "enum": list(FIVE)},
        "scored": FLAG,
        "resources": {"type": "array", "items": REFERENCE},
        "properties": {**ANY, "additionalProperties": TEXT},
    },
}
REPORT = {
    "summary": {**ANY, "properties": dict.fromkeys(FIVE, WHOLE)},
    "results": {"type": "array", "items": RESULT},
    "source": TEXT,
}
DEFINITIONS = (
    ("policies.kyverno.io", ("v1", "v1beta1"), "ValidatingPolicy", "validatingpolicies", "Cluster", {"spec": FREE}),
    ("policies.kyverno.io", ("v1",), "PolicyException", "policyexceptions", "Namespaced", {"spec": FREE}),
    ("wgpolicyk8s.io", ("v1alpha2",), "PolicyReport", "policyreports", "Namespaced", REPORT),
    ("wgpolicyk8s.io", ("v1alpha2",), "ClusterPolicyReport", "clusterpolicyreports", "Cluster", REPORT),
    ("openreports.io", ("v1alpha1",), "Report", "reports", "Namespaced", REPORT),
    ("openreports.io", ("v1alpha1",), "ClusterReport", "clusterreports", "Cluster", REPORT),
)


def definition(group: str, versions: Any, kind: str, plural: str, scope: str, fields: Any) -> Any:
    """The definition of a kind."""
    schema = {"openAPIV3Schema": {**ANY, "properties": fields}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": scope,
            "versions": [
                {"name": version, "served": True, "storage": not number, "schema": schema}
                for number, version in enumerate(versions)
            ],
        },
    }
