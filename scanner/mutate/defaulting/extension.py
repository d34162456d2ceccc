"""Defaults of CustomResourceDefinitions and APIServices.

`apiextensions/v1/defaults.go` of apiextensions-apiserver and `apiregistration/v1/defaults.go` of kube-aggregator.
"""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.mutate.defaulting.rules import when_absent, when_zero
from scanner.mutate.walk import Rules, in_order, within

_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_API = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."

_port = when_absent(port=443)  # SetDefaults_ServiceReference


def _names(names: JsonObject) -> JsonObject:
    """`SetDefaults_CustomResourceDefinitionSpec`."""
    kind = as_text(names.get("kind"))
    return when_zero(singular=kind.lower(), listKind=f"{kind}List")(names) if kind else names


def _stored_versions(definition: JsonObject) -> JsonObject:
    """The version that is stored was stored (`SetDefaults_CustomResourceDefinition`)."""
    if dig(definition, "status", "storedVersions"):
        return definition
    versions = as_list(dig(definition, "spec", "versions"))
    stored: list[Json] = [as_object(version).get("name") for version in versions if dig(version, "storage") is True][:1]
    return within("status", when_zero(storedVersions=stored))(definition) if stored else definition


RULES: Rules = {
    f"{_CRD}CustomResourceDefinition": in_order(
        within("spec", in_order(within("names", _names), when_absent(conversion={"strategy": "None"}))),
        _stored_versions,
    ),
    f"{_CRD}ServiceReference": _port,
    f"{_API}ServiceReference": _port,
}
