"""Hostile policies and objects have upstream's answers, in bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from scanner import cel
from scanner.cel.stack import run_with_room

SECONDS = 60.0
"""Far more than any of these takes, on a machine that does other things too."""
ENVIRONMENT = cel.Environment()
DEEPEST_JSON = 9_999
TOO_DEEP = "Syntax error: the expression nests more than 250 levels deep"
TOO_DEEP_TO_VISIT = "ERROR: <input>:-1:0: max recursion depth exceeded"


@pytest.fixture(autouse=True)
def _in_bounded_time() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < SECONDS


def _value(text: str, body: object = None) -> cel.Value:
    return cel.compile(text, ENVIRONMENT).evaluate({"object": body, "oldObject": None})


def _nested(levels: int, *, lists: bool) -> object:
    body: object = 1
    for _ in range(levels):
        body = [body] if lists else {"a": body}
    return body


@pytest.mark.parametrize(
    "text",
    [
        "(" * 249 + "true" + ")" * 249,
        " && ".join(["true"] * 10_000),
        " || ".join(["object.a"] * 7_000) + " || true",
        " + ".join(["1"] * 250) + " == 250",
        " * ".join(["1"] * 250) + " == 1",
        "true ? true : " * 249 + "false",
        "!" * 5_000 + "true",
        "[" * 249 + "]" * 249 + " != []",
        "{1: " * 120 + "1" + "}" * 120 + " != {}",
        "[1].exists(x, " * 120 + "true" + ")" * 120,
        "object[" * 120 + "'a'" + "]" * 120 + " == 1 || true",
        "//" + "x" * 50_000 + "\ntrue",
        " " * 90_000 + "true",
        f"'{'a' * 99_000}' != ''",
        f"[{','.join(['1'] * 20_000)}].size() == 20000",
    ],
    ids=lambda text: text[:20],
)
def test_large_expressions_within_the_limits_evaluate(text: str) -> None:
    """An expression within upstream's limits evaluates: no other limit applies."""
    assert _value(text) is True


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("(" * 250 + "true" + ")" * 250, f"ERROR: <input>:1:251: {TOO_DEEP}"),
        ("(" * 90_000, f"ERROR: <input>:1:251: {TOO_DEEP}"),
        ("1 + (" * 125 + "1" + ")" * 125, f"ERROR: <input>:1:626: {TOO_DEEP}"),
        ("1 + 1 * (" * 84 + "1" + ")" * 84, f"ERROR: <input>:1:752: {TOO_DEEP}"),
        ("true ? 1 : " * 250 + "1", f"ERROR: <input>:1:2751: {TOO_DEEP}"),
        (" + ".join(["1"] * 2_000), TOO_DEEP_TO_VISIT),
        (" + ".join(["1"] * 252), TOO_DEEP_TO_VISIT),
        ("object" + ".a" * 251, TOO_DEEP_TO_VISIT),
        ("'a'" + ".lowerAscii()" * 251, TOO_DEEP_TO_VISIT),
        (
            f"'{'a' * 100_000}'",
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100002, limit 100000",
        ),
    ],
    ids=lambda text: text[:20],
)
def test_expressions_beyond_the_limits_are_refused(text: str, complaint: str) -> None:
    """An expression beyond a limit is refused with the limit and its place, never with Python's limit of recursion."""
    with pytest.raises(cel.CompileError) as refused:
        cel.compile(text, ENVIRONMENT)
    assert complaint == str(refused.value).partition("\n")[0]


