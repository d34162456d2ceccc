"""JSON patch as the API server applies it, with its deviations from RFC 6902 and its error texts."""

from __future__ import annotations

import pytest

from scanner.mutate.native import CONNECTION_ENDS, PatchFault, RequestFault
from scanner.mutate.operations import Node, PatchOperation, TestFailed, apply

DOCUMENT: Node = {"a": {"b": 1}, "l": [1, 2, 3], "s": "x", "a/b": 0, "m~n": 0, "n": None}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        (PatchOperation("add", "/a/c", 2), "a", {"b": 1, "c": 2}),
        (PatchOperation("add", "/a/b", 2), "a", {"b": 2}),
        (PatchOperation("add", "/l/0", 0), "l", [0, 1, 2, 3]),
        (PatchOperation("add", "/l/3", 4), "l", [1, 2, 3, 4]),
        (PatchOperation("add", "/l/-", 4), "l", [1, 2, 3, 4]),
        (PatchOperation("add", "/l/-1", 4), "l", [1, 2, 3, 4]),
        (PatchOperation("add", "/l/-2", 4), "l", [1, 2, 4, 3]),
        (PatchOperation("add", "dropped/s", "y"), "s", "y"),
        (PatchOperation("add", "/s", has_value=False), "s", None),
        (PatchOperation("remove", "/l/-1"), "l", [1, 2]),
        (PatchOperation("replace", "/new", 1), "new", 1),
        (PatchOperation("replace", "/l/1", 9), "l", [1, 9, 3]),
        (PatchOperation("replace", "/a~1b", 9), "a/b", 9),
        (PatchOperation("replace", "/m~0n", 9), "m~n", 9),
        (PatchOperation("move", "/z", source="/s"), "z", "x"),
        (PatchOperation("copy", "/z", source="/absent"), "z", None),
        (PatchOperation("copy", "/z", source="/a"), "z", {"b": 1}),
    ],
)
def test_operations_change_what_they_name(operation: PatchOperation, path: str, expected: Node) -> None:
    """One operation changes the value at its path."""
    changed = apply([operation], DOCUMENT)

    assert isinstance(changed, dict)
    assert expected == changed[path]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (PatchOperation("add", "/x/y", 1), 'add operation does not apply: doc is missing path: "/x/y": missing value'),
        (PatchOperation("add", "/n/y", 1), 'add operation does not apply: doc is missing path: "/n/y": missing value'),
        (PatchOperation("add", "/s/y", 1), 'add operation does not apply: doc is missing path: "/s/y": missing value'),
        (
            PatchOperation("add", "/l/5", 1),
            "error in add for path: '/l/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            PatchOperation("add", "/l/x", 1),
            "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            PatchOperation("add", "nothing", 1),
            'add operation does not apply: doc is missing path: "nothing": missing value',
        ),
        (
            PatchOperation("remove", "/x"),
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            PatchOperation("remove", "/x/y"),
            'remove operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        (
            PatchOperation("remove", "/l/9"),
            "error in remove for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            PatchOperation("replace", "/x/y", 1),
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            PatchOperation("replace", "/l/3", 1),
            "replace operation does not apply: doc is missing key: /l/3: missing value",
        ),
        (PatchOperation("replace", "", 1), "replace operation value must be object or array: %!w(<nil>)"),
        (
            PatchOperation("move", "/z", source="/x/y"),
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            PatchOperation("move", "/z"),
            "move operation failed to decode from: operation, missing from field: missing value",
        ),
        (
            PatchOperation("move", "/x/y", source="/s"),
            "move operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        (
            PatchOperation("copy", "/z", source="/x/y"),
            "copy operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (PatchOperation("test", "/x/y", 1), "test operation does not apply: is missing path: /x/y: missing value"),
        (PatchOperation("frobnicate", "/s"), "Unexpected kind: frobnicate"),
    ],
)
def test_an_operation_that_does_not_apply_has_the_servers_error(operation: PatchOperation, expected: str) -> None:
    """A patch that does not apply has the error of the Go library."""
    with pytest.raises(PatchFault) as fault:
        apply([operation], DOCUMENT)

    assert expected == str(fault.value)


