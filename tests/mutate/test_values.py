"""The value of a JSON patch operation as the API server converts it: joined lists are converted differently.

kube-apiserver 1.36.0 decided every row.
"""

from __future__ import annotations

from typing import Any

import pytest

from scanner import cel
from scanner.model.json import Json
from scanner.mutate.native import PatchFault, RequestFault
from scanner.mutate.origin import RequestData
from scanner.mutate.patch import convert_value

ENVIRONMENT = cel.allow_patches(cel.Environment())
LIVE: Any = {"xs": ["x", "y"], "none": []}
OBJECT = "Object.a{b: 1}"
PREFIX = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
NUMBER = "json: error calling MarshalJSON for type *structpb.Value: proto:\u00a0google.protobuf.Value.number_value:"


def made(text: str) -> Json:
    """The JSON of an expression's value. Raises PatchFault."""
    program = cel.compile(text, ENVIRONMENT)
    with cel.record_lists_anew() as notes:
        value = program.evaluate({"object": LIVE})
    document: Any = convert_value(value, RequestData([LIVE], made=notes))
    return document  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"object.xs + [{OBJECT}]", ["x", "y", {"b": 1}]),
        (f"[{OBJECT}] + object.xs", [{"b": 1}, "x", "y"]),
        (f"[{OBJECT}] + [{OBJECT}]", [{"b": 1}, {"b": 1}]),
        (f"object.xs.map(x, {OBJECT}) + object.xs", [{"b": 1}, {"b": 1}, "x", "y"]),
        (f"object.xs + (object.xs + [{OBJECT}])", ["x", "y", "x", "y", {"b": 1}]),
        (f"[object.xs + [{OBJECT}]]", [["x", "y", {"b": 1}]]),
        (f"{{'k': object.xs + [{OBJECT}]}}", {"k": ["x", "y", {"b": 1}]}),
        (f"optional.of(object.xs + [{OBJECT}])", ["x", "y", {"b": 1}]),
        (f"optional.of({OBJECT})", {"b": 1}),
        (f"true ? object.xs + [{OBJECT}] : []", ["x", "y", {"b": 1}]),
        ("object.xs + [Object.a{b: [Object.a.b{c: 1u}]}]", ["x", "y", {"b": [{"c": 1}]}]),
        ("object.xs + [Object.a{b: []}]", ["x", "y", {"b": []}]),
        ("object.xs + [Object.a{b: {'k': [1]}}]", ["x", "y", {"b": {"k": [1]}}]),
        ("object.xs + [Object.a{b: object.xs, c: object.xs + ['z']}]", ["x", "y", {"b": ["x", "y"], "c": ["x", "y", "z"]}]),
        ("object.xs + [Object.a{b: Object.other{c: null}}]", ["x", "y", {"b": {"c": None}}]),
        ("object.xs + [dyn(1), dyn(1u), dyn(1.5), dyn(b'hi'), dyn(null), dyn(duration('90s'))]", ["x", "y", 1, 1, 1.5, "aGk=", None, "90s"]),
        ("object.xs + [optional.none()]", ["x", "y", None]),
        ("object.xs + [optional.of(1)]", ["x", "y", 1]),
        ("object.xs + [type(1)]", ["x", "y", "int"]),
        ("Object.a{b: type(1)}", {"b": "int"}),
        ("Object.a{b: b'hi', c: 1u}", {"b": "aGk=", "c": 1}),
        ("[9007199254740993] + [1]", ["9007199254740993", 1]),
    ],
)  # fmt: skip
def test_an_object_in_a_joined_list_becomes_a_map(text: str, expected: Json) -> None:
    """Objects in its fields become maps, too; an absent optional in a joined list is null."""
    assert expected == made(text)


@pytest.mark.parametrize(
    "text",
    [
        f"[{OBJECT}]",
        f"object.xs.map(x, {OBJECT})",
        f"(object.xs + [{OBJECT}]).filter(x, true)",
        f"(object.xs + [{OBJECT}]).map(x, x)",
        f"(object.xs + [{OBJECT}]).reverse()",
        f"(object.xs + [{OBJECT}]).slice(0, 3)",
        f"[object.xs + [{OBJECT}]].flatten()",
        f"object.none + [{OBJECT}]",
        f"[{OBJECT}] + object.none",
        f"[dyn(1)] + [[{OBJECT}]]",
        f"[dyn(1)] + [{{'k': {OBJECT}}}]",
        f"{{'k': {OBJECT}}}",
        f"[?optional.of({OBJECT})]",
        "object.xs + [Object.a{b: {'k': [Object.a.b{}]}}]",
        "object.xs + [Object.a{b: [[Object.x{}]]}]",
    ],
)
def test_an_object_in_any_other_list_or_map_ends_the_connection(text: str) -> None:
    """A list joined with nothing stays as it is, and the results of macros and functions are not joined."""
    with pytest.raises(RequestFault):
        made(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optional.none()", "optional.none() dereference"),
        ("[optional.none()]", "optional.none() dereference"),
        ("{'k': object.?nothing}", "optional.none() dereference"),
        ("type(1)", "type conversion not supported for 'type'"),
        ("{1: 2}", "unsupported type conversion from 'int' to string"),
        ("[{true: 2}]", "type conversion error from bool to 'string'"),
        ("quantity('1')", "type conversion error from 'Quantity' to '*structpb.Value'"),
        ("ip('1.2.3.4')", "type conversion error from 'IP' to '*structpb.Value'"),
        ("object.xs + [quantity('1')]", "unsupported conversion to ref.Val: (*resource.Quantity)1"),
        ("object.xs + [url('http://a')]", "unsupported conversion to ref.Val: (*url.URL)http://a"),
        ("JSONPatch{op: 'add'}", "cannot convert to native type: *structpb.Value"),
        ("object.xs + [JSONPatch{op: 'add'}]", "cannot convert to native type: *structpb.Value"),
        ("Object.a{b: {1: 2}}", "fail to convert field \"b\": map key '\\x01' is of type types.Int, not string"),
        ("object.xs + [Object.a{b: {1: 2}}]", "fail to convert field \"b\": map key '\\x01' is of type types.Int, not string"),
        ("Object.a{b: JSONPatch{op: 'add'}}", "proto:\u00a0invalid type: *mutation.JSONPatchVal"),
        (
            "[double('-inf')]",
            f"{NUMBER} invalid -Inf value",
        ),
    ],
)  # fmt: skip
def test_what_has_no_json_is_a_fault_of_the_patch(text: str, expected: str) -> None:
    """The error has the API server's text."""
    with pytest.raises(PatchFault) as refused:
        made(text)

    assert PREFIX + expected == str(refused.value)
