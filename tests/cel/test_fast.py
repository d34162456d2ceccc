"""Generated functions: the cases that they answer, the cases that the closures answer, and their text."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from itertools import product

import pytest

from scanner.cel import BOOL, Environment, EvaluationError, Lazy, Program, Value, compile
from scanner.cel.errors import Interrupted
from scanner.cel.generation.fast import Watch
from scanner.cel.values.exact_only import EXACT_ONLY, force_closures

ENVIRONMENT = Environment()


def generated(text: str) -> Program:
    """Return a program that calls its generated function first."""
    program = compile(text, ENVIRONMENT)
    program.generate()
    return program


def test_a_function_is_generated_once() -> None:
    """A program returns the same function each time."""
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
    """The generated function has CEL's answer where Python's own differs."""
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
    """The error is CEL's where Python would have an answer, or another error."""
    program = generated(text)
    with pytest.raises(EvaluationError, match=rf"^{error}"):
        program.evaluate({"object": {"x": value}})


def test_an_error_that_another_operand_absorbs() -> None:
    """The closures evaluate the operand that decides when the function raises."""
    assert generated("object.missing == 1 || object.x == 1").evaluate({"object": {"x": 1}}) is True


def test_a_function_that_mostly_raises_is_no_longer_called() -> None:
    """After 128 exceptions without successes the closures decide alone."""
    watch = Watch(lambda _: True)
    assert [False] * 127 + [True] == [watch.count_fallback() is None for _ in range(128)]


_TEXTS: tuple[object, ...] = ("a", "bc", "", 1, None, True, ["a"], {"a": 1})
_LISTS: tuple[object, ...] = ([], ["a", "b"], ["x", 1], [1, "a"], {"b": 1}, "ab", 1, None)


@pytest.mark.parametrize(
    "text",
    [
        "object.x.startsWith('a') || object.x.startsWith('b') || object.y.size() > 1 || object.x.endsWith('c')",
        "object.y.all(v, v.startsWith('a') || v.startsWith('b') || v.endsWith('z') || v.endsWith('c'))",
        "object.y.exists(v, object.x.startsWith(v))",
        "object.y.exists(v, object.x.endsWith(v)) && true",
        "object.y.exists(v, (object.x + v).startsWith(v))",
        "['a', 'b'].exists(v, object.x.startsWith(v))",
        "[].exists(v, object.missing.startsWith(v))",
        "!object.y.exists(v, object.x.startsWith(v)) || object.y.exists(v, v == object.x)",
        "'<' + object.x + ':' + object.y[0] + '>' + object.x == ''",
        "object.x + 'a' + ('b' + object.x) + 'c' + 'd' == ''",
        "(object.x + object.y).size() > 2",
        "(object.y + object.y)[0] == 'a'",
        "has(object.x) && has(object.y) && object.y.all(v, v != object.x) && has(object.x.a) && object.x.a == 1",
        "!has(object.y) || object.y.exists(v, v == 'a') || object.x == 'bc' || object.x.startsWith('a')",
        "quantity('1x').isLessThan(quantity(object.x))",
        "quantity('2Ki').isGreaterThan(quantity(object.x))",
    ],
)
def test_functions_have_the_outcomes_of_the_closures_for_values_of_all_kinds(text: str) -> None:
    """For texts, lists and values of other kinds, the outcome is that of the closures: the same value, or the same error."""
    program = generated(text)
    for x, y in product(_TEXTS, _LISTS):
        inputs: dict[str, object] = {"object": {"x": x, "y": y}}
        assert outcome(program.evaluate_exactly, inputs) == outcome(program.evaluate, inputs)


def outcome(evaluate: Callable[[dict[str, object]], object], inputs: dict[str, object]) -> object:
    """Return the value, or the error's text."""
    try:
        return evaluate(inputs)
    except EvaluationError as error:
        return str(error)


_LEAVES = (
    "object.t",
    "object.f",
    "object.missing",
    "object.n.y",
    "object.n",
    "[object.t, object.missing][0]",
    "has(object.missing.y)",
    "(object.o.y.z ? object.t : object.missing)",
)
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


@pytest.mark.long
@pytest.mark.parametrize("shape", _SHAPES)
def test_absorbing_forms_answer_as_the_closures(shape: str) -> None:
    """For all operands, true, false or errors, the absorbing form has a value where the closures have one, and the same value."""
    document = {"t": True, "f": False, "n": 1, "o": {"y": {}}, "xs": [1, {"y": False, "z": True}, {}]}
    for leaves in product(_LEAVES, repeat=3):
        program = compile(shape.format(*leaves), ENVIRONMENT)
        form = program.absorbing()
        assert form is not None
        assert answer(program.evaluate_exactly, document) == answer(form, document)


def answer(evaluate: Callable[[dict[str, object]], object], document: object) -> object:
    """Return the value, or a mark for none."""
    try:
        return evaluate({"object": document})
    except Exception:  # noqa: BLE001 - functions raise anything at all
        return "no value"


def test_nothing_absorbs_the_end_of_an_evaluation() -> None:
    """The absorbing form does not absorb an interruption, even if another operand would decide."""

    class Endless(Lazy):
        def find(self, _name: str) -> tuple[Value]:
            raise Interrupted

    program = compile("variables.x || object.t", ENVIRONMENT.add_variable("x", BOOL))
    form = program.absorbing()
    assert form is not None
    with pytest.raises(Interrupted):
        form({"object": {"t": True}, "variables": Endless()})


