"""The outline of a compiled expression."""

from __future__ import annotations

import pytest

from scanner.cel import Environment, compile, outline


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("object.spec.replicas<=5", ["object.spec.replicas <= 5: bool", "  object.spec.replicas: dyn", "  5: int constant"]),
        ("object.x.all(c, c.y > 1)", [
            "object.x.all(c, c.y > 1): bool", "  object.x: dyn", "  c.y > 1: bool", "    c.y: dyn", "    1: int constant",
        ]),
        ("object.x in [1, 2]", ["object.x in [1, 2]: bool", "  object.x: dyn", "  [1, 2]: list(int) constant"]),
        ("has(object.x) ? 'a' : 'b'", [
            "has(object.x) ? 'a' : 'b': string", "  has(object.x): bool", "    object: dyn", "  'a': string constant", "  'b': string constant",
        ]),
        ("request.name", ["request.name: string"]),
    ],
)  # fmt: skip
def test_the_tree_of_an_expression(text: str, lines: list[str]) -> None:
    """The outline has parents first, with types; macros in source form, and constants whole."""
    parts = outline(compile(text, Environment()))
    shown = [f"{'  ' * part.depth}{part.text}: {part.type}{' constant' if part.constant else ''}" for part in parts]
    assert lines == shown


def test_a_deep_tree_has_an_outline() -> None:
    """The outline of a tree as deep as the grammar allows has a part for every operator and operand."""
    deep = "object.x" + " + object.x" * 200
    assert 401 == len(outline(compile(deep, Environment())))
