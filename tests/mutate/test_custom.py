"""Custom resources: defaults after every mutation, and the stored object.

kube-apiserver 1.36.0 decided every row.
"""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cluster.schemas import read_custom_schemas
from scanner.model.json import Json, JsonObject
from scanner.mutate import custom
from scanner.mutate.difference import find_changes
from scanner.mutate.native import RequestFault
from scanner.mutate.openapi import read_schemas
from scanner.mutate.schema import Custom
from scanner.mutate.storing import read_mutated, store_update

TEXT: Json = {"type": "string"}
DEEP: Json = {
    "type": "object",
    "default": {},
    "properties": {
        "x": {"type": "string", "default": "dx"},
        "e": {
            "type": "object",
            "properties": {"f": {"type": "object", "default": {"g": "G"}, "properties": {"g": TEXT}}},
        },
    },
}
ITEM: Json = {"type": "object", "properties": {"a": {"type": "string", "default": "A"}, "b": TEXT}}
FREE: Json = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"known": {"type": "object", "properties": {"k": {"type": "string", "default": "dk"}}}},
}
SPEC: dict[str, Json] = {
    "deep": {"type": "object", "properties": {"d": DEEP}},
    "size": {"type": "integer", "default": 1},
    "may": {"type": "string", "nullable": True},
    "may-default": {"type": "string", "nullable": True, "default": "nd"},
    "text": TEXT,
    "items": {"type": "array", "items": ITEM},
    "full-items": {"type": "array", "items": {**ITEM, "default": {"b": "item"}}},  # type: ignore[dict-item]
    "null-items": {"type": "array", "items": {**ITEM, "nullable": True}},  # type: ignore[dict-item]
    "texts": {"type": "object", "additionalProperties": TEXT},
    "maps": {"type": "object", "additionalProperties": {**ITEM, "default": {"b": "map"}}},  # type: ignore[dict-item]
    "free": FREE,
    "embedded": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object", "properties": {"v": {"type": "integer", "default": 3}}}},
    },
    "port": {"x-kubernetes-int-or-string": True},
}  # fmt: skip
SUBRESOURCES: dict[str, JsonObject] = {"v1": {"subresources": {"status": {}}}, "v2": {}}
DEFINITION: Any = {
    "spec": {
        "group": "example.com",
        "names": {"kind": "Thing"},
        "versions": [
            {
                "name": name,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}, "status": FREE}}},
                **more,
            }
            for name, more in SUBRESOURCES.items()
        ],
    }
}  # fmt: skip
SCHEMAS = read_custom_schemas(DEFINITION)
V1, V2 = SCHEMAS["example.com", "v1", "Thing"], SCHEMAS["example.com", "v2", "Thing"]


def thing(spec: Json = None, **more: Json) -> JsonObject:
    """A stored Thing."""
    given: Json = {"size": 1, "may-default": "nd"} if spec is None else spec
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "labels": {"a": "b"}}, "spec": given, **more}  # fmt: skip


def left_of(**spec: Json) -> list[str]:
    """The changes of a mutation of the spec that remain after storage."""
    before = thing()
    after = thing({"size": 1, "may-default": "nd", **spec})
    return [*map(str, find_changes(before, store_update(V1, before, read_mutated(V1, before, after))))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"deep": {}}, ['+ /spec/deep: {"d": {"x": "dx"}}']),
        ({"deep": {"d": None}}, ['+ /spec/deep: {"d": {"x": "dx"}}']),
        ({"deep": {"d": {"e": {}}}}, ['+ /spec/deep: {"d": {"e": {"f": {"g": "G"}}, "x": "dx"}}']),
        ({"size": None}, []),
        ({"text": None}, []),
        ({"may": None}, ["+ /spec/may: null"]),
        ({"may-default": None}, ['~ /spec/may-default: "nd" → null']),
        ({"unknown": 1}, []),
        ({"items": [{}, {"nope": 1}]}, ['+ /spec/items: [{"a": "A"}, {"a": "A"}]']),
        ({"full-items": [None]}, ['+ /spec/full-items: [{"b": "item", "a": "A"}]']),
        ({"null-items": [None, {}]}, ['+ /spec/null-items: [null, {"a": "A"}]']),
        ({"texts": {"a": None, "b": "c"}}, ['+ /spec/texts: {"b": "c"}']),
        ({"maps": {"m": None}}, ['+ /spec/maps: {"m": {"b": "map", "a": "A"}}']),
        ({"free": {"any": {"n": None}}}, ['+ /spec/free: {"any": {"n": null}}']),
        ({"free": {"known": {"unknown": 1}}}, ['+ /spec/free: {"known": {"k": "dk"}}']),
        (
            {"embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": None}, "nope": 1}, "spec": {}, "nope": 1}},
            ['+ /spec/embedded: {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": ""}}, "spec": {"v": 3}}'],
        ),
        ({"port": "http"}, ['+ /spec/port: "http"']),
        ({"text": [{"a": 1}]}, ["+ /spec/text: [{}]"]),
    ],
)  # fmt: skip
def test_what_a_patch_gives_is_pruned_and_defaulted(spec: dict[str, Json], expected: list[str]) -> None:
    """Pruning and defaults are recursive; a null stays only if it is allowed, else the default replaces it."""
    assert expected == left_of(**spec)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"a": "b", "n": None}}, {"a": "b", "n": ""}),
        ({"labels": {"a": 1}}, None),
        ({"labels": "text"}, None),
        ({"labels": {}}, None),
        ({"labels": {"a": "c"}, "unknown": 1, "uid": "other", "generation": 99}, {"a": "c"}),
    ],
)
def test_metadata_is_read_member_by_member(metadata: JsonObject, expected: Json) -> None:
    """A malformed member is dropped as a whole, and server-set members stay."""
    before = thing()
    stored_object: Any = store_update(
        V1, before, read_mutated(V1, before, {**before, "metadata": {"name": "t", **metadata}})
    )

    assert ({"name": "t"} if expected is None else {"name": "t", "labels": expected}) == stored_object["metadata"]


