"""Objects in the Go types of their kinds: as decoded by Go (`scripts/record_go_answers.py`), and as stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import JsonObject
from scanner.mutate.decoding import decode_configuration, decode_strictly
from scanner.mutate.native import PatchFault, RequestFault
from scanner.mutate.openapi import read_schemas
from scanner.mutate.operations import PatchOperation, apply, is_same_json
from scanner.mutate.schema import Schema

FOLDER = Path(__file__).parent
RECORDED = json.loads((FOLDER / "go_answers.json").read_text(encoding="utf-8"))
WAYS: dict[str, Callable[[Schema, JsonObject, JsonObject], JsonObject]] = {
    "json": decode_strictly,
    "merge": decode_configuration,
}


def schema_of(document: Any) -> Schema:
    """The schema of an object's kind."""
    group, _, version = document["apiVersion"].rpartition("/")
    return builtin_schemas()[group, version, document["kind"]]


def changed(document: Any, path: str, value: Any) -> Any:
    """The object with a value at a path, new or replaced."""
    try:
        return apply([PatchOperation("replace", path, value)], document)
    except PatchFault:
        return apply([PatchOperation("add", path, value)], document)


def without(document: Any, path: str) -> Any:
    """The object without the value at a path."""
    try:
        return apply([PatchOperation("remove", path)], document)
    except PatchFault:
        return document


def rows(answer: str) -> Any:
    """The recorded results that are errors, or those that are not."""
    return [pytest.param(row, id=f"{row['way']}-{row['kind']}") for row in RECORDED["answers"] if answer in row]


@pytest.mark.parametrize("row", rows("written"))
def test_an_object_is_written_back_as_go_writes_it(row: Any) -> None:
    """Empty values, zeros, nulls, quantities, times and bytes are written as by the Go type."""
    live, path = RECORDED["objects"][row["kind"]], row["path"]
    expected = changed(live, path, row["written"][0]) if row["written"] else without(live, path)
    decoded_object = WAYS[row["way"]](schema_of(live), changed(live, path, row["value"]), live)
    assert is_same_json(expected, decoded_object)


@pytest.mark.parametrize("row", rows("error"))
def test_a_value_that_go_does_not_decode_has_its_error(row: Any) -> None:
    """An undecodable JSON patch ends the request; an undecodable apply configuration is a fault of the policy."""
    live = RECORDED["objects"][row["kind"]]
    with pytest.raises(PatchFault) as refused:
        WAYS[row["way"]](schema_of(live), changed(live, row["path"], row["value"]), live)
    expected = f"Internal error occurred: {row['error']}" if row["way"] == "json" else row["error"]
    assert expected == str(refused.value)
    assert isinstance(refused.value, RequestFault) is (row["way"] == "json")


SECRET: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "data": {"a": "aGk="},
    "type": "Opaque",
}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "r"},
    "rules": [{"verbs": ["get"], "resources": ["pods"], "apiGroups": [""]}],
}
TEMPLATE = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "t"},
    "template": {
        "metadata": {"creationTimestamp": None, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c"}]},
    },
}


@pytest.mark.parametrize(
    ("document", "path", "value", "expected"),
    [
        (SECRET, "/data/a", None, ""),
        (SECRET, "/data/a", [], ""),
        (ROLE, "/rules", [], None),
        (ROLE, "/rules/0/verbs", [], None),
        (TEMPLATE, "/template/metadata", {"labels": {"a": "b"}}, {"creationTimestamp": None, "labels": {"a": "b"}}),
        (TEMPLATE, "/template/spec/containers/0", {"name": "c"}, {"name": "c"}),
        (TEMPLATE, "/template/spec/containers/0", {"name": "d"}, {"name": "d", "resources": {}}),
    ],
)
def test_what_is_stored_differs_from_what_was_decoded(document: Any, path: str, value: Any, expected: Any) -> None:
    """The storage keeps no empty list; a stored struct shows the fields that its server writes."""
    decoded_object: Any = decode_strictly(schema_of(document), changed(document, path, value), document)
    for step in path.split("/")[1:]:
        decoded_object = decoded_object[int(step)] if isinstance(decoded_object, list) else decoded_object[step]
    assert is_same_json(expected, decoded_object)


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        ("Gone", "v1", 'no kind "Gone" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
        ("Secret", "v2", 'no kind "Secret" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'),
        ("Pod", "v1", "failed to convert object: converting (v1.Pod) to (v1.Secret): unknown conversion"),
    ],
)
def test_an_object_stays_of_its_kind(kind: str, version: str, expected: str) -> None:
    """A patch that changes the kind ends the request."""
    with pytest.raises(RequestFault) as refused:
        decode_strictly(builtin_schemas()["", "v1", "Secret"], {**SECRET, "kind": kind, "apiVersion": version}, SECRET)
    assert f"Internal error occurred: {expected}" == str(refused.value)


NEWER = {
    "type": "object",
    "required": ["needed"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "data": {"type": "object", "additionalProperties": {"type": "string"}},
        "flag": {"type": "boolean"},
        "note": {"type": "string"},
        "needed": {"type": "integer", "format": "int32"},
        "when": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time"},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.NewPart"}},
    },
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}],
}
PART = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "sizes": {"type": "array", "items": {"type": "integer"}}},
}
DOCUMENT: Any = {
    "components": {
        "schemas": {
            "io.k8s.api.core.v1.ConfigMap": NEWER,
            "io.k8s.api.core.v1.NewPart": PART,
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
        }
    }
}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("/flag", False, [False]),
        ("/flag", None, []),
        ("/note", "", []),
        ("/needed", 0, [0]),
        ("/needed", None, [0]),
        ("/when", "2026-01-01T02:00:00+02:00", ["2026-01-01T00:00:00Z"]),
        ("/parts", [], []),
        ("/parts", [{"name": "", "sizes": [1]}], [[{"sizes": [1]}]]),
        ("/data", {"a": None}, [{"a": ""}]),
    ],
)
def test_fields_of_a_newer_server_are_taken_by_its_schema(path: str, value: Any, expected: Any) -> None:
    """Fields that the Go types lack have their OpenAPI type: optional numbers and booleans are pointers."""
    schema = read_schemas(DOCUMENT, builtin=True)["", "v1", "ConfigMap"]
    live: Any = {"apiVersion": "v1", "kind": "ConfigMap", "needed": 1}
    decoded_object = decode_strictly(schema, changed(live, path, value), live)
    assert expected == [member for name, member in decoded_object.items() if f"/{name}" == path]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("/flag", 1, "json: cannot unmarshal number into Go struct field ConfigMap.flag of type bool"),
        (
            "/parts",
            [{"sizes": ["x"]}],
            "json: cannot unmarshal string into Go struct field NewPart.parts.sizes of type float64",
        ),
        ("/immutable", True, 'strict decoding error: unknown field "immutable"'),
    ],
)
def test_what_an_older_or_newer_server_refuses(path: str, value: Any, expected: str) -> None:
    """The schema of the server has its fields, and the Go types of 1.36 do not matter."""
    schema = read_schemas(DOCUMENT, builtin=True)["", "v1", "ConfigMap"]
    live: Any = {"apiVersion": "v1", "kind": "ConfigMap", "needed": 1}
    with pytest.raises(RequestFault) as refused:
        decode_strictly(schema, changed(live, path, value), live)
    assert f"Internal error occurred: {expected}" == str(refused.value)
