"""Small policies and objects for one test each: a policy matches only the objects that have its name as a label."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject

ADMISSION = "admissionregistration.k8s.io/v1"
LABEL = "evaluated-by"


def policy(name: str, *resources: str, expression: str = "false", message: str = "no", **spec: Json) -> JsonObject:
    """A policy about some resources of the core group, such as `configmaps`."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [*resources]}
    body: dict[str, Json] = {
        "matchConstraints": {"resourceRules": [rule], "objectSelector": {"matchLabels": {LABEL: name}}},
        "validations": [{"expression": expression, "message": message}],
        **spec,
    }
    return _document("ValidatingAdmissionPolicy", name, ADMISSION, spec=body)


def binding(name: str, **spec: Json) -> JsonObject:
    """A binding that puts the policy of the same name into force, and warns."""
    body = {"policyName": name, "validationActions": ["Warn"], **spec}
    return _document("ValidatingAdmissionPolicyBinding", name, ADMISSION, spec=body)


def labelled(kind: str, by: str, name: str, *, namespace: str = "", **rest: Json) -> JsonObject:
    """An object of the core group that the policy `by` matches."""
    return _document(kind, name, "v1", namespace=namespace, labels={LABEL: by}, **rest)


def namespace(name: str) -> JsonObject:
    """A namespace."""
    return _document("Namespace", name, "v1")


def may(user: str, name: str, *resources: str, group: str = "") -> list[JsonObject]:
    """A role with which a user gets and lists resources of one group in every namespace, and its binding."""
    rule = {"apiGroups": [group], "resources": [*resources], "verbs": ["get", "list"]}
    return [_document("ClusterRole", name, "rbac.authorization.k8s.io/v1", rules=[rule]), bound(user, name)]


def bound(user: str, role: str) -> JsonObject:
    """The binding that gives a user the rights of a ClusterRole in every namespace."""
    return _document(
        "ClusterRoleBinding",
        f"{user}-{role}",
        "rbac.authorization.k8s.io/v1",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    )


def _document(
    kind: str, name: str, api_version: str, *, namespace: str = "", labels: Json = None, **rest: Json
) -> JsonObject:
    metadata: dict[str, Json] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
