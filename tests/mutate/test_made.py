"""The origin of a list decides whether the list may stand inside a list or map that an expression writes."""

from __future__ import annotations

from typing import Any

import pytest

from scanner import cel
from scanner.cluster.schemas import read_custom_schemas
from scanner.model.json import Json
from scanner.mutate.native import PatchFault
from scanner.mutate.origin import RequestData
from scanner.mutate.patch import apply_configuration

FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: Any = {
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gadget"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"free": FREE}}}}],
    }
}
SCHEMA = read_custom_schemas(DEFINITION)["example.com", "v1", "Gadget"]
ENVIRONMENT = cel.allow_patches(cel.Environment()).require_results(cel.OBJECT)
LIVE: Any = {"apiVersion": "example.com/v1", "kind": "Gadget", "free": {"xs": ["a", "b"]}}


def free_of(text: str) -> Json:
    """The value of the field `a`, for which the schema has no type. Raises PatchFault."""
    program = cel.compile(f"Object{{free: {text}}}", ENVIRONMENT)
    with cel.record_lists_anew() as made:
        value = program.evaluate({"object": LIVE})
    changed: Any = apply_configuration(value, LIVE, SCHEMA, RequestData([LIVE], made=made))
    return changed["free"]["a"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': ['y'] + ['z']}", ["y", "z"]),
        ("{'a': object.free.xs + ['z']}", ["a", "b", "z"]),
        ("{'a': object.free.xs + []}", ["a", "b"]),
        ("{'a': ['x'].map(x, x) + ['z']}", ["x", "z"]),
        ("{'a': 'y,z'.split(',') + ['x']}", ["y", "z", "x"]),
        ("{'a': [dyn('x')] + [['y'] + ['z']]}", ["x", ["y", "z"]]),
        ("{'a': [dyn('y')] + [Object.anything{k: 'v'}]}", ["y", {"k": "v"}]),
        ("Object.free{a: [['y'] + ['z']]}", [["y", "z"]]),
    ],
)
def test_a_joined_list_may_stand_anywhere(text: str, expected: Json) -> None:
    """A joined list is JSON at every depth, with any types of its elements."""
    assert expected == free_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': ['y']}", ".free.a: expected map, got &{[y]}"),
        ("{'a': [] + ['y']}", ".free.a: expected map, got &{[y]}"),
        ("{'a': (['y'] + ['z']).map(x, x)}", ".free.a: expected map, got &{[y z]}"),
        ("{'a': [['y'] + ['z']]}", ".free.a: expected map, got &{[[y, z]]}"),
        ("{'a': [dyn('y')] + [{'k': 'v'}]}", ".free.a[1]: expected map, got &{map[k:v]}"),
        ("{'a': object.free.xs + [null]}", ".free.a[2]: expected map, got &{NULL_VALUE}"),
        ("{'a': [['y'] + [dyn(null)]]}", ".free.a: expected map, got &{[[y, 0]]}"),
        ("Object.free{a: 'y,z'.split(',')}", ".free.a: expected map, got &{[y z]}"),
        ("Object.free{a: 'y1z2'.findAll('[0-9]')}", ".free.a: expected map, got &{[1 2]}"),
    ],
)
def test_any_other_list_may_not(text: str, expected: str) -> None:
    """A list literal inside another stays a Go value; the texts of `split` are refused at the top, too."""
    with pytest.raises(PatchFault) as refused:
        free_of(text)

    assert expected == str(refused.value).rpartition("typed object: ")[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': google.protobuf.ListValue{values: ['y']}}", '.free.a: expected map, got &{values:{string_value:"y"}}'),
        ("Object.free{a: google.protobuf.ListValue{}}", ".free.a: expected map, got &{}"),
        (
            "Object.free{a: google.protobuf.ListValue{values: ['y']} + []}",
            '.free.a: expected map, got &{values:{string_value:"y"}}',
        ),
        (
            "Object.free{a: google.protobuf.Struct{fields: {'k': {'n': [true]}}}.k}",
            '.free.a: expected map, got &{fields:{key:"n"  value:{list_value:{values:{bool_value:true}}}}}',
        ),
        ("{'a': google.protobuf.Empty{}}", ".free.a: expected map, got &{}"),
        ("Object.free{a: google.protobuf.Struct.FieldsEntry{key: 'k'}}", '.free.a: expected map, got &{key:"k"}'),
    ],
)
def test_the_lists_and_maps_of_messages_may_not_either(text: str, expected: str) -> None:
    """Lists and maps of messages stay protobuf messages in every place."""
    with pytest.raises(PatchFault) as refused:
        free_of(text)

    assert expected == str(refused.value).rpartition("typed object: ")[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{'a': google.protobuf.StringValue{value: 'y'}}", "y"),
        ("Object.free{a: google.protobuf.Int32Value{value: 3}}", 3),
        ("Object.free{a: google.protobuf.ListValue{values: ['y']}.map(x, x)}", ["y"]),
        ("{'a': google.protobuf.ListValue{values: ['y']} + ['z']}", ["y", "z"]),
    ],
)
def test_plain_values_of_messages_are_plain(text: str, expected: Json) -> None:
    """The value of a wrapper is plain, and a list computed from a message's list is no message."""
    assert expected == free_of(text)


def test_how_often_an_expression_was_evaluated_makes_no_difference() -> None:
    """A generated function does not record the origin of lists, so it is not used here."""
    program = cel.compile("object.free.xs + ['z']", cel.Environment())
    evaluations = [(program.evaluate({"object": LIVE}), program.generate()) for _ in range(5)]
    with cel.record_lists_anew() as made:
        value = program.evaluate({"object": LIVE})

    assert (["a", "b", "z"], cel.ListKind.JOINED) == (value, made.of(value))
    assert evaluations[-1][1] is not None
