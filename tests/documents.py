"""Manifests and kinds that the tests are about, each with just what a test does not say itself."""

from __future__ import annotations

from typing import Any, TypeAlias

from scanner.model.resource import Kind

Document: TypeAlias = dict[str, Any]

PODS = Kind("", "v1", "Pod", "pods", namespaced=True)
SECRETS = Kind("", "v1", "Secret", "secrets", namespaced=True)
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False)
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments", namespaced=True)
SCALERS_V1 = Kind("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
SCALERS_V2 = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
EVENTS = Kind("", "v1", "Event", "events", namespaced=True)
NEW_EVENTS = Kind("events.k8s.io", "v1", "Event", "events", namespaced=True)
LIMITS = Kind("example.com", "v1", "Limit", "limits", namespaced=False)
POLICIES = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)
BINDINGS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)
KINDS = (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    DEPLOYMENTS,
    SCALERS_V2,
    SCALERS_V1,
    NEW_EVENTS,
    LIMITS,
    POLICIES,
    BINDINGS,
)


def rule(*resources: str, group: str = "", version: str = "v1", **fields: Any) -> Document:
    """A rule for CREATE and UPDATE of some resources."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
        **fields,
    }


ON_PODS = {"resourceRules": [rule("pods")]}


def policy(name: str = "p", *expressions: str, **spec: Any) -> Document:
    """A policy on pods with some validations."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": ON_PODS,
            "validations": [{"expression": text} for text in expressions],
            **spec,
        },
    }


def binding(name: str = "b", policy_name: str = "p", *actions: str, **spec: Any) -> Document:
    """A binding of a policy, by default with the action Deny."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": policy_name, "validationActions": list(actions) or ["Deny"], **spec},
    }


def thing(kind: Kind, name: str, namespace: str = "", **fields: Any) -> Document:
    """An object of any kind, as files hold it: without a UID."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


def pod(name: str = "web", namespace: str = "default", **fields: Any) -> Document:
    """A pod; `labels` goes to its metadata, everything else to its spec."""
    labels = fields.pop("labels", None)
    metadata = {"labels": labels} if labels is not None else {}
    return thing(PODS, name, namespace, metadata=metadata, spec=fields)


def namespace(name: str, **labels: str) -> Document:
    """A namespace with the label that every server gives it."""
    return thing(NAMESPACES, name, metadata={"labels": {"kubernetes.io/metadata.name": name, **labels}})