def test_an_expression_has_a_hundred_complaints_at_most() -> None:
    """An expression with more than a hundred reserved names has a hundred errors and a line for the rest."""
    with pytest.raises(cel.CompileError) as refused:
        cel.compile(f"[{','.join(['as'] * 150)}]", ENVIRONMENT)
    assert str(refused.value).endswith("50 more errors were truncated")


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "object.x == object.y",
        "!(object.x != object.y)",
        "object.x in [object.y]",
        "[object.x].indexOf(object.y) == 0",
        "[object.x, object.y].distinct().size() == 1",
        "optional.of(object.x) == optional.of(object.y)",
        "sets.contains([object.x], [object.y])",
        "'%s'.format([object.x]).size() > 9999",
        "[[object.x]].flatten(9223372036854775807).size() == 1",
        "[object.x].exists(x, x == object.y)",
    ],
)
def test_documents_may_nest_as_deeply_as_the_api_allows(text: str, *, lists: bool) -> None:
    """Documents of ten thousand levels evaluate, which is deeper than the stacks of Python and C."""
    body = {"x": _nested(DEEPEST_JSON, lists=lists), "y": _nested(DEEPEST_JSON, lists=lists)}
    assert _value(text, body) is True


def test_a_larger_stack_returns_values_and_raises_errors() -> None:
    """Values and errors pass through the larger stack; a call that is deeper than this stack raises RecursionError."""

    def down(levels: int) -> int:
        return 0 if levels == 0 else 1 + down(levels - 1)

    assert run_with_room(lambda: down(50_000)) == 50_000
    with pytest.raises(ZeroDivisionError):
        run_with_room(lambda: 1 // (down(50_000) - 50_000))
    with pytest.raises(RecursionError):
        run_with_room(lambda: down(1_000_000))


@pytest.mark.parametrize(
    "text",
    [
        "object.s.matches('(a+)+$') == false",
        "object.s.matches('(a|aa)+$') == false",
        "object.s.find('(.*)(.*)(.*)(.*)c') == ''",
        "object.s.findAll('a*b').size() == 1",
    ],
)
def test_patterns_take_linear_time(text: str) -> None:
    """Patterns that would backtrack are matched within the time limit."""
    assert _value(text, {"s": "a" * 20_000 + "b"}) is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.s.size() == 2000000", True),
        ("object.s.upperAscii().startsWith('A')", True),
        ("object.s.replace('a', 'bb').size() == 4000000", True),
        ("object.s.split('a').size() == 2000001", True),
        ("object.s == object.s + ''", True),
        ("object.s.contains('b')", False),
        ("object.s.lastIndexOf('b') == -1", True),
        ("isURL(object.s) || isIP(object.s) || isCIDR(object.s) || isSemver(object.s)", False),
        ("object.s.matches('^a*$')", True),
    ],
)
def test_functions_take_a_text_of_two_megabytes(text: str, *, expected: bool) -> None:
    """Functions of a text of two megabytes answer within the time limit."""
    assert expected is _value(text, {"s": "a" * 2_000_000})


@pytest.mark.parametrize(
    ("text", "body", "expected"),
    [
        ("quantity(object.s).isGreaterThan(quantity('1'))", "9" * 6_000, True),
        ("isQuantity(object.s)", "1e" + "9" * 6_000, False),
        ("int(object.s) == 1", "0" * 6_000 + "1", True),
        ("duration(object.s) == duration('1s')", "0" * 6_000 + "1s", True),
        ("timestamp(0).getHours(object.s) == 1", "0" * 6_000 + "1:00", True),
        ("isSemver(object.s)", "9" * 6_000 + ".0.0", False),
        ("isCIDR(object.s)", "10.0.0.0/" + "9" * 6_000, False),
        ("object.s.size() == 3", "a\x00b", True),
        ("object.s == object.s && object.s.size() == 1", "\ud800", True),
        ("object.s == object.s", float("nan"), False),
        ("object.s in [object.s]", float("nan"), False),
        ("object.s < 0.0 || true", float("nan"), True),
        ("object.s > 9223372036854775807", 1e300, True),
    ],
)
def test_odd_values_are_values(text: str, body: object, *, expected: bool) -> None:
    """Numbers of any length, NaN, NUL and surrogates are values like any other."""
    assert expected is _value(text, {"s": body})
