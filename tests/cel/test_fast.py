"""Generated functions: when they answer, when the closures do, and what people see of them."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from itertools import product

import pytest

from scanner.cel import BOOL, Environment, EvaluationError, Lazy, Program, Value, compile
from scanner.cel.errors import Interrupted
from scanner.cel.generation.fast import Watch

ENVIRONMENT = Environment()


def generated(text: str) -> Program:
    """A program that asks its generated function first."""
    program = compile(text, ENVIRONMENT)
    program.generate()
    return program


def test_a_function_is_generated_once() -> None:
    """Whoever asks for it again, for objects of another namespace, gets the same one."""
    program = compile("object.x == 1", ENVIRONMENT)
    assert program.generate() is program.generate() is not None


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("object.x == 1", True, False),
        ("object.x != 1", True, True),
        ("object.x == 0", False, False),
        ("object.x == 1", 1.0, True),
        ("object.x == 9007199254740993", 9007199254740992.0, True),
        ("object.x == 'a'", ["a"], False),
        ("object.x == true", 1, False),
        ("object.x in ['a', 'b']", 1, False),
        ("object.x in [1, 2]", True, False),
        ("object.x + 1 == 2", 1, True),
        ("has(object.x.y)", "text", False),
        ("has(object.x.y)", None, False),
        ("has(object.x.y) && object.x.y == 'a'", {"y": "a"}, True),
        ("!has(object.x.y) || object.x.y == 'a'", {}, True),
        ("object.x.all(k, k == 'a')", {"a": 1}, True),
        ("object.x.exists(k, v, k == 'a' && v == 1)", {"a": 1}, True),
        ("object.x.exists_one(v, v > 1)", [1, 2, 3], False),
        ("object.x.filter(v, v > 1).map(v, v * 2) == [4, 6]", [1, 2, 3], True),
        ("object.?x.?y.orValue('none') == 'none'", {}, True),
        ("object.x.size() > 2 ? object.x.all(c, c == 'a') : false", ["a", "a", "a"], True),
        ("string(object.x) == '1'", 1, True),
        ("object.x % 3 == -1", -4, True),
        ("object.x / 3 == -1", -4, True),
    ],
)
def test_answers_are_those_of_the_closures(text: str, value: object, expected: object) -> None:
    """Where Python and CEL differ about plain values."""
    program = generated(text)
    assert (expected, expected) == (
        program.evaluate({"object": {"x": value}}),
        program.evaluate_exactly({"object": {"x": value}}),
    )


@pytest.mark.parametrize(
    ("text", "value", "error"),
    [
        ("object.x[0] == 'a'", "abc", "no such key: 0"),
        ("object.x[-1] == 1", [1], "index out of bounds: -1"),
        ("object.x[true] == 1", [0, 1], "unsupported index type 'bool' in list"),
        ("object.x + 1 > 1", True, "no such overload"),
        ("object.x + 1 > 1", 2**63 - 1, "integer overflow"),
        ("object.x.contains('a')", ["a"], "no such overload"),
        ("object.x.all(c, c == 'a')", "aaa", "got 'types.String', expected iterable type"),
        ("object.x && true", 1, "no such overload"),
        ("has(object.x.y.z)", {}, "no such key: y"),
        ("object.y == 1", 1, "no such key: y"),
        ("object.x % 0 == 1", 1, "modulus by zero"),
    ],
)
def test_errors_are_those_of_the_closures(text: str, value: object, error: str) -> None:
    """Where Python would have an answer, or another error."""
    program = generated(text)
    with pytest.raises(EvaluationError, match=rf"^{error}"):
        program.evaluate({"object": {"x": value}})


def test_an_error_that_another_operand_absorbs() -> None:
    """The function raises; the closures find the operand that decides."""
    assert generated("object.missing == 1 || object.x == 1").evaluate({"object": {"x": 1}}) is True


def test_a_function_that_mostly_raises_is_asked_no_more() -> None:
    """After two rounds of failures the closures decide alone."""
    watch = Watch(lambda _: True)
    assert [False] * 127 + [True] == [watch.fell_back() is None for _ in range(128)]


_LEAVES = ("object.t", "object.f", "object.missing", "object.n.y", "object.n", "[object.t, object.missing][0]")
_SHAPES = (
    "{0} && {1} && {2}",
    "{0} || {1} || {2}",
    "({0} && {1}) || {2}",
    "({0} || {1}) && {2}",
    "{0} && ({1} || !({2}))",
    "({0} ? {1} || {2} : {2} && {0})",
    "object.xs.all(x, x == 1 || {0}) && {1}",
    "object.xs.exists(x, {0} && x.y) || {2}",
    "object.xs.all(x, x.y || {1})",
    "object.xs.exists(x, x.z && {2})",
    "object.xs.all(x, object.xs.exists(y, y == x && {1}) || {0})",
    "object.xs.exists_one(x, {0} || {2})",
    "object.xs.filter(x, {0} && {1}).size() > 0 || {2}",
)


@pytest.mark.parametrize("shape", _SHAPES)
def test_absorbing_forms_answer_as_the_closures(shape: str) -> None:
    """Whatever is true, false or in error: where the form has an answer it is theirs, and it has one where they have."""
    document = {"t": True, "f": False, "n": 1, "xs": [1, {"y": False, "z": True}, {}]}
    for leaves in product(_LEAVES, repeat=3):
        program = compile(shape.format(*leaves), ENVIRONMENT)
        form = program.absorbing()
        assert form is not None
        assert answer(program.evaluate_exactly, document) == answer(form, document)


def answer(evaluate: Callable[[dict[str, object]], object], document: object) -> object:
    """The value, or that there is none."""
    try:
        return evaluate({"object": document})
    except Exception:  # noqa: BLE001 - functions raise anything at all
        return "no value"


def test_nothing_absorbs_the_end_of_an_evaluation() -> None:
    """A limit that was reached ends it, whatever other operands say."""

    class Endless(Lazy):
        def find(self, _name: str) -> tuple[Value]:
            raise Interrupted

    program = compile("variables.x || object.t", ENVIRONMENT.with_variable("x", BOOL))
    form = program.absorbing()
    assert form is not None
    with pytest.raises(Interrupted):
        form({"object": {"t": True}, "variables": Endless()})


def test_a_function_that_mostly_raises_gets_along_with_it() -> None:
    """Its absorbing form takes its place, and answers without the closures."""
    program = generated("object.missing == 1 || object.x == 1")
    for _ in range(200):
        assert program.evaluate({"object": {"x": 1}}) is True
    assert program.is_generated


def test_a_function_that_raises_now_and_then_is_kept() -> None:
    """As often as not it has an answer."""
    watch = Watch(lambda _: True)
    for _ in range(1000):
        ask = watch.fell_back()
        assert ask is not None
        ask({})


def test_what_only_closures_can_evaluate() -> None:
    """It has no function, and a value all the same."""
    program = compile("{'a': 1}.transformMap(k, v, v + object.x) == {'a': 2}", ENVIRONMENT)
    assert program.generate() is None
    assert "" == program.python()
    assert program.evaluate({"object": {"x": 1}}) is True


def test_the_python_of_an_expression() -> None:
    """People can read it."""
    assert (
        "def cel(activation):\n    object_1 = activation['object']\n    return object_1['spec']['replicas'] == 5"
        == compile("object.spec.replicas == 5", ENVIRONMENT).python()
    )


@pytest.mark.parametrize(
    "text", ["object.x == '\\'); import os; (\\''", "object.x == '\\u0000'", 'object.x == """\n"""']
)
def test_no_text_becomes_python(text: str) -> None:
    """Whatever is in the literals of an expression, they stay literals."""
    assert generated(text).evaluate({"object": {"x": 1}}) is False


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["dyn(2.1) == object.x || dyn(1) == null || true", "dyn(1)['a'] == 1 || true"])
def test_python_says_nothing_about_the_expression(text: str) -> None:
    """Its warnings would reach people who have written no Python."""
    assert generated(text).evaluate({"object": {"x": 1}}) is True


def test_names_of_variables_may_be_anything() -> None:
    """Python's own words too."""
    assert generated("[1].all(lambda, lambda == 1) && [1].exists(None, None == 1)").evaluate({}) is True


def test_a_traceback_shows_the_expression() -> None:
    """The line of CEL that failed, not generated Python."""
    function = generated("object.spec.replicas == 5 ||\n object.spec.nodes == 3").generate()
    assert function is not None
    try:
        function({"object": {"spec": {"replicas": 1}}})
    except KeyError:
        shown = traceback.format_exc()
    assert "\n    object.spec.nodes == 3\n" in shown


def test_loops_nested_deeper_than_python_allows() -> None:
    """Twenty-one loops."""
    text = "true"
    for depth in range(21):
        text = f"[{depth}].all(v{depth}, {text})"
    program = compile(f"object.x == 1 || {text}", ENVIRONMENT)
    assert program.generate() is None or program.evaluate({"object": {"x": 2}}) is True
    assert program.evaluate({"object": {"x": 2}}) is True
