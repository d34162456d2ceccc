"""The CEL text of trees."""

from __future__ import annotations

import random

import pytest

from scanner.cel import CompileError
from scanner.cel.syntax import parser
from scanner.cel.syntax.unparse import unparse
from tests.oracle import ours
from tests.oracle.grammar import Generator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a+b*c", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-(b-c)", "a - (b - c)"),
        ("a?b:c?d:e", "a ? b : c ? d : e"),
        ("(a?b:c)?d:e", "(a ? b : c) ? d : e"),
        ("!(a&&b)||-c<1", "!(a && b) || -c < 1"),
        ("has(a.b.c)", "has(a.b.c)"),
        ("a.?b[?'c'][0]", "a.?b[?'c'][0]"),
        ('a in ["x", "it\'s"]', "a in ['x', 'it\\'s']"),
        ("{'a':1,?b:c}", "{'a': 1, ?b: c}"),
        ("a.all(x,x>1)", "a.all(x, x > 1)"),
        ("a.filter(x,x>1).map(k,k==2,k)", "a.filter(x, x > 1).map(k, k == 2, k)"),
        ("a.transformMap(k,v,v+1)", "a.transformMap(k, v, v + 1)"),
        ("a.optMap(x,x+1)", "a.optMap(x, x + 1)"),
        ("a.sortBy(x,x.n)", "a.sortBy(x, x.n)"),
        ("b'\\x01' == 1u", "b'\\x01' == 1u"),
    ],
)
def test_text(text: str, expected: str) -> None:
    """A tree has the text that authors of policies write."""
    root, issues = parser.parse(text)
    assert ([], expected) == (issues, unparse(root))


def test_the_text_of_a_tree_is_the_tree() -> None:
    """The text of a tree parses to the same tree."""
    generator = Generator(random.Random(11))
    for _ in range(300):
        case = generator.case()
        try:
            ours.compiled_with(str(case.term), case.variables)
        except CompileError:
            continue
        once = unparse(parser.parse(str(case.term))[0])
        assert once == unparse(parser.parse(once)[0])
