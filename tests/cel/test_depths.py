"""The parts of its inputs that an expression reads, through loops."""

from __future__ import annotations

import pytest

from scanner import cel
from scanner.cel import Environment

ENVIRONMENT = Environment().add_variable("v", cel.DYN)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.a == 1", {"object.spec.a"}),
        ("has(object.spec.a)", {"object.spec.a"}),
        ("object.spec['a-b'][0] == 1", {"object.spec.a-b.*"}),
        ("object.spec['#'] == 1", {"object.spec.*"}),
        ("object.spec[object.name] == 1", {"object.spec.*", "object.name"}),
        ("object.?spec[?'a'].orValue(1) == 1", {"object.spec.a"}),
        ("object.all.all(c, c.image == 'x')", {"object.all.#", "object.all.*.image"}),
        ("object.all.all(k, v, v == k)", {"object.all.#", "object.all.*"}),
        ("object.all.all(c, c.env.all(e, e.name == c.name))", {
            "object.all.#",
            "object.all.*.env.#",
            "object.all.*.env.*.name",
            "object.all.*.name",
        }),
        ("object.all.map(c, c.image).all(i, i == 'x')", {"object.all.#", "object.all.*.image"}),
        ("object.all.filter(c, c.a == 1).size() == 1", {"object.all.#", "object.all.*.a", "object.all.*"}),
        ("(object.a + object.b).all(c, c.x == 1)", {"object.a", "object.b"}),
        ("object.?a.optMap(x, x.b == 1).orValue(true)", {"object.a", "object.a.b"}),
        ("variables.v.all(c, c.x == 1)", {"variables.v.#", "variables.v.*.x"}),
        ("size(object.a) == 1", {"object.a"}),
        ("[1].all(x, x == object.a)", {"object.a"}),
        ("type(object.a) == int", {"object.a"}),
        ("dyn(object).a == 1", {"object"}),
        ("google.protobuf.StringValue{value: object.a} == 'x'", {"object.a"}),
    ],
)  # fmt: skip
def test_paths(text: str, expected: set[str]) -> None:
    """Paths are names joined by dots: `*` for the elements of a list or map, `#` for their number and keys."""
    paths = {".".join(path) for path in cel.compile(text, ENVIRONMENT).depths()}
    assert {path for path in expected if path != "object.a.b"} <= paths <= expected
