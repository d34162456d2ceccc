"""Structured merge by the schemas of built-in kinds and of custom resources."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner import cel
from scanner.api import Auditor
from scanner.cluster.schemas import KnownSchemas, builtin_schemas, read_custom_schemas
from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind
from scanner.mutate.native import PatchFault
from scanner.mutate.operations import is_same_json
from scanner.mutate.origin import RequestData
from scanner.mutate.patch import apply_configuration
from scanner.mutate.schema import Schema
from scanner.mutate.storing import store_update
from tests.scan.test_drift import binding, policy

DEPLOYMENT = builtin_schemas()["apps", "v1", "Deployment"]
SERVICE = builtin_schemas()["", "v1", "Service"]
PATCHES = cel.allow_patches(cel.Environment()).require_results(cel.OBJECT)
DEFINITION: JsonObject = {
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "default": 3},
                                    "ratio": {"type": "number"},
                                    "on": {"type": "boolean"},
                                    "any": {"x-kubernetes-preserve-unknown-fields": True},
                                    "tags": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "plain": {"type": "array", "items": {"type": "string"}},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "bare": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                                    },
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "properties": {"a": {"type": "string"}},
                                    },
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name", "zone"],
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "name": {"type": "string"},
                                                "zone": {"type": "string", "default": "a"},
                                                "n": {"type": "integer"},
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    }
}
GADGET = read_custom_schemas(DEFINITION)["example.com", "v1", "Gadget"]


def gadget(**spec: Json) -> JsonObject:
    """A stored Gadget."""
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}


def merged(expression: str, live: JsonObject, schema: Schema = GADGET) -> Any:
    """An object with the apply configuration of an expression merged in."""
    activation = {"object": live}
    value = cel.compile(expression, PATCHES).evaluate(activation)
    return store_update(schema, live, apply_configuration(value, live, schema, RequestData([live])))


@pytest.mark.parametrize(
    ("spec", "patch", "expected"),
    [
        ({"size": 1}, "size: 5", {"size": 5}),
        ({"tags": ["a", "b"]}, "tags: ['b', 'c']", {"tags": ["a", "b", "c"]}),
        ({"tags": ["a", "b"]}, "tags: ['c', 'b', 'a']", {"tags": ["c", "b", "a"]}),
        ({"tags": ["a"]}, "tags: []", {"tags": ["a"]}),
        (
            {"free": {"x": {"y": 1}}},
            "free: Object.spec.free{x: Object.spec.free.x{z: 2}}",
            {"free": {"x": {"y": 1, "z": 2}}},
        ),
        ({"free": {"l": [1]}}, "free: {'m': 2}", {"free": {"l": [1], "m": 2}}),
        (
            {"parts": [{"name": "p", "n": 1}, {"name": "p", "zone": "b"}]},
            "parts: [Object.spec.parts{name: 'p', zone: 'a', n: 2}]",
            {"parts": [{"name": "p", "n": 2}, {"name": "p", "zone": "b"}]},
        ),
        (
            {"parts": [{"name": "x"}, {"name": "y"}]},
            "parts: [Object.spec.parts{name: 'new'}, Object.spec.parts{name: 'y', n: 1}]",
            {"parts": [{"name": "x"}, {"name": "new", "zone": "a"}, {"name": "y", "n": 1}]},
        ),
        ({"any": [1]}, "any: {'a': 1}", {"any": {"a": 1}}),
        ({}, "?size: optional.none()", {}),
    ],
)
def test_fields_are_merged_by_their_schema(spec: dict[str, Json], patch: str, expected: dict[str, Json]) -> None:
    """The fields of a patch are added or changed, and none is removed."""
    merged_object = merged(f"Object{{spec: Object.spec{{{patch}}}}}", gadget(**spec))

    assert expected == merged_object["spec"]


TO_TYPED = "error applying patch: failed to convert patch object to typed object: "
MISNAMED = (
    'type mismatch: unexpected type name "Object.spec.other", expected "Object.spec.free", which matches field name path '
    "from root Object type"
)
KEYLESS = (
    ".spec.bare: element 0: associative list with keys has an element that omits all key fields "
    '["name"] (and doesn\'t have default values for any key fields)'
)
ATOMIC = "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("sizes: 1", f"{TO_TYPED}.spec.sizes: field not declared in schema"),
        ("size: 'x'", f"{TO_TYPED}.spec.size: expected numeric (int or float), got string"),
        ("size: true", f"{TO_TYPED}.spec.size: expected numeric (int or float), got bool"),
        ("size: null", f"{TO_TYPED}.spec.size: expected numeric (int or float), got structpb.NullValue"),
        ("size: dyn([])", f"{TO_TYPED}.spec.size: expected numeric (int or float), got []interface {{}}"),
        ("on: 'yes'", f"{TO_TYPED}.spec.on: expected boolean, got &{{yes}}"),
        ("tags: {'a': 'b'}", f"{TO_TYPED}.spec.tags: expected list, got &{{map[a:b]}}"),
        ("tags: 'a'", f"{TO_TYPED}.spec.tags: expected list, got &{{a}}"),
        ("tags: ['a', 'a']", f'{TO_TYPED}.spec.tags: duplicate entries for key [="a"]'),
        ("tags: [1]", f"{TO_TYPED}.spec.tags[=1]: expected string, got &value.valueUnstructured{{Value:1}}"),
        ("free: {'a': ['b']}", f"{TO_TYPED}.spec.free.a: expected map, got &{{[b]}}"),
        (
            "parts: [{'name': 'p'}]",
            f"{TO_TYPED}.spec.parts: element 0: associative list with keys may not have non-map elements",
        ),
        (
            "parts: [Object.spec.parts{name: 'p', n: 'x'}]",
            f'{TO_TYPED}.spec.parts[name="p",zone="a"].n: expected numeric (int or float), got string',
        ),
        (
            "bare: [Object.spec.bare{}]",
            f"{TO_TYPED}{KEYLESS}",
        ),
        ("plain: ['a']", f"{ATOMIC}.spec.plain"),
        ("whole: Object.spec.whole{a: 'x'}, plain: ['a']", f"{ATOMIC}.spec.whole, .spec.plain"),
        (
            "free: Object.spec.other{a: 1}",
            MISNAMED,
        ),
    ],
)
def test_what_does_not_suit_the_schema_is_refused(patch: str, expected: str) -> None:
    """A patch that does not fit the kind's schema has the server's error."""
    with pytest.raises(PatchFault) as fault:
        merged(f"Object{{spec: Object.spec{{{patch}}}}}", gadget())

    assert expected == str(fault.value)


def test_a_port_is_the_same_with_and_without_the_default_protocol() -> None:
    """Defaults of key fields count for the partner of an element."""
    live: JsonObject = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}
    merged_object = merged(
        "Object{spec: Object.spec{ports: [Object.spec.ports{port: 80, name: 'web'}]}}", live, SERVICE
    )

    assert [{"port": 80, "protocol": "TCP", "name": "web"}] == merged_object["spec"]["ports"]


def test_of_duplicate_names_that_a_patch_mentions_only_the_patch_stays() -> None:
    """Duplicates in the live object stay; the element of the patch replaces all duplicates with its key."""
    live: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "c", "env": [{"name": "X", "value": "1"}, {"name": "Y"}, {"name": "X", "value": "2"}]}
                    ]
                }
            }
        },
    }
    path = "Object.spec.template.spec"
    container = f"{path}.containers{{name: 'c', env: [{path}.containers.env{{name: 'X', value: '3'}}]}}"
    expression = (
        f"Object{{spec: Object.spec{{template: Object.spec.template{{spec: {path}{{containers: [{container}]}}}}}}}}"
    )
    (merged_container,) = merged(expression, live, DEPLOYMENT)["spec"]["template"]["spec"]["containers"]

    assert [{"name": "X", "value": "3"}, {"name": "Y"}] == merged_container["env"]


NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=5)


@given(NAMES, NAMES)
def test_merging_the_same_patch_again_changes_nothing(ours: list[str], theirs: list[str]) -> None:
    """A merge is idempotent, with any order of keys."""
    elements = ", ".join(f"Object.spec.parts{{name: '{name}', n: {index}}}" for index, name in enumerate(theirs))
    expression = f"Object{{spec: Object.spec{{parts: [{elements}], tags: {theirs}}}}}"
    once = merged(expression, gadget(parts=[{"name": name} for name in ours], tags=[*ours]))

    assert is_same_json(once, merged(expression, once))


@given(NAMES, NAMES)
def test_a_merge_keeps_every_element_of_both_sides(ours: list[str], theirs: list[str]) -> None:
    """No element is lost or doubled, and the object's own elements keep their order."""
    tags = merged(f"Object{{spec: Object.spec{{tags: {theirs}}}}}", gadget(tags=[*ours]))["spec"].get("tags", [])

    assert sorted({*ours, *theirs}) == sorted(tags)
    assert [name for name in ours if name not in theirs] == [name for name in tags if name not in theirs]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ((1, 33), '.spec.multi: element 0: associative list with keys has an element that omits key field "proto" (and doesn\'t have default value)'),
        ((1, 34), ""),
    ],
)  # fmt: skip
def test_before_1_34_an_element_needs_all_of_its_keys(rules: tuple[int, int], expected: str) -> None:
    """Later servers accept an element with some of its keys."""
    items = {"type": "object", "properties": {"port": {"type": "integer"}, "proto": {"type": "string"}}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "proto"]}
    fields = {"spec": {"type": "object", "properties": {"multi": {**keyed, "items": items}}}}
    version: Any = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}}
    definition: Any = {"spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [version]}}
    auditor = Auditor(
        policies=[policy("keys", "Object{spec: Object.spec{multi: [Object.spec.multi{port: 80}]}}")],
        bindings=[binding("keys")],
        kinds=[Kind("example.com", "v1", "Thing", "gizmos", namespaced=True)],
        schemas=KnownSchemas(read_custom_schemas(definition)),
        kubernetes_version=".".join(map(str, rules)),
    )
    stored_thing: JsonObject = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "t", "namespace": "n"},
        "spec": {},
    }
    (invocation_result,) = auditor.evaluate(stored_thing)
    outcome: Any = invocation_result.check_results[0].outcome

    assert expected == getattr(outcome, "message", "").rpartition("typed object: ")[2].partition("+ ")[0]
