"""cel-python in a process of its own: its answers, and protection of the scan from its failures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from scanner import cel
from scanner.admission.compiled import Expression
from scanner.admission.cost_budget import Variables
from scanner.cel import Environment
from scanner.opinion.engine import EngineAnswer
from scanner.opinion.process import Process
from tests.opinion.engines import BABBLES, DIES, HANGS, NEVER_BEGINS

NOTHING: frozenset[str] = frozenset()
OBJECT = {"spec": {"replicas": 3, "flag": True, "list": [1, 2], "name": "a", "ratio": 0.5, "none": None}}


def expression(text: str) -> Expression:
    """An expression that compiles."""
    return Expression(text, cel.compile(text, Environment()))


@pytest.fixture(scope="module")
def engine() -> Iterator[Process]:
    """cel-python with the values of an object."""
    with Process() as process:
        process.show({"object": OBJECT, "oldObject": None}, NOTHING)
        yield process


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.replicas", EngineAnswer("value", value=("int", "3"))),
        ("object.spec.flag", EngineAnswer("value", value=("bool", True))),
        ("object.spec.ratio", EngineAnswer("value", value=("double", "0.5"))),
        ("object.spec.name + 'b'", EngineAnswer("value", value=("string", "ab"))),
        ("object.spec.none", EngineAnswer("value", value=("null", None))),
        ("object.spec.list.map(x, x + 1)", EngineAnswer("value", value=("list", [["int", "2"], ["int", "3"]]))),
        ("{'a': 1u}", EngineAnswer("value", value=("map", [[["string", "a"], ["uint", "1"]]]))),
        ("duration('1s')", EngineAnswer("value", value=("duration", "1000000000"))),
        ("timestamp('1970-01-01T00:00:01Z')", EngineAnswer("value", value=("timestamp", "1000000000"))),
        ("bytes('a')", EngineAnswer("value", value=("bytes", "61"))),
    ],
)
def test_values_come_back_with_their_types(engine: Process, text: str, expected: EngineAnswer) -> None:
    """All types of CEL keep their type."""
    assert expected == engine.ask(expression(text))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("object.spec.missing == 1", "error"),
        ("object.?spec.orValue(1) == 1", "refused"),
        ("object.spec.list.all(i, x, x > 0)", "crash"),
    ],
)
def test_an_unsupported_expression_has_an_answer(engine: Process, text: str, kind: str) -> None:
    """A failure does not end the process, and the next expression is evaluated."""
    assert kind == engine.ask(expression(text)).kind
    assert EngineAnswer("value", value=("bool", True)) == engine.ask(expression("object.spec.flag"))


def test_variables_are_shown() -> None:
    """Variables have values of the other engine's types."""
    variable = expression("object.spec.list")
    environment = Environment().add_variable("v", cel.DYN)
    activation: dict[str, object] = {"object": OBJECT}
    activation["variables"] = Variables({"v": variable}, activation)
    text = "variables.v.size() == 2"
    with Process() as process:
        process.show(activation, frozenset({"v"}))
        assert EngineAnswer("value", value=("bool", True)) == process.ask(
            Expression(text, cel.compile(text, environment))
        )


@pytest.mark.parametrize("evil", [HANGS, DIES])
def test_a_hang_or_a_crash_is_met_once(evil: tuple[str, ...]) -> None:
    """The process restarts, and evaluates all other expressions."""
    with Process(evil, patience=0.5) as process:
        process.show({"object": OBJECT}, NOTHING)
        kinds = [process.ask(expression(text)).kind for text in ("true", "'evil' == ''", "'evil' == ''", "true")]
    assert ["value", "silent", "silent", "value"] == kinds


def test_nonsense_is_an_answer_too() -> None:
    """An invalid response is an answer without a value."""
    with Process(BABBLES, patience=0.5) as process:
        process.show({"object": OBJECT}, NOTHING)
        assert "refused" == process.ask(expression("'evil' == ''")).kind


def test_an_engine_that_never_begins_is_given_up() -> None:
    """The scan continues without the engine."""
    with Process(NEVER_BEGINS, patience=0.5) as process:
        process.show({"object": OBJECT}, NOTHING)
        assert {"silent"} == {process.ask(expression(f"{number} == 1")).kind for number in range(30)}


def test_memory_is_bounded() -> None:
    """An evaluation that needs too much memory ends in the other process alone."""
    text = "[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, object.big + object.big)))"
    with Process(patience=10.0) as process:
        process.show({"object": {"big": "x" * 5_000_000}}, NOTHING)
        assert process.ask(expression(text)).kind in ("crash", "silent")
        assert EngineAnswer("value", value=("bool", True)) == process.ask(expression("true"))


def test_the_process_ends_with_the_scan() -> None:
    """No process is left after the scan."""
    with Process() as process:
        process.show({"object": OBJECT}, NOTHING)
        process.ask(expression("true"))
        running = process.running
    assert running is not None
    assert running.poll() is not None


def test_no_other_module_imports_cel_python() -> None:
    """The comparison does not import cel-python either: the import takes half a second."""
    check = "import sys, scanner.opinion.comparison, scanner.opinion.process, scanner.scan.run; sys.exit('celpy' in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", check], check=False).returncode
