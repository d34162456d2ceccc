"""The changes that the API server makes to a custom resource: defaults after every mutation, and pruning for storage.

Source of truth, in apiextensions-apiserver 1.36: `structuraldefaulting.Default`, `structuralpruning.Prune`,
`PruneNonNullableNullsWithoutDefaults`, `schemaobjectmeta.Coerce` and `customResourceStrategy.PrepareForUpdate`.
Nothing is changed in place: an unchanged part remains the same object.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import is_
from typing import Final

import orjson

from scanner.model.json import EMPTY, Json, JsonObject, as_object, as_text, dig
from scanner.mutate.decoding import INTERNAL, DecoderEnded, InnerDecoder, require_identity
from scanner.mutate.native import RequestFault
from scanner.mutate.registry import clear_metadata, keep_metadata
from scanner.mutate.rewriting import Rewriting
from scanner.mutate.schema import Custom, Schema

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_OF_EVERY_KIND: Final = ("apiVersion", "kind", "metadata")


def decode_patched(custom: Custom | None, document: Json, live: JsonObject, target: str) -> JsonObject:
    """The document that a JSON patch produced. Raises RequestFault for a document whose kind or version cannot be read.

    Another version of the definition is converted to `target`, the apiVersion of the request, in the end
    (`crConverter.ConvertToVersion`).
    """
    decoded_object = EMPTY if document is None else require_identity(document)
    if not decoded_object.get("kind"):
        text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()
        raise RequestFault(f"{INTERNAL}Object 'Kind' is missing in '{text}'")
    api_version, live_version = as_text(decoded_object.get("apiVersion")), as_text(live.get("apiVersion"))
    if api_version == live_version:
        return decoded_object
    group, _, version = api_version.rpartition("/")
    if group != live_version.rpartition("/")[0]:
        kind = f"{group}/{version}, Kind={decoded_object['kind']}"
        fault = f'{kind} is unstructured and is not suitable for converting to "{target}"'
    elif custom and custom.versions and version in custom.versions.names:
        return {**decoded_object, "apiVersion": live_version}
    else:
        fault = f"request to convert CR from an invalid group/version: {api_version}"
    raise RequestFault(f"{INTERNAL}failed to convert object: {fault}")


def reject_unwritable(value: object) -> None:
    """Raise RequestFault for a number that JSON cannot hold; an apply configuration may contain such a number."""
    if isinstance(value, float) and not math.isfinite(value):
        raise RequestFault(
            f"json: unsupported value: {'NaN' if math.isnan(value) else f'{value:+}'.replace('inf', 'Inf')}"
        )
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            reject_unwritable(part)


def fill_defaults(custom: Custom, document: JsonObject) -> JsonObject:
    """The object as the next mutation reads it: the defaults of its schema are filled in, nothing is pruned yet.

    Mirrors `structuraldefaulting.Default` of apiextensions-apiserver.
    """
    return as_object(_fill_defaults(document, custom.schema))


def store_custom(custom: Custom, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object as the API server reads it after the mutated object `after` has replaced the stored object `before`.

    Fields that the schema does not define are removed (`structuralpruning.Prune`), and so are changes of the status where
    status is a subresource. The schema of the stored version comes first: it also sets the defaults. Then that of the version of
    the request prunes the object once more (`schemaCoercingConverter`).
    """
    unchangeable = ("status",) if custom.has_status else ()
    schema = custom.schema if custom.versions is None else custom.versions.schema
    document = _restore_fields(before, _drop_untyped(after, schema), unchangeable)
    typed = {**document, "metadata": read_object_meta(document.get("metadata"))}
    completed = as_object(_fill_defaults(keep_metadata(before, typed), schema))
    return (
        completed
        if schema == custom.schema
        else _restore_fields(before, _drop_untyped(completed, custom.schema), unchangeable)
    )


def prepare_custom(custom: Custom, before: JsonObject | None, after: JsonObject) -> JsonObject:
    """The custom resource of a request as validation reads it, given the object that mutating admission leaves; new without `before`.

    Where status is a subresource, the request does not set it. Nothing is pruned yet: that happens when the object is stored.
    Mirrors `PrepareForCreate` and `PrepareForUpdate` of `customResourceStrategy`.
    """
    kept = clear_metadata(after) if before is None else keep_metadata(before, after)
    return _restore_fields(before or EMPTY, kept, ("status",)) if custom.has_status else kept


def list_wrong_types(custom: Custom, after: JsonObject) -> Iterator[str]:
    """The errors of a request whose object has values of wrong types in fields that only its own version defines.

    Such fields are not stored, so that the object would seem unchanged; but the server validates the object of the request first.
    """
    if custom.versions is not None and custom.versions.schema != custom.schema:
        yield from _list_wrong_types(after, custom.schema, custom.versions.schema, "")


