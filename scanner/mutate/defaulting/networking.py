"""Defaults of network policies, ingresses and endpoint slices.

`pkg/apis/networking/v1/defaults.go`, `pkg/apis/networking/v1beta1/defaults.go` and `pkg/apis/discovery/*/defaults.go`.
"""

from __future__ import annotations

from scanner.model.json import Json, JsonObject
from scanner.mutate.defaulting.rules import when_absent
from scanner.mutate.walk import Rules, where, within

_NETWORKING = "io.k8s.api.networking."


def _policy_types(spec: JsonObject) -> JsonObject:
    """A policy without types applies to ingress, and to egress if it has egress rules (`SetDefaults_NetworkPolicy`)."""
    if spec.get("policyTypes"):
        return spec
    types: list[Json] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**spec, "policyTypes": types}


RULES: Rules = {
    f"{_NETWORKING}v1.NetworkPolicy": within("spec", _policy_types),
    f"{_NETWORKING}v1.NetworkPolicyPort": when_absent(protocol="TCP"),
    f"{_NETWORKING}v1.IngressClass": within("spec", where("parameters", when_absent(scope="Cluster"))),
    f"{_NETWORKING}v1beta1.HTTPIngressPath": when_absent(pathType="ImplementationSpecific"),
    **{
        f"io.k8s.api.discovery.{version}.EndpointPort": when_absent(name="", protocol="TCP")
        for version in ("v1", "v1beta1")
    },
}