@pytest.mark.parametrize(
    ("schema", "was", "expected"), [(V1, None, None), (V1, {"x": 1}, {"x": 1}), (V2, None, {"x": 2}), (V2, {"x": 1}, {"x": 2})]
)  # fmt: skip
def test_a_status_that_is_a_subresource_is_not_changed(schema: Any, was: Json, expected: Json) -> None:
    """The next mutation reads the change, but the server never stores it."""
    before = thing(**({"status": was} if was else {}))
    after = read_mutated(schema, before, {**before, "status": {"x": 2}})

    assert ({"x": 2}, expected) == (after["status"], store_update(schema, before, after).get("status"))


def test_an_unknown_field_is_there_until_the_object_is_stored() -> None:
    """The server prunes last, and sets defaults after every mutation."""
    after: Any = read_mutated(V1, thing(), thing({"unknown": 1}))

    assert {"unknown": 1, "size": 1, "may-default": "nd"} == after["spec"]


def test_what_a_file_leaves_out_is_no_change() -> None:
    """The server sets the default in every request."""
    before = thing({"items": [{"b": "1"}, {"b": "2"}], "deep": {}})
    after = thing({"items": [{"b": "1"}, {"b": "3"}, {"b": "4"}], "deep": {}})
    stored_object = store_update(V1, before, read_mutated(V1, before, after))

    assert ['+ /spec/items/2: {"b": "4", "a": "A"}', '~ /spec/items/1/b: "2" → "3"'] == [
        *map(str, find_changes(before, stored_object))  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            {"apiVersion": 1, "kind": "Thing"},
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string",
        ),
        ({"apiVersion": "example.com/v1"}, "Object 'Kind' is missing in '{\"apiVersion\":\"example.com/v1\"}'"),
        (
            {"apiVersion": "t", "kind": "Thing"},
            'failed to convert object: /t, Kind=Thing is unstructured and is not suitable for converting to "example.com/v1"',
        ),
    ],
)  # fmt: skip
def test_a_document_of_another_version_ends_the_request(document: JsonObject, expected: str) -> None:
    """A JSON patch can write any version."""
    with pytest.raises(RequestFault) as refused:
        custom.decode_patched(None, document, thing(), str(thing()["apiVersion"]))

    assert f"Internal error occurred: {expected}" == str(refused.value)


def test_a_number_that_json_does_not_have_ends_the_request() -> None:
    """An apply configuration may have such a number."""
    with pytest.raises(RequestFault, match="json: unsupported value: -Inf"):
        custom.reject_unwritable({"a": [{"b": float("-inf")}]})


def test_the_paths_of_a_server_show_which_status_is_a_subresource() -> None:
    """The paths of the OpenAPI document have the subresource."""
    kind = {"group": "g", "version": "v1", "kind": "Thing"}
    own: Json = {
        "type": "object",
        "x-kubernetes-group-version-kind": [kind],
        "properties": {"spec": {"type": "object"}},
    }
    other: Json = {"type": "object", "x-kubernetes-group-version-kind": [{**kind, "kind": "Other"}]}
    path = "/apis/g/v1/namespaces/{namespace}/things/{name}/status"
    schemas = read_schemas(
        {
            "paths": {path: {"put": {"x-kubernetes-group-version-kind": kind}}},
            "components": {"schemas": {"thing": own, "other": other}},
        },
        builtin=False,
    )

    assert [Custom(own, has_status=True), Custom(other)] == [  # type: ignore[arg-type]
        schemas["g", "v1", name].custom for name in ("Thing", "Other")
    ]


def versions(**fields: tuple[Json, Json]) -> Custom:
    """Version v1 of a definition that stores v2: for each field its schemas in both versions, None where it is not defined."""
    names = ("v1", "v2")
    schemas = [
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            name: both[number] for name, both in fields.items() if both[number] is not None
        }}}}
        for number in range(2)
    ]  # fmt: skip
    written: Any = {
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing"},
            "versions": [
                {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}}
                for name, schema in zip(names, schemas, strict=True)
            ],
        }
    }
    found = read_custom_schemas(written)["example.com", "v1", "Thing"].custom
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (1, "string", ['spec.old: Invalid value: "integer": spec.old in body must be of type string: "integer"']),
        ("", "integer", ['spec.old: Invalid value: "string": spec.old in body must be of type integer: "string"']),
        (False, "string", ['spec.old: Invalid value: "boolean": spec.old in body must be of type string: "boolean"']),
        ([], "object", ['spec.old: Invalid value: "array": spec.old in body must be of type object: "array"']),
        ("x", "string", []),
        (1, "number", []),
        (2.0, "integer", []),
        (None, "string", []),
    ],
)
def test_a_value_that_is_not_stored_is_validated(value: Json, type_: str, expected: list[str]) -> None:
    """The version of the request has the field, the stored version has not."""
    custom_kind = versions(old=({"type": type_}, None), both=(TEXT, TEXT))
    assert expected == [*custom.list_wrong_types(custom_kind, thing({"old": value, "both": 1}))]
