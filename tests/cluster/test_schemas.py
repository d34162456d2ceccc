"""The sources of merge schemas: the shipped table, definitions among files, and a server's OpenAPI documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.files.snapshot import SnapshotCluster
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.json import JsonObject
from scanner.model.resource import Kind
from scanner.mutate.openapi import read_schemas

SHIPPED = KnownSchemas(builtin_schemas())
POD = Kind("", "v1", "Pod", "pods", namespaced=True)
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}}}
"""


@pytest.mark.parametrize(
    "kind", [kind for kind in builtin_kinds() if kind.group in ("", "apps", "batch", "networking.k8s.io")]
)
def test_every_built_in_kind_that_is_stored_has_a_schema(kind: Kind) -> None:
    """The table has every stored kind of a server; reviews are not stored."""
    assert SHIPPED.schema(kind) is not None


@pytest.mark.parametrize(
    ("field", "associative", "keys"),
    [
        ("containers", True, ("name",)),
        ("topologySpreadConstraints", True, ("topologyKey", "whenUnsatisfiable")),
        ("hostAliases", True, ("ip",)),
        ("tolerations", False, ()),
    ],
)
def test_lists_of_pods_are_merged_as_documented(field: str, keys: tuple[str, ...], *, associative: bool) -> None:
    """The schemas have the list types and keys of the OpenAPI documents."""
    schema = SHIPPED.schema(POD)
    assert schema
    spec = schema.resolve(schema.root).map
    assert spec
    pod_spec = schema.resolve(spec.fields["spec"]).map
    assert pod_spec
    list_type = schema.resolve(pod_spec.fields[field]).list

    assert list_type
    assert (associative, keys) == (list_type.associative, list_type.keys)


def test_definitions_among_files_have_schemas(tmp_path: Path) -> None:
    """A custom resource is merged by its definition, and its metadata like those of any object."""
    (tmp_path / "crd.yaml").write_text(DEFINITION)
    schema = (
        SnapshotCluster([tmp_path]).schemas().schema(Kind("example.com", "v1", "Gadget", "gadgets", namespaced=True))
    )

    assert schema
    assert not schema.builtin
    root = schema.resolve(schema.root).map
    assert root
    assert {"apiVersion", "kind", "metadata", "spec"} == set(root.fields)


def test_a_document_without_schemas_gives_none() -> None:
    """A response that is no OpenAPI document gives no schemas."""
    documents: list[Any] = [{}, {"components": {}}, {"components": {"schemas": {"x": {"type": "object"}}}}]

    assert [{}, {}, {}] == [read_schemas(document, builtin=False) for document in documents]


def test_a_schema_may_refer_to_itself() -> None:
    """Types are resolved on use, so a schema may be recursive."""
    reference = {"$ref": "#/components/schemas/tree"}
    tree: JsonObject = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": reference}},
        "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Tree"}],
    }
    schema = read_schemas({"components": {"schemas": {"tree": tree}}}, builtin=False)["g", "v1", "Tree"]

    assert schema.resolve(schema.root).name == "tree"
