"""The values that expressions of mutations may make, and the errors of the compiler for other values."""

from __future__ import annotations

import pytest

from scanner import cel

PATCHES = cel.allow_patches(cel.Environment())


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
def test_objects_and_patches_are_read_like_other_values(expression: str, expected: object) -> None:
    """Fields of objects and patches can be selected, tested and compared."""
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
def test_other_results_than_patches_do_not_compile(expression: str, result: cel.Type, expected: str) -> None:
    """An expression of a mutation must have exactly the type of its patches."""
    with pytest.raises(cel.CompileError) as refusal:
        cel.compile(expression, PATCHES.require_results(result))

    assert expected in refusal.value.detail


def test_an_empty_list_takes_the_type_of_the_other_branch() -> None:
    """A conditional of a list of patches and an empty list is a list of patches."""
    program = cel.compile('false ? [JSONPatch{op: "add"}] : []', PATCHES.require_results(cel.PATCH_LIST))

    assert [] == program.evaluate({})


def test_a_path_that_is_no_text_is_an_error_of_the_evaluation() -> None:
    """A dyn path passes the checker, and is an error of the evaluation when it is no text."""
    program = cel.compile('[JSONPatch{op: "add", path: dyn(1)}]', PATCHES)

    with pytest.raises(cel.EvaluationError, match="unexpected type int64 for JSONPatchType 'path' field"):
        program.evaluate({})


def test_other_expressions_cannot_make_patches() -> None:
    """`Object` is undeclared outside mutations."""
    with pytest.raises(cel.CompileError, match="undeclared reference to 'Object'"):
        cel.compile("Object{} == Object{}", cel.Environment())