def test_a_function_that_mostly_raises_gets_its_absorbing_form() -> None:
    """The absorbing form replaces a function that mostly raises, and answers without the closures."""
    program = generated("object.missing == 1 || object.x == 1")
    for _ in range(200):
        assert program.evaluate({"object": {"x": 1}}) is True
    assert program.is_generated


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("object.a.b.c == true", "no such key: b"),
        ("1 < object.b", "no such key: b"),
        ("object.b == object.c", "no such key: b"),
        ("object.b ? object.a : object.c", "no such key: b"),
        ("object.b.all(x, x == object.c)", "no such key: b"),
        ("has(object.a.b.c)", "no such key: b"),
        ("object.a.b[object.c] == 1", "no such key: b"),
    ],
)
def test_an_expression_that_always_errs_reads_its_first_path_alone(text: str, error: str) -> None:
    """The error of an absent first path is that of the closures, and there is none where the path is present."""
    program = compile(text, ENVIRONMENT)
    refusal = program.refusal()
    assert refusal is not None
    assert error == str(refusal({"object": {"a": {}}}))
    assert error == outcome(program.evaluate_exactly, {"object": {"a": {}}})
    assert refusal({"object": {"a": {"b": {"c": 1}}, "b": 1}}) is None


@pytest.mark.parametrize(
    "text",
    [
        "object.b == 1 || true",
        "object.b && object.c",
        "object.b == (dyn(b'a') in [1, 2])",
        "object.b.distinct() == []",
        "[object.b] == [1]",
        "variables.b == true",
        "true",
    ],
)
def test_an_absent_path_that_may_not_be_the_error(text: str) -> None:
    """There is no such function where another operand may decide, or end the evaluation."""
    assert compile(text, ENVIRONMENT.add_variable("b", BOOL)).refusal() is None


def test_an_expression_whose_evaluations_err() -> None:
    """After many errors a program has the same error, and the value of an object without one."""
    program = generated("object.missing == 1")
    others: tuple[dict[str, object], ...] = ({"object": {"missing": {}}}, {"object": None}, {})
    erring: dict[str, object] = {"object": {"x": 1}}
    for inputs in (*(erring,) * 300, *others):
        assert outcome(program.evaluate_exactly, inputs) == outcome(program.evaluate, inputs)
    assert not program.is_generated
    assert program.evaluate({"object": {"missing": 1}}) is True


def test_a_block_of_closures_ends_with_an_error() -> None:
    """Nested blocks in which the closures alone evaluate leave none open, even where the inner block raises."""
    with force_closures():
        with pytest.raises(KeyError), force_closures():
            raise KeyError
        assert 1 == EXACT_ONLY.blocks
    assert 0 == EXACT_ONLY.blocks


def test_a_function_that_raises_half_the_time_is_kept() -> None:
    """A function with as many successes as exceptions is called again each time."""
    watch = Watch(lambda _: True)
    for _ in range(1000):
        ask = watch.count_fallback()
        assert ask is not None
        ask({})


def test_an_expression_without_a_function_has_a_value() -> None:
    """An expression that only the closures can evaluate has no function and no Python text, but a value."""
    program = compile("{'a': 1}.transformMap(k, v, v + object.x) == {'a': 2}", ENVIRONMENT)
    assert program.generate() is None
    assert "" == program.python()
    assert program.evaluate({"object": {"x": 1}}) is True


def test_the_python_of_an_expression() -> None:
    """The Python text of an expression is a readable function."""
    assert (
        "def cel(activation):\n    object_1 = activation['object']\n    return object_1['spec']['replicas'] == 5"
        == compile("object.spec.replicas == 5", ENVIRONMENT).python()
    )


@pytest.mark.parametrize(
    "text", ["object.x == '\\'); import os; (\\''", "object.x == '\\u0000'", 'object.x == """\n"""']
)
def test_no_text_becomes_python(text: str) -> None:
    """The text of a literal stays a literal: Python never parses it."""
    assert generated(text).evaluate({"object": {"x": 1}}) is False


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("text", ["dyn(2.1) == object.x || dyn(1) == null || true", "dyn(1)['a'] == 1 || true"])
def test_python_warns_of_no_expression(text: str) -> None:
    """The compilation of a generated function prints no warning of Python."""
    assert generated(text).evaluate({"object": {"x": 1}}) is True


def test_variables_may_have_the_names_of_python_keywords() -> None:
    """Variables may be called `lambda` and `None`."""
    assert generated("[1].all(lambda, lambda == 1) && [1].exists(None, None == 1)").evaluate({}) is True


def test_a_traceback_shows_the_expression() -> None:
    """A traceback contains the line of CEL that failed."""
    function = generated("object.spec.replicas == 5 ||\n object.spec.nodes == 3").generate()
    assert function is not None
    try:
        function({"object": {"spec": {"replicas": 1}}})
    except KeyError:
        shown = traceback.format_exc()
    assert "\n    object.spec.nodes == 3\n" in shown


def test_loops_nested_deeper_than_python_allows() -> None:
    """An expression of twenty-one nested loops has a value, with or without a function."""
    text = "true"
    for depth in range(21):
        text = f"[{depth}].all(v{depth}, {text})"
    program = compile(f"object.x == 1 || {text}", ENVIRONMENT)
    assert program.generate() is None or program.evaluate({"object": {"x": 2}}) is True
    assert program.evaluate({"object": {"x": 2}}) is True
