"""The paths that a program reads, and no others."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner import cel
from tests.oracle.grammar import Generator
from tests.oracle.ours import tagged
from tests.oracle.record import OBJECTS
from tests.oracle.subjects import NAMESPACE

ENVIRONMENT = cel.Environment().add_variable("v", cel.DYN)
Paths = frozenset[tuple[str, ...]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.a.b == 1", {"object.a.b"}),
        ("has(object.a.b)", {"object.a.b"}),
        ("object.?a.?b.orValue(1) == 1", {"object.a.b"}),
        ("object[?'a'].b == 1", {"object.a.b"}),
        ("object['a']['b'] == 1", {"object.a.b"}),
        ("object.a[0].b == 1", {"object.a"}),
        ("object.a[object.b].c == 1", {"object.a", "object.b"}),
        ("object[string(object.a)] == 1", {"object", "object.a"}),
        ("object.a.all(x, x.b == object.c)", {"object.a", "object.c"}),
        ("object.a.map(x, x.b).exists(y, y == oldObject.c)", {"object.a", "oldObject.c"}),
        ("[dyn({})].all(object, object.a == 1)", {"object.a"}),
        ("object.a.exists(i, x, i == 0 && x.b)", {"object.a"}),
        ("optional.of(object.a).optMap(x, x.b).hasValue()", {"object.a"}),
        ("object.a.sortBy(x, x.b)[0] == 1", {"object.a"}),
        ("(object.a ? object.b : oldObject).c == 1", {"object.a", "object.b", "oldObject"}),
        ("'a' in object.a", {"object.a"}),
        ("{'a': object.b}.a == 1", {"object.b"}),
        ("[object.b][0].c == 1", {"object.b"}),
        ("variables.v.a == 1", {"variables.v.a"}),
        ("dyn(variables) == null", {"variables"}),
        (
            "request.userInfo.username == namespaceObject.metadata.name",
            {"request.userInfo.username", "namespaceObject.metadata.name"},
        ),
        (".object.a == object", {"object.a", "object"}),
        ("type(object.a) == int", {"object.a"}),
        ("true || object.a == 1", {"object.a"}),
        ("1 + 1 == 2", set()),
    ],
)
def test_paths_end_where_names_are_no_longer_constant(text: str, expected: set[str]) -> None:
    """A path of names ends at the first step that is not constant, and stands for all values below its end."""
    assert expected == {".".join(path) for path in cel.compile(text, ENVIRONMENT).reads}


def restricted(body: Any, paths: Paths) -> Any:
    """Return a document with only the values that a path leads to or through."""
    if () in paths:
        return body
    if isinstance(body, dict):
        return {
            key: restricted(value, frozenset(path[1:] for path in paths if path[0] == key))
            for key, value in body.items()
            if any(path[0] == key for path in paths)
        }
    return [] if isinstance(body, list) else body


def _answer(program: cel.Program, activation: dict[str, object]) -> object:
    try:
        return tagged(program.evaluate_exactly(activation))
    except cel.EvaluationError as error:
        return str(error)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_values_outside_the_paths_do_not_matter(seed: int) -> None:
    """The outcome is the same for documents without the values outside the paths."""
    text = str(Generator(random.Random(seed)).case().term)
    try:
        program = cel.compile(text, cel.Environment())
    except cel.CompileError:
        return
    for body in OBJECTS:
        whole: dict[str, object] = {
            "object": body,
            "oldObject": None,
            "namespaceObject": NAMESPACE,
            "request": {"name": "web"},
        }
        needed: dict[str, object] = {
            root: restricted(document, frozenset(path[1:] for path in program.reads if path[0] == root))
            for root, document in whole.items()
            if any(path[0] == root for path in program.reads)
        }
        assert _answer(program, whole) == _answer(program, needed), text
