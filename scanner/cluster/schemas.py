"""Merge schemas without a server: the shipped table of the built-in kinds, and CustomResourceDefinitions in files.

Source of truth: the OpenAPI v3 documents of a 1.36 server (`schemas.json`, written by `scripts/generate_merge_schemas.py`), and
for custom resources what `apiextensions` publishes of a version's schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import orjson
from msgspec import Struct

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Kind
from scanner.mutate.openapi import Compactor
from scanner.mutate.schema import Conversion, Custom, DefinedVersions, Schema

_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class KnownSchemas:
    """Schemas by (group, version, kind)."""

    def __init__(self, schemas: Mapping[tuple[str, str, str], Schema]) -> None:
        self._schemas = schemas

    def schema(self, kind: Kind) -> Schema | None:
        """The schema of a kind, or None when there is none."""
        return self._schemas.get((kind.group, kind.version, kind.kind))

    def conversion(self, kind: Kind) -> Conversion:
        """The conversion of a definition's kind; files of another kind are left as they are."""
        schema = self.schema(kind)
        return find_conversion(schema.custom.versions if schema and schema.custom else None)


@cache
def builtin_schemas() -> Mapping[tuple[str, str, str], Schema]:
    """The schemas of the kinds that a Kubernetes 1.36 server has by itself."""
    table = _read_table()
    return {_split_name(name): Schema(root, table.types, table.names) for name, root in table.kinds.items()}


def read_custom_schemas(definition: JsonObject) -> Mapping[tuple[str, str, str], Schema]:
    """The schemas of the versions of a CustomResourceDefinition."""
    group = as_text(dig(definition, "spec", "group"))
    kind = as_text(dig(definition, "spec", "names", "kind"))
    version_documents, versions = as_list(dig(definition, "spec", "versions")), read_versions(definition)
    return {
        (group, as_text(dig(version, "name")), kind): _make_custom(version, versions) for version in version_documents
    }


def read_versions(definition: JsonObject) -> DefinedVersions | None:
    """The versions of a CustomResourceDefinition, None for a definition without a stored version."""
    version_documents = as_list(dig(definition, "spec", "versions"))
    stored = next((version for version in version_documents if dig(version, "storage") is True), None)
    if stored is None:
        return None
    return DefinedVersions(
        names=tuple(as_text(dig(version, "name")) for version in version_documents),
        stored=as_text(dig(stored, "name")),
        schema=as_object(dig(stored, "schema", "openAPIV3Schema")),
        relabels=dig(definition, "spec", "conversion", "strategy") in (None, "None"),
    )


def find_conversion(versions: DefinedVersions | None) -> Conversion:
    """The conversion of the versions of a definition; that of a server for a kind without one."""
    return "relabels" if versions is not None and versions.relabels else "server"


def _make_custom(version: Json, versions: DefinedVersions | None) -> Schema:
    table = _read_table()
    schema = as_object(dig(version, "schema", "openAPIV3Schema"))
    shape = as_object(Compactor(EMPTY).convert_schema(schema))
    fields = {**as_object(shape.get("f")), "apiVersion": "s", "kind": "s", "metadata": table.names.index(_METADATA)}
    custom = Custom(schema, has_status=dig(version, "subresources", "status") is not None, versions=versions)
    return Schema({**shape, "f": fields}, table.types, table.names, builtin=False, custom=custom)


def _split_name(name: str) -> tuple[str, str, str]:
    api_version, _, kind = name.rpartition("/")
    group, _, version = api_version.rpartition("/")
    return group, version, kind


class _SchemaTable(Struct, frozen=True):
    kinds: Mapping[str, int]
    names: Sequence[str]
    types: Sequence[Json]


@cache
def _read_table() -> _SchemaTable:
    table = orjson.loads(resources.files("scanner.cluster").joinpath("schemas.json").read_bytes())
    return _SchemaTable(table["kinds"], table["names"], table["types"])
