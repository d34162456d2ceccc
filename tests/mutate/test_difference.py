"""The patch from one object to another is correct, minimal, and empty without a change."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.outcome import Change
from scanner.mutate.difference import find_changes
from scanner.mutate.native import PatchFault
from scanner.mutate.operations import Node, PatchOperation, apply, is_same_json

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "x/y", "~"])
VALUES: st.SearchStrategy[Node] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "a", "b/c", "d~e"]), inner, max_size=4)
    ),
    max_leaves=12,
)


OBJECTS = st.dictionaries(st.sampled_from(["name", "a", "b/c", "d~e"]), VALUES, max_size=4)


def applied(patch: tuple[Change, ...], document: Node) -> Node:
    """A document with a patch applied as by the API server."""
    return apply([PatchOperation(change.op, change.path, cast("Node", change.value)) for change in patch], document)


@given(OBJECTS, OBJECTS)
def test_the_patch_makes_the_one_into_the_other(before: dict[str, Node], after: dict[str, Node]) -> None:
    """Applied to the object before, the patch gives the object after."""
    assert is_same_json(after, applied(find_changes(before, after), before))


@given(VALUES)
def test_what_does_not_change_needs_no_patch(value: Node) -> None:
    """There is no difference between an object and itself."""
    assert () == find_changes(value, value)


@given(OBJECTS, OBJECTS)
def test_no_operation_can_be_left_out(before: dict[str, Node], after: dict[str, Node]) -> None:
    """A patch that lacks any of its operations does not lead to the object after."""
    patch = find_changes(before, after)
    for index in range(len(patch)):
        try:
            changed = applied((*patch[:index], *patch[index + 1 :]), before)
        except PatchFault:
            continue
        assert not is_same_json(after, changed)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, ()),
        ({"a": 1}, {"a": True}, (Change("replace", "/a", value=True),)),
        ({"a": {"b/c": 1}}, {"a": {}}, (Change("remove", "/a/b~1c"),)),
        (["a", "c"], ["a", "b", "c"], (Change("add", "/1", "b"),)),
        ([1, 2, 3], [3], (Change("remove", "/1"), Change("remove", "/0"))),
        (
            [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}],
            [{"name": "new"}, {"name": "a", "image": "z"}, {"name": "b", "image": "y"}],
            (Change("replace", "/0/image", "z"), Change("add", "/0", {"name": "new"})),
        ),
        ({"a": None}, {}, (Change("remove", "/a"),)),
        ({}, {"a": None}, (Change("add", "/a", None),)),
    ],
)
def test_only_what_differs_is_touched(before: Node, after: Node, expected: tuple[Change, ...]) -> None:
    """The patch has only the changes that a reader would name."""
    assert expected == find_changes(before, after)


def test_long_lists_without_a_common_beginning_are_compared_in_time() -> None:
    """Two lists of thousands of elements are compared by index."""
    before: Node = [*range(3000)]
    after: Node = [number + 1 for number in range(3000)]

    assert is_same_json(after, applied(find_changes(before, after), before))
