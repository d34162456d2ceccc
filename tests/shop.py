"""A namespace `shop` with its objects, and policies and bindings about them, as documents."""

from __future__ import annotations

from typing import Any

from tests.documents import Document, rule

GROUP = "admissionregistration.k8s.io/v1"
HUNGRY: list[Document] = [{"name": "web", "image": "web:1", "resources": {"limits": {"cpu": "2"}}}]


def vap(name: str, *resources: str, expression: str = "false", group: str = "", **spec: Any) -> Document:
    """A validating policy, with one check unless the spec has others."""
    checks = [{"expression": expression, "message": f"{name} says no"}]
    match = {"resourceRules": [rule(*resources, group=group)], **spec.pop("match", {})}
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": match, "validations": checks, **spec},
    }


def bind(name: str, *actions: str, **spec: Any) -> Document:
    """The binding of a validating policy, with Deny unless there are actions."""
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": list(actions or ("Deny",)), **spec},
    }


def mutation(name: str, expression: str, *resources: str, group: str = "") -> list[Document]:
    """A mutating policy of one apply configuration, with its binding."""
    mutating = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    spec = {
        "matchConstraints": {"resourceRules": [rule(*resources, group=group)]},
        "reinvocationPolicy": "Never",
        "mutations": [mutating],
    }
    binding = {"policyName": name}
    return [
        {"apiVersion": GROUP, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": GROUP, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    ]


def webhook(name: str = "opa.example.com", configuration: str = "opa") -> Document:
    """A configuration with a webhook about ConfigMaps."""
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": configuration},
        "webhooks": [{"name": name, "rules": [rule("configmaps")]}],
    }


def config_map(name: str = "settings", namespace: str = "shop", **fields: Any) -> Document:
    """A ConfigMap; without a namespace, it is where the command says."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def namespace(name: str = "shop", **labels: str) -> Document:
    """A Namespace with labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def deployment(**pod_spec: Any) -> Document:
    """A Deployment in the shop."""
    spec = {"containers": [{"name": "web", "image": "web:1"}], **pod_spec}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def limit_range(**limit: Any) -> Document:
    """A LimitRange of the shop for containers."""
    spec = {"limits": [{"type": "Container", **limit}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "own", "namespace": "shop"}, "spec": spec}


def pod(**spec: Any) -> Document:
    """A pod of the shop."""
    spec = {"containers": [{"name": "web", "image": "web:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