def _list_wrong_types(value: Json, schema: JsonObject | None, other: JsonObject | None, path: str) -> Iterator[str]:
    if schema is None or schema == other:
        return
    if isinstance(value, dict):
        for name, member in value.items():
            schema_of_member, others = _get_field_schema(schema, name), _get_field_schema(other, name)
            place = f"{path}.{name}".removeprefix(".")
            if schema_of_member is not None and others is None and not _has_type(member, schema_of_member):
                type_, word = schema_of_member["type"], _name_type(member)
                shown = f'{place} in body must be of type {type_}: "{word}"'
                yield f'{place}: Invalid value: "{word}": {shown}'
            else:
                yield from _list_wrong_types(member, schema_of_member, others, place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _list_wrong_types(item, _get_item_schema(schema), _get_item_schema(other), f"{path}[{index}]")


def _has_type(value: Json, schema: JsonObject) -> bool:
    """Return whether a value has the type of its schema; True for a schema that accepts several. Nulls are dropped before."""
    type_name = schema.get("type")
    return (
        value is None
        or type_name is None
        or type_name == _name_type(value)
        or (type_name, _name_type(value)) == ("number", "integer")
    )


def _name_type(value: Json) -> str:
    """The type of a value as validation names it."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case None:
            return "null"
        case _:
            return "array"


def _drop_untyped(document: JsonObject, schema: JsonObject) -> Json:
    """The object without the fields that its schema does not define or whose values it rejects (`unstructuredSchemaCoercer`)."""
    return _coerce_embedded(_drop_nulls(_prune(document, schema, root=True), schema), schema)


def _restore_fields(before: JsonObject, after: Json, names: Sequence[str]) -> JsonObject:
    """An object with some fields restored."""
    document = as_object(after)
    earlier_fields = {name: before[name] for name in names if name in before}
    return {**{name: value for name, value in document.items() if name not in names}, **earlier_fields}


def _get_field_schema(schema: JsonObject | None, name: str) -> JsonObject | None:
    """The schema of a member: of a property, or of additional properties. A schema that allows anything gives none for parts."""
    properties = as_object(dig(schema, "properties"))
    member = properties[name] if name in properties else dig(schema, "additionalProperties")
    # A published schema refers to another definition for metadata that the definition itself does not describe.
    return member if isinstance(member, Mapping) and not (name == "metadata" and "allOf" in member) else None


def _get_item_schema(schema: JsonObject | None) -> JsonObject | None:
    items = dig(schema, "items")
    return items if isinstance(items, Mapping) else None


def _is_declared(schema: JsonObject, name: str) -> bool:
    return name in as_object(schema.get("properties")) or schema.get("additionalProperties") not in (None, False)


def _rejects_null(schema: JsonObject | None) -> bool:
    return schema is not None and schema.get("nullable") is not True


def _fill_defaults(value: Json, schema: JsonObject | None) -> Json:
    if schema is None:
        return value
    if isinstance(value, dict):
        return _fill_object(value, schema)
    if isinstance(value, list):
        items = _get_item_schema(schema)
        return _keep_same([_fill_defaults(_replace_null(item, items), items) for item in value], value)
    return value


def _fill_object(value: dict[str, Json], schema: JsonObject) -> Json:
    properties = as_object(schema.get("properties"))
    absent_defaults = {
        name: default
        for name, member_schema in properties.items()
        if name not in value and (default := dig(member_schema, "default")) is not None
    }
    members = {**value, **absent_defaults}
    filled: dict[str, Json] = {}
    for name, member in members.items():
        schema_of_member = _get_field_schema(schema, name)
        filled[name] = _fill_defaults(_replace_null(member, schema_of_member), schema_of_member)
    return _keep_same(filled, value)


def _replace_null(value: Json, schema: JsonObject | None) -> Json:
    """A value, or the default in place of a null that the schema does not allow."""
    return dig(schema, "default") if value is None and _rejects_null(schema) else value


def _prune(value: Json, schema: JsonObject | None, *, root: bool = False) -> Json:
    if schema is not None and schema.get(_PRESERVE) is True:
        return _prune_inside(value, schema, root=root)
    if isinstance(value, dict):
        defined = {name: member for name, member in value.items() if _is_kept(schema, name, root=root)}
        return _keep_same(
            {name: _prune_member(member, schema, name, root=root) for name, member in defined.items()}, value
        )
    if isinstance(value, list):
        return _keep_same([_prune(item, _get_item_schema(schema)) for item in value], value)
    return value


def _prune_inside(value: Json, schema: JsonObject | None, *, root: bool = False) -> Json:
    """Prune the members that a schema names where it accepts other members too."""
    if schema is None:
        return value
    if isinstance(value, dict):
        pruned = {
            name: _prune_member(member, schema, name, root=root) if _is_declared(schema, name) else member
            for name, member in value.items()
        }
        return _keep_same(pruned, value)
    if isinstance(value, list):
        return _keep_same([_prune_inside(item, _get_item_schema(schema)) for item in value], value)
    return value


def _is_kept(schema: JsonObject | None, name: str, *, root: bool) -> bool:
    return _is_type_or_metadata(schema, name, root=root) or (schema is not None and _is_declared(schema, name))


def _prune_member(value: Json, schema: JsonObject | None, name: str, *, root: bool) -> Json:
    return value if _is_type_or_metadata(schema, name, root=root) else _prune(value, _get_field_schema(schema, name))


def _is_type_or_metadata(schema: JsonObject | None, name: str, *, root: bool) -> bool:
    return name in _OF_EVERY_KIND and (root or dig(schema, _EMBEDDED) is True)


def _drop_nulls(value: Json, schema: JsonObject | None) -> Json:
    """The object without members that are null, not nullable and without a default."""
    if isinstance(value, dict):
        members = {
            name: member
            for name, member in value.items()
            if member is not None or _may_stay(_get_field_schema(schema, name))
        }
        return _keep_same(
            {name: _drop_nulls(member, _get_field_schema(schema, name)) for name, member in members.items()}, value
        )
    if isinstance(value, list):
        return _keep_same([_drop_nulls(item, _get_item_schema(schema)) for item in value], value)
    return value


def _may_stay(schema: JsonObject | None) -> bool:
    return not _rejects_null(schema) or dig(schema, "default") is not None


def _coerce_embedded(value: Json, schema: JsonObject | None) -> Json:
    """The object with the metadata of embedded objects as their Go type writes it."""
    if schema is None:
        return value
    if isinstance(value, list):
        return _keep_same([_coerce_embedded(item, _get_item_schema(schema)) for item in value], value)
    if not isinstance(value, dict):
        return value
    coerced = {name: _coerce_embedded(member, _get_field_schema(schema, name)) for name, member in value.items()}
    if schema.get(_EMBEDDED) is True and isinstance(value.get("metadata", ""), dict | None):
        coerced["metadata"] = read_object_meta(value["metadata"], keeps_malformed=True)
    return _keep_same(coerced, value)


def _keep_same(changed: Json, value: Json) -> Json:
    """The old value where nothing in it has changed, so that its identity is kept."""
    if isinstance(changed, dict) and isinstance(value, dict):
        return (
            value
            if len(changed) == len(value)
            and all(member is value.get(name, changed) for name, member in changed.items())
            else changed
        )
    is_same = isinstance(changed, list) and isinstance(value, list) and all(map(is_, changed, value))
    return value if is_same else changed


# The metadata of a custom resource, or of an object inside one, as its Go type reads and writes it.
#
# Source of truth: `schemaobjectmeta.GetObjectMetaWithOptions`, which reads metadata member by member when it cannot
# be read as a whole, and the JSON tags of `metav1.ObjectMeta`.

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_TEXTS: Final[Json] = {"v": "s"}
_OWNER: Final[Json] = {
    "f": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), "s"),
        **dict.fromkeys(("blockOwnerDeletion", "controller"), "b"),
    }
}
_ENTRY: Final[Json] = {
    "f": {
        **dict.fromkeys(("apiVersion", "fieldsType", "manager", "operation", "subresource"), "s"),
        "time": "u",
        "fieldsV1": "*",
    }
}
_METADATA: Final[Json] = {
    "f": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), "s"),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), "l"),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), "u"),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"e": "s"},
        "ownerReferences": {"e": 1},
        "managedFields": {"e": 2},
    }
}
_SCHEMA: Final = Schema(
    0, (_METADATA, _OWNER, _ENTRY), (f"{_META}ObjectMeta", f"{_META}OwnerReference", f"{_META}ManagedFieldsEntry")
)


def read_object_meta(metadata: Json, *, keeps_malformed: bool = False) -> JsonObject:
    """The metadata without unknown members.

    Malformed members are dropped too, unless validation still has to reject them (`keeps_malformed`).
    """
    original = metadata if isinstance(metadata, Mapping) else EMPTY
    members: dict[str, Json] = {}
    for name, value in original.items():
        members.update(_read_member(name, value, keeps_malformed=keeps_malformed))
    return original if members == original else members


def _read_member(name: str, value: Json, *, keeps_malformed: bool) -> JsonObject:
    """The stored form of a member; nothing for a member that is unknown or empty."""
    member = {name: value}
    try:
        return Rewriting(_SCHEMA, InnerDecoder()).rewrite(member, EMPTY)
    except DecoderEnded:
        return member if keeps_malformed else EMPTY
