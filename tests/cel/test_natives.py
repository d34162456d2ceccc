"""Wrapped Go values, as Kubernetes 1.37 passes them to expressions: only operations on values of unlike types differ."""

from __future__ import annotations

from typing import Any

import pytest

from scanner import cel
from scanner.cel.values.wrapped_values import wrap_values

OBJECT: dict[str, Any] = {"spec": {"list": [{"name": "a"}, {"name": "b"}], "labels": {"x": "y"}}}


def wrapped(value: object) -> bool:
    """Return whether a value is a part of the object."""
    return value is OBJECT or any(
        value is part for part in (OBJECT["spec"], OBJECT["spec"]["list"], OBJECT["spec"]["labels"])
    )


def evaluated(expression: str) -> object:
    """Return the value of an expression whose object is wrapped, or the text of its error."""
    program = cel.compile(expression, cel.Environment(version=(1, 37)))
    try:
        with wrap_values(wrapped):
            return program.evaluate({"object": OBJECT})
    except cel.EvaluationError as error:
        return str(error)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("object.spec == 1", "no such overload"),
        ("object.spec.labels == 'a'", "no such overload"),
        ("object.spec.list == dyn({})", "no such overload"),
        ("object.spec != 1", True),
        ("1 == object.spec", False),
        ("object.spec == null", False),
        ("object.spec == {}", False),
        ("object.spec in [1, 2]", False),
        ("[object.spec] == [1]", True),
        ("object.spec == 1 || true", True),
        ("object.spec.labels == {'x': 'y'}", True),
        ("1 in object.spec.labels", "unsupported map key type: types.Int"),
        ("'x' in object.spec.labels", True),
        ("object.spec[0]", "unsupported map key type: types.Int"),
        ("object.spec.list[0.0].name", "unsupported index type: types.Double"),
        ("object.spec.list[1u].name", "unsupported index type: types.Uint"),
        ("object.spec.list[0].name", "a"),
        ("object.spec.list[9.0]", "index out of bounds: 9"),
    ],
)
def test_wrapped_values_answer_as_a_1_37_server(expression: str, expected: object) -> None:
    """Expressions on a wrapped object have the outcomes of a 1.37 server for native objects."""
    assert expected == evaluated(expression)


def test_outside_the_block_nothing_is_wrapped() -> None:
    """Outside the block the same comparison is false, as for a custom resource, or before 1.37."""
    evaluated("object.spec == 1")

    assert cel.compile("object.spec == 1", cel.Environment()).evaluate({"object": OBJECT}) is False
