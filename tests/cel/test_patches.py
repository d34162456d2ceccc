"""What expressions of mutations may make, and what the compiler says to the rest."""

from __future__ import annotations

import pytest

from scanner import cel

PATCHES = cel.for_patches(cel.Environment())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Object{spec: Object.spec{replicas: 5}}.spec.replicas == 5", True),
        ("has(Object{?spec: optional.none()}.spec)", False),
        ("Object{a: 1} == Object{a: 1}", True),
        ("Object{a: 1} == Object{a: 2}", False),
        ("dyn(Object.a{}) == dyn(Object.b{})", False),
        ('JSONPatch{op: "add", path: "/a"}.path', "/a"),
        ('JSONPatch{op: "add"}.from', ""),
        ('has(JSONPatch{op: "add", path: ""}.path)', False),
        ('"/metadata/labels/" + jsonpatch.escapeKey("a.b/c~d")', "/metadata/labels/a.b~1c~0d"),
    ],
)
def test_made_values_are_read_like_any_other(expression: str, expected: object) -> None:
    """Fields of made values can be selected, tested and compared."""
    assert expected == cel.compile(expression, PATCHES).evaluate({})


@pytest.mark.parametrize(
    ("expression", "result", "expected"),
    [
        ('{"a": 1}', cel.OBJECT, "must evaluate to Object but got map(string, int)"),
        ("Object.spec{}", cel.OBJECT, "must evaluate to Object but got Object.spec"),
        ("[]", cel.PATCH_LIST, "must evaluate to list(JSONPatch) but got list(dyn)"),
        ('[JSONPatch{op: "add", at: "/"}]', cel.PATCH_LIST, "undefined field 'at'"),
        ("[JSONPatch{op: 1}]", cel.PATCH_LIST, "expected type of field 'op' is 'string' but provided type is 'int'"),
    ],
)
def test_what_is_no_patch_does_not_compile(expression: str, result: cel.Type, expected: str) -> None:
    """A mutation has to be of exactly the type of its patches."""
    with pytest.raises(cel.CompileError) as refusal:
        cel.compile(expression, PATCHES.returning(result))

    assert expected in refusal.value.detail


def test_an_empty_list_takes_the_type_of_the_other_branch() -> None:
    """A conditional of patches and nothing is a list of patches."""
    program = cel.compile('false ? [JSONPatch{op: "add"}] : []', PATCHES.returning(cel.PATCH_LIST))

    assert [] == program.evaluate({})


def test_a_path_that_turns_out_to_be_no_text_is_an_error() -> None:
    """What the checker could not know is found while evaluating."""
    program = cel.compile('[JSONPatch{op: "add", path: dyn(1)}]', PATCHES)

    with pytest.raises(cel.EvaluationError, match="unexpected type int64 for JSONPatchType 'path' field"):
        program.evaluate({})


def test_other_expressions_cannot_make_patches() -> None:
    """Object is not declared where nothing is mutated."""
    with pytest.raises(cel.CompileError, match="undeclared reference to 'Object'"):
        cel.compile("Object{} == Object{}", cel.Environment())
