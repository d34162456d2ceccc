"""The reading of CustomResourceDefinitions: served kinds, their order, the stored version, schemas and conversions."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cluster.definitions import (
    BrokenDefinition,
    builtin_kinds,
    builtin_version,
    is_definition,
    rank_version,
    read_definition,
    sort_by_registration,
)
from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, find_conversion, read_custom_schemas, read_versions
from scanner.model.resource import Kind
from scanner.mutate.versions import is_builtin
from tests.cluster.server import FakeApi, Reply, refusal

OLD, NEW = ({"type": "object", "properties": {name: {"type": "string"}}} for name in ("old", "new"))
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cogs.shop.example"
COGS = Kind("shop.example", "v1", "Cog", "cogs", namespaced=True)


def version(name: str, *, served: Any = True, storage: Any = False, schema: Any = OLD, **more: Any) -> dict[str, Any]:
    """A version of a definition."""
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: Any, **spec: Any) -> dict[str, Any]:
    """The definition of Cog."""
    names = {"kind": "Cog", "plural": "cogs", "singular": "cog"}
    fields = {"group": "shop.example", "scope": "Namespaced", "names": names, "versions": list(versions), **spec}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cogs.shop.example"},
        "spec": fields,
    }


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}, True),
        ({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition"}, False),
        ({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList"}, False),
        ({"kind": "CustomResourceDefinition"}, False),
        ({}, False),
    ],
)
def test_a_definition_is_known_by_version_and_kind(document: dict[str, Any], *, expected: bool) -> None:
    """Version v1beta1 was last served by Kubernetes 1.21."""
    assert expected == is_definition(document)


def test_the_served_versions_are_kinds_and_the_preferred_one_is_first() -> None:
    """The stored version need not be served, nor preferred; a repeated version counts once."""
    document = definition(
        version("v1beta1"), version("v1", served=False, storage=True), version("v2"), version("v2"), version("v2alpha1")
    )
    assert ["v2", "v1beta1", "v2alpha1"] == [kind.version for kind in read_definition(document).kinds]


@pytest.mark.parametrize(("scope", "namespaced"), [("Namespaced", True), ("Cluster", False)])
def test_the_scope_of_a_definition_is_that_of_its_kinds(scope: str, *, namespaced: bool) -> None:
    """Group, kind and plural are those of the definition, too."""
    (kind,) = read_definition(definition(version("v1"), scope=scope)).kinds
    assert Kind("shop.example", "v1", "Cog", "cogs", namespaced) == kind


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"group": ""}, "spec.group: Required value"),
        ({"group": None}, "spec.group: Required value"),
        ({"group": 7}, "spec.group: Required value"),
        ({"names": {}}, "spec.names.kind: Required value"),
        ({"names": "cogs"}, "spec.names.kind: Required value"),
        ({"names": {"kind": "Cog"}}, "spec.names.plural: Required value"),
        ({"scope": ""}, "spec.scope: Required value"),
        ({"scope": "namespaced"}, 'spec.scope: Unsupported value: "namespaced": write Namespaced or Cluster'),
        ({"versions": []}, "spec.versions: Required value: no version of it is served"),
        ({"versions": None}, "spec.versions: Required value: no version of it is served"),
        ({"versions": {"v1": {}}}, "spec.versions: Required value: no version of it is served"),
        ({"versions": ["v1", None, 7]}, "spec.versions: Required value: no version of it is served"),
        ({"versions": [version("v1", served="true")]}, "spec.versions: Required value: no version of it is served"),
        ({"versions": [version("", served=True)]}, "spec.versions: Required value: no version of it is served"),
    ],
)
def test_a_definition_that_defines_no_kind_names_the_field(spec: dict[str, Any], why: str) -> None:
    """As the API server would refuse it."""
    with pytest.raises(BrokenDefinition) as caught:
        read_definition(definition(version("v1"), **spec))
    assert why == str(caught.value)


@pytest.mark.parametrize("document", [{}, {"spec": None}, {"spec": []}, {"spec": "x"}])
def test_a_definition_without_a_spec_is_broken(document: dict[str, Any]) -> None:
    """The first required field is named."""
    with pytest.raises(BrokenDefinition, match=r"spec\.group: Required value"):
        read_definition(document)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["v1", "v2"], ["v2", "v1"]),
        (["v9", "v10"], ["v10", "v9"]),
        (["v1beta2", "v1beta10", "v1"], ["v1", "v1beta10", "v1beta2"]),
        (["v2alpha1", "v1beta1"], ["v1beta1", "v2alpha1"]),
        (["v1alpha1", "v2alpha1", "v2beta1"], ["v2beta1", "v2alpha1", "v1alpha1"]),
        (["foo10", "foo1", "v1"], ["v1", "foo1", "foo10"]),
        (["v1gamma1", "v1", "V2", "v"], ["v1", "V2", "v", "v1gamma1"]),
        (["v12345678901234567890", "v1"], ["v1", "v12345678901234567890"]),
        (["v2024-01-01", "v1alpha1"], ["v1alpha1", "v2024-01-01"]),
    ],
)
def test_versions_have_the_order_of_kubernetes(versions: list[str], expected: list[str]) -> None:
    """Stable before beta before alpha, higher numbers first, other names last by the alphabet."""
    assert expected == sorted(versions, key=rank_version)


def test_kinds_are_registered_by_group_and_preferred_version() -> None:
    """Each once."""
    kinds = [COGS, Kind("a.example", "v1", "Zed", "zeds", namespaced=True), Kind(*_fields("v2")), COGS]
    assert [("a.example", "v1"), ("shop.example", "v2"), ("shop.example", "v1")] == [
        (kind.group, kind.version) for kind in sort_by_registration(kinds)
    ]


def _fields(name: str) -> tuple[str, str, str, str, bool]:
    return COGS.group, name, COGS.kind, COGS.plural, COGS.namespaced


def test_the_stored_version_has_its_schema() -> None:
    """It says how an object is stored, for every requested version."""
    versions = read_versions(
        definition(version("v1"), version("v2", storage=True, schema=NEW), version("v3", served=False))
    )
    assert versions
    assert (("v1", "v2", "v3"), "v2", NEW) == (versions.names, versions.stored, versions.schema)


@pytest.mark.parametrize(
    "document",
    [definition(version("v1")), definition(version("v1", storage="true")), definition(), {}, {"spec": {"versions": 3}}],
)
def test_a_definition_without_a_stored_version_has_no_versions(document: dict[str, Any]) -> None:
    """Nothing is known about its conversions."""
    assert read_versions(document) is None


def test_every_version_has_the_schema_and_the_subresources_of_its_own() -> None:
    """A version that is not served has a schema as well: objects may be stored in it."""
    document = definition(
        version("v1", schema=OLD, subresources={"status": {}}), version("v2", served=False, storage=True, schema=NEW)
    )
    schemas = read_custom_schemas(document)
    customs = {name: schema.custom for (_, name, _), schema in schemas.items()}

    assert {"v1": (OLD, True), "v2": (NEW, False)} == {
        name: (custom.schema, custom.has_status) for name, custom in customs.items() if custom
    }
    assert {("shop.example", "v1", "Cog"), ("shop.example", "v2", "Cog")} == schemas.keys()


@pytest.mark.parametrize("schema", [None, {}, {"openAPIV3Schema": None}, {"openAPIV3Schema": []}, "text"])
def test_a_version_without_a_schema_has_an_empty_one(schema: Any) -> None:
    """A definition in files may lack what the API requires."""
    (read,) = read_custom_schemas(definition({**version("v1", storage=True), "schema": schema})).values()
    assert read.custom
    assert {} == read.custom.schema


@pytest.mark.parametrize(
    ("conversion", "expected"),
    [
        ({}, "relabels"),
        ({"conversion": None}, "relabels"),
        ({"conversion": {}}, "relabels"),
        ({"conversion": {"strategy": "None"}}, "relabels"),
        ({"conversion": {"strategy": "Webhook", "webhook": {}}}, "server"),
        ({"conversion": {"strategy": "none"}}, "server"),
    ],
)
def test_only_the_strategy_none_changes_the_apiversion_alone(conversion: dict[str, Any], expected: str) -> None:
    """It is the default of the API."""
    document = definition(version("v1", storage=True), **conversion)
    schemas = KnownSchemas(read_custom_schemas(document))
    assert (expected, expected) == (find_conversion(read_versions(document)), schemas.conversion(COGS))


def test_a_kind_without_a_definition_is_converted_by_a_server() -> None:
    """Files leave such objects as they are."""
    assert "server" == KnownSchemas(builtin_schemas()).conversion(COGS)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(definition(version("v1", storage=True))), "relabels"),
        (Reply(definition(version("v1", storage=True), conversion={"strategy": "Webhook"})), "server"),
        (refusal(404, "not found"), "server"),
        (refusal(403, "forbidden"), "unknown"),
        (refusal(500, "etcdserver: leader changed"), "unknown"),
        (Reply(definition(version("v1"))), "unknown"),
        (Reply(b"[" * 10_000), "unknown"),
        (Reply([]), "unknown"),
    ],
)
def test_a_cluster_tells_its_conversion_in_the_definition(
    api: FakeApi, cluster: LiveCluster, reply: Reply, expected: str
) -> None:
    """A kind without a definition belongs to an aggregated API server. The definition is read once."""
    api.says(PATH, reply)
    schemas = cluster.schemas()
    before = schemas.conversion(COGS)
    requests = len(api.requests)

    assert (expected, expected, requests) == (before, schemas.conversion(COGS), len(api.requests))


@pytest.mark.parametrize(
    ("group", "name", "kind", "expected"),
    [
        ("", "v1", "Pod", True),
        ("autoscaling", "v1", "HorizontalPodAutoscaler", True),
        ("resource.k8s.io", "v1beta1", "ResourceClaim", True),
        ("gateway.networking.k8s.io", "v1", "HTTPRoute", False),
        ("snapshot.storage.k8s.io", "v1", "VolumeSnapshot", False),
        ("apps.example.com", "v1", "Deployment", False),
        ("networking.x-k8s.io", "v1", "Ingress", False),
        ("apps", "v3", "Deployment", False),
    ],
)
def test_a_built_in_kind_is_known_by_its_go_type(group: str, name: str, kind: str, *, expected: bool) -> None:
    """Definitions may be in groups that end like those of Kubernetes."""
    assert expected == is_builtin(Kind(group, name, kind, f"{kind.lower()}s", namespaced=True))


def test_every_kind_of_the_shipped_table_that_policies_match_is_built_in() -> None:
    """The table is that of a server without definitions; only kinds of the machinery itself have no Go type here."""
    machinery = {"apiextensions.k8s.io", "apiregistration.k8s.io", "internal.apiserver.k8s.io"}
    assert [] == [kind for kind in builtin_kinds() if kind.group not in machinery and not is_builtin(kind)]
    assert builtin_version().startswith("v1.")