@pytest.mark.parametrize(
    ("operation", "holds"),
    [
        (PatchOperation("test", "/a", {"b": 1}), True),
        (PatchOperation("test", "/a/b", 1.0), True),
        (PatchOperation("test", "/a/b", value=True), False),
        (PatchOperation("test", "/a/b", "1"), False),
        (PatchOperation("test", "/absent", has_value=False), True),
        (PatchOperation("test", "/absent", None), False),
        (PatchOperation("test", "/l", [1, 2]), False),
        (PatchOperation("test", "", DOCUMENT), True),
    ],
)
def test_a_test_that_fails_leaves_the_object_alone(operation: PatchOperation, holds: bool) -> None:  # noqa: FBT001 - a fact of the table
    """A test compares values, not their text; a failing test is no fault."""
    try:
        apply([operation], DOCUMENT)
    except TestFailed:
        assert not holds
    else:
        assert holds


def test_the_document_itself_is_never_changed() -> None:
    """A patch changes a copy."""
    before: Node = {"a": {"b": [1]}}
    apply([PatchOperation("add", "/a/b/-", 2), PatchOperation("remove", "/a")], before)

    assert {"a": {"b": [1]}} == before


@pytest.mark.parametrize(
    "operations",
    [
        [PatchOperation("replace", "", has_value=False)],
        [PatchOperation("test", "", has_value=False)],
        [PatchOperation("replace", ""), PatchOperation("add", "/a", 1)],
        [PatchOperation("add", "/a"), PatchOperation("add", "/a/b", 1)],
        [PatchOperation("add", "/a"), PatchOperation("replace", "/a/b", 1)],
        [PatchOperation("add", "/a"), PatchOperation("copy", "/z", source="/a"), PatchOperation("add", "/z/b", 1)],
        [PatchOperation("add", "/l", [None]), PatchOperation("test", "/l", [None])],
        [PatchOperation("test", "/l", [1, 2, None])],
    ],
)
def test_a_patch_on_which_the_library_panics_ends_the_connection(operations: list[PatchOperation]) -> None:
    """A value that is missing, a write into a null that the patch wrote, and a null inside a tested list."""
    with pytest.raises(RequestFault, match=CONNECTION_ENDS):
        apply(operations, DOCUMENT)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([PatchOperation("replace", "")], None),
        ([PatchOperation("add", "/a"), PatchOperation("test", "/a")], None),
        ([PatchOperation("add", "/a"), PatchOperation("test", "/a", {})], None),
        ([PatchOperation("replace", ""), PatchOperation("test", "", {})], None),
        ([PatchOperation("add", "/a"), PatchOperation("move", "/l", source="/a"), PatchOperation("test", "/l")], None),
    ],
)
def test_a_null_that_a_patch_wrote_is_read_as_an_empty_map_and_stays_null(
    operations: list[PatchOperation], expected: Node
) -> None:
    """The tests hold, and the document has null there."""
    changed = apply(operations, DOCUMENT)

    assert expected == (changed.get("a") if isinstance(changed, dict) else changed)


def test_a_null_that_a_patch_wrote_is_a_value() -> None:
    """A test without a value fails on it, while it holds for a null of the document."""
    with pytest.raises(TestFailed):
        apply([PatchOperation("add", "/a"), PatchOperation("test", "/a", has_value=False)], DOCUMENT)


def test_the_copies_of_a_patch_have_a_limit() -> None:
    """The text has the bytes as Go writes them, in which a character that HTML reserves takes six."""
    document: Node = {"data": {"a": "<é\u2028"}}
    copies = [PatchOperation("copy", f"/data/a{number}", source="/data") for number in range(18)]

    with pytest.raises(PatchFault) as fault:
        apply(copies, document)

    assert (
        "Unable to complete the copy, the accumulated size increase of copy is 3670006, exceeding the limit 3145728"
        == str(fault.value)
    )
