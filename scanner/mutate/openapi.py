"""Merge schemas out of OpenAPI v3 documents.

Mirrors `kube-openapi/pkg/schemaconv`: list types and map keys, patch strategies where there are none, atomic maps, free-form
objects. The result is the compact JSON of `scanner.mutate.schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.mutate.schema import Custom, Schema

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_KINDS = "x-kubernetes-group-version-kind"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_NUMBERS = {"int32": "i", "int64": "l"}


def read_kinds(document: JsonObject) -> dict[tuple[str, str, str], str]:
    """Definition names by (group, version, kind), of the definitions that describe one kind."""
    definitions = {}
    for name, definition in as_object(dig(document, "components", "schemas")).items():
        kinds = as_list(dig(definition, _KINDS))
        if len(kinds) == 1:
            group, version, kind = (as_text(dig(kinds[0], part)) for part in ("group", "version", "kind"))
            definitions[group, version, kind] = name
    return definitions


class Compactor:
    """A converter of definitions into compact types: each definition once, numbered in the order of the first reference."""

    def __init__(self, definitions: Mapping[str, Json]) -> None:
        self._definitions = definitions
        self._numbers: dict[str, int] = {}
        self.types: list[Json] = []
        self.names: list[str] = []

    def get_number(self, name: str) -> int:
        """The number of a definition."""
        if name not in self._numbers:
            self._numbers[name] = number = len(self.types)
            self.types.append(None)
            self.names.append(name)
            self.types[number] = self._convert_definition(name)
        return self._numbers[name]

    def convert_schema(self, schema: JsonObject, *, preserve: bool = False) -> Json:
        """A schema in place: the element of a list, a field, the schema of a custom resource."""
        reference = _get_reference(schema)
        if not reference:
            return self._convert_inline(schema, preserve=preserve)
        number = self.get_number(reference)
        map_type = schema.get("x-kubernetes-map-type")
        return {"r": number, "x": map_type == "atomic"} if map_type else number

    def _convert_definition(self, name: str) -> Json:
        if name == _QUANTITY:
            return "q"
        if name == _RAW_EXTENSION:
            return "*"
        return self._convert_inline(as_object(self._definitions.get(name)), preserve=False)

    def _convert_inline(self, schema: JsonObject, *, preserve: bool) -> Json:
        preserve = preserve or schema.get(_PRESERVE) is True
        match schema.get("type"):
            case "object":
                return self._convert_object(schema, preserve=preserve)
            case "array":
                return self._convert_array(schema, preserve=preserve)
            case "string":
                return "u" if as_text(schema.get("format")) not in ("", "byte") else "s"
            case "integer" | "number":
                return _NUMBERS.get(as_text(schema.get("format")), "n")
            case "boolean":
                return "b"
            case _:
                return self._convert_anything(schema, preserve=preserve)

    def _convert_anything(self, schema: JsonObject, *, preserve: bool) -> Json:
        shape = self._convert_object(schema, preserve=preserve)
        return "?" if shape == {"v": "?"} else {**as_object(shape), "a": True}

    def _convert_object(self, schema: JsonObject, *, preserve: bool) -> Json:
        properties = {name: as_object(member) for name, member in as_object(schema.get("properties")).items()}
        fields = {name: self.convert_schema(member, preserve=preserve) for name, member in properties.items()}
        defaults = {name: member["default"] for name, member in properties.items() if "default" in member}
        parts: dict[str, Json] = {
            "f": fields,
            "v": self._convert_others(schema, preserve=preserve),
            "d": defaults,
            "w": _list_always_written(schema, defaults),
            "n": [name for name, member in properties.items() if member.get("nullable") is True],
            "x": schema.get("x-kubernetes-map-type") == "atomic",
        }
        return {key: part for key, part in parts.items() if part}

    def _convert_others(self, schema: JsonObject, *, preserve: bool) -> Json:
        """The schema of members that are not properties."""
        match schema.get("additionalProperties"):
            case None:
                return "?" if preserve or not schema.get("properties") else None
            case bool(allowed):
                return "?" if allowed else None
            case other:
                return self.convert_schema(as_object(other), preserve=preserve)

    def _convert_array(self, schema: JsonObject, *, preserve: bool) -> Json:
        items = schema.get("items")
        element = "*" if items is None else self.convert_schema(as_object(items), preserve=preserve)
        keys = _get_merge_keys(schema)
        return {"e": element} if keys is None else {"e": element, "k": keys}


def _list_always_written(schema: JsonObject, defaults: JsonObject) -> list[Json]:
    """The fields that the API server writes even when they are empty: required fields, and those whose default implies it."""
    with_zero_default = {name for name, default in defaults.items() if default in ("", 0, False)}
    return [*sorted(with_zero_default.union(texts(schema.get("required"))))]


def _get_reference(schema: JsonObject) -> str:
    """The definition that a schema refers to, directly or by the only entry of its allOf."""
    reference = as_text(schema.get("$ref"))
    if not reference and "allOf" in schema:
        alternatives = as_list(schema["allOf"])
        reference = as_text(dig(alternatives[0], "$ref")) if len(alternatives) == 1 else ""
    return reference.rpartition("/")[2]


def _get_merge_keys(schema: JsonObject) -> list[Json] | None:
    """The keys of a merged list, an empty list for a set, None for an atomic list."""
    list_type = schema.get("x-kubernetes-list-type")
    if list_type is not None:
        keys: list[Json] = list(texts(schema.get("x-kubernetes-list-map-keys")))
        return {"set": [], "map": keys}.get(as_text(list_type))
    if schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        key = as_text(schema.get("x-kubernetes-patch-merge-key"))
        return [key] if key else []
    return None


def read_schemas(document: JsonObject, *, builtin: bool) -> dict[tuple[str, str, str], Schema]:
    """The merge schemas of a group version's kinds by (group, version, kind), out of its OpenAPI v3 document."""
    definitions = as_object(dig(document, "components", "schemas"))
    compactor = Compactor(definitions)
    kinds = read_kinds(document)
    roots = {key: compactor.get_number(name) for key, name in kinds.items()}
    with_status = frozenset() if builtin else frozenset(_list_kinds_with_status(document))
    customs = (
        {}
        if builtin
        else {key: _read_custom(definitions.get(name), has_status=key in with_status) for key, name in kinds.items()}
    )
    return {
        key: Schema(root, compactor.types, compactor.names, builtin, customs.get(key)) for key, root in roots.items()
    }


def _read_custom(definition: Json, *, has_status: bool) -> Custom | None:
    """A custom resource's schema, which is self-contained; a schema with references belongs to an aggregated API server."""
    schema = as_object(definition)
    fields = as_object(schema.get("properties"))
    alone = not any(
        _get_reference(as_object(member_schema)) for name, member_schema in fields.items() if name != "metadata"
    )
    return Custom(schema, has_status) if alone else None


def _list_kinds_with_status(document: JsonObject) -> Iterator[tuple[str, str, str]]:
    """The kinds that have a separate path for their status."""
    for path, operations in as_object(document.get("paths")).items():
        kind = as_object(dig(operations, "put", _KINDS))
        if path.endswith("/{name}/status") and kind:
            yield as_text(kind.get("group")), as_text(kind.get("version")), as_text(kind.get("kind"))
