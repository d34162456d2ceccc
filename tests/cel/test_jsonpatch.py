"""`jsonpatch.escapeKey`, a function of the expressions of mutations only."""

from __future__ import annotations

import pytest

from scanner.cel import CompileError, Environment, EvaluationError, compile
from scanner.cel.functions import jsonpatch

MUTATION = Environment(extras=(jsonpatch.LIBRARY,))


@pytest.mark.parametrize(
    ("key", "expected"),
    [("app", "app"), ("k8s.io/my~label", "k8s.io~1my~0label"), ("~1", "~01"), ("", ""), ("//", "~1~1")],
)
def test_keys_are_escaped(key: str, expected: str) -> None:
    """Slashes and tildes are escaped in one pass."""
    program = compile("jsonpatch.escapeKey(object.key)", MUTATION)
    assert expected == program.evaluate({"object": {"key": key}})


def test_a_key_is_a_string() -> None:
    """A key that is not a string is an error."""
    with pytest.raises(EvaluationError, match=r"^no such overload: jsonpatch.escapeKey\(int\)$"):
        compile("jsonpatch.escapeKey(object.key)", MUTATION).evaluate({"object": {"key": 1}})


def test_validations_have_no_escape_key() -> None:
    """`jsonpatch.escapeKey` is undeclared outside mutations."""
    with pytest.raises(CompileError, match="undeclared reference to 'jsonpatch'"):
        compile("jsonpatch.escapeKey('a')", Environment())
