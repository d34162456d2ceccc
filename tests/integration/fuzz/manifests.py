"""The manifests of mutating policies that act for one requester alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scanner.model.json import Json, JsonObject

ADMISSION = "admissionregistration.k8s.io/v1"
EVERYTHING: tuple[str, str] = ("*", "*")


def policy_named(
    name: str,
    mutations: Iterable[str],
    *,
    user: str,
    resource: tuple[str, str] = EVERYTHING,
    conditions: Sequence[str] = (),
    failure_policy: str = "Fail",
    reinvocation_policy: str = "Never",
) -> JsonObject:
    """A policy for writes by `user` of a resource, named by group and plural; a mutation in brackets is a JSON patch."""
    group, plural = resource
    rule: JsonObject = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    by_user: Json = {"name": "asked", "expression": f"request.userInfo.username == '{user}'"}
    spec: dict[str, Json] = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            by_user,
            *({"name": f"c{at}", "expression": condition} for at, condition in enumerate(conditions)),
        ],
        "failurePolicy": failure_policy,
        "reinvocationPolicy": reinvocation_policy,
        "mutations": [*map(write_mutation, mutations)],
    }
    return {"apiVersion": ADMISSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}


def binding_named(name: str) -> JsonObject:
    """The binding of the policy with the same name."""
    return {
        "apiVersion": ADMISSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }


def write_mutation(text: str) -> Json:
    """The mutation of a policy with an expression: a JSON patch if it is a list."""
    if text.startswith("["):
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": text}}
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
