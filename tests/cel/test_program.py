"""The compiler's interface: `compile`, `evaluate`, result types and `reads`."""

from __future__ import annotations

import pytest

from scanner.cel import BOOL, NULL, STRING, CompileError, Environment, EvaluationError, Lazy, Value, compile
from scanner.cel.checking.env import AUTHORIZATION, PARAMS
from scanner.cel.types.type_system import INT

ENVIRONMENT = Environment()
OBJECT = {
    "spec": {"replicas": 3, "nul": None, "list": [1, 2], "s": "abc", "f": 1.5},
    "metadata": {"labels": {"a": "b"}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.replicas <= 5", True),
        ("has(object.spec.missing)", False),
        ("has(object.spec.nul)", True),
        ("object.spec.nul == null", True),
        ("has(object.spec.nul.x)", False),
        ("object.spec.?missing.x.orValue(7) == 7", True),
        ("object.spec.?nul.orValue('d') == null", True),
        ("object.spec.list[1.0] == 2", True),
        ("'a' in object.metadata.labels", True),
        ("object.spec.f == 1.5 && object.spec.replicas == 3.0", True),
        ("object.spec.s.matches('b')", True),
        ("object.spec.s == 3", False),
        ("object.spec.missing == 1 || true", True),
        ("object.spec.missing == 1 && false", False),
        ("object.spec.list.exists(x, x == 2 || object.spec.missing == 1)", True),
        ("{'a': 1, ?'a': optional.none()} == {}", True),
        ("{'a': 1, ?'a': optional.none(), 'a': 3} == {'a': 3}", True),
        ("[1, 2].transformMapEntry(i, v, {quantity('1'): v}).size() == 2", True),
        ("oldObject == null", True),
        ("type(object.spec.replicas) == int", True),
    ],
)
def test_values(text: str, expected: object) -> None:
    """An expression has the value that kube-apiserver computes."""
    assert expected == compile(text, ENVIRONMENT).evaluate({"object": OBJECT, "oldObject": None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("object.spec.missing == 1", "no such key: missing"),
        ("object.spec.nul.x == 1", "no such key: x"),
        ("has(object.spec.missing.x)", "no such key: missing"),
        ("object.spec.list[5] == 1", "index out of bounds: 5"),
        ("object.spec.list.x == 1", "unsupported index type 'string' in list"),
        ("object.spec.s + 1 == 4", "no such overload"),
        ("object.spec.nul + 1 == 1", "no such overload: _+_"),
        ("object.spec.replicas / 0 == 1", "division by zero"),
        ("object.spec.replicas % 0 == 1", "modulus by zero"),
        ("object.spec.replicas + 9223372036854775807 > 0", "integer overflow"),
        ("int(object.spec.s) == 1", "type conversion error from 'string' to 'int'"),
        ("object.spec.list.all(x, x < 2 || object.spec.missing == 1)", "no such key: missing"),
        ("object.spec.nul.all(x, true)", "got 'types.Null', expected iterable type"),
        ("size(object.spec.replicas) == 1", "no such overload: size"),
        ("timestamp(object.spec.nul) == timestamp(object.spec.nul)", "no such overload: timestamp(null_type)"),
        ("quantity(object.spec.replicas).isInteger()", "no such overload: quantity(int)"),
        ("oldObject.spec == 1", "no such key: spec"),
    ],
)
def test_errors(text: str, message: str) -> None:
    """An evaluation that fails has kube-apiserver's message."""
    with pytest.raises(EvaluationError) as caught:
        compile(text, ENVIRONMENT).evaluate({"object": OBJECT, "oldObject": None})
    assert message == str(caught.value)


def test_the_result_type_must_be_allowed() -> None:
    """A dyn result is refused where a bool is required."""
    with pytest.raises(CompileError) as caught:
        compile("object.spec.enabled", ENVIRONMENT.require_results(BOOL))
    assert caught.value.detail == "must evaluate to bool but got dyn"


def test_several_allowed_results_are_listed() -> None:
    """The error for a result lists all allowed types, such as string and null for an audit annotation."""
    with pytest.raises(CompileError) as caught:
        compile("true", ENVIRONMENT.require_results(STRING, NULL))
    assert str(caught.value) == "must evaluate to one of [string null_type] but got bool"


def test_a_compile_error_points_at_its_place() -> None:
    """The excerpt has dots up to the column of the error."""
    with pytest.raises(CompileError) as caught:
        compile("request.foo == 'x'", ENVIRONMENT)
    expected = "ERROR: <input>:1:8: undefined field 'foo'\n | request.foo == 'x'\n | .......^"
    assert (expected, f"compilation failed: {expected}") == (str(caught.value), caught.value.detail)


def test_params_are_declared_on_demand() -> None:
    """`params` is undeclared in an environment that was not extended with it."""
    with pytest.raises(CompileError, match=r"undeclared reference to 'params' \(in container ''\)"):
        compile("params.x == 1", ENVIRONMENT)
    assert compile("params.x == 1", ENVIRONMENT.extend(PARAMS)).evaluate({"params": {"x": 1}}) is True


def test_variables_are_typed_by_their_expressions() -> None:
    """A composed variable has its declared type; another name is an undefined field."""
    environment = ENVIRONMENT.add_variable("count", INT)
    with pytest.raises(CompileError, match="undefined field 'other'"):
        compile("variables.other == 1", environment)
    with pytest.raises(CompileError, match=r"found no matching overload for '_==_' applied to '\(int, string\)'"):
        compile("variables.count == 'a'", environment)


class Variables(Lazy):
    """Two variables, and the names of those that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def names(self) -> tuple[str, ...]:
        return "count", "other"

    def find(self, name: str) -> tuple[Value] | None:
        self.found.append(name)
        return (3,)


def test_variables_are_read_when_needed() -> None:
    """Only the variables on the way to the result are evaluated."""
    variables = Variables()
    environment = ENVIRONMENT.add_variable("count", INT).add_variable("other", INT)
    program = compile("false && variables.other == 1 || variables.count == 3", environment)
    assert program.evaluate({"variables": variables}) is True
    assert variables.found == ["count"]


def test_a_program_has_the_paths_that_it_reads() -> None:
    """The paths of a program end where names are no longer constant."""
    environment = ENVIRONMENT.extend(AUTHORIZATION)
    program = compile(
        "object.spec.template.containers.all(c, c.name == request.userInfo.username) && oldObject == null"
        " && object.metadata.labels['a'] == object.metadata[object.kind]",
        environment,
    )
    expected = {
        ("object", "spec", "template", "containers"),
        ("request", "userInfo", "username"),
        ("oldObject",),
        ("object", "metadata", "labels", "a"),
        ("object", "metadata"),
        ("object", "kind"),
    }
    assert expected == program.reads


@pytest.mark.parametrize("text", ["[?dyn(1)]", "{?'a': object.b}", "[optional.of(1), ?object.b]"])
def test_expressions_that_crash_upstreams_compiler_are_refused(text: str) -> None:
    """An expression that crashes upstream's compiler does not compile: no policy with it can be stored."""
    with pytest.raises(CompileError, match="internal error"):
        compile(text, ENVIRONMENT)


def test_programs_are_cached() -> None:
    """The same text in an equal environment is compiled once."""
    assert compile("object.a == 1", Environment()) is compile("object.a == 1", Environment())
