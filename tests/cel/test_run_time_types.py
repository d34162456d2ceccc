"""Values whose types are not the declared ones: generated functions and closures have the same answer for every function.

A server declares `namespaceObject.metadata.creationTimestamp` as a timestamp, and its value is a string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import pytest

from scanner.cel import CompileError, Environment, EvaluationError, Program, compile
from scanner.cel.functions import load_functions
from scanner.cel.functions.declaration import Function, Overload
from scanner.cel.types.type_system import DYN, INT, STRING, TIMESTAMP, Type
from tests.oracle.ours import tagged

ENVIRONMENT = Environment()
OPERATORS = {
    **{f"_{sign}_": f"{{0}} {sign} {{1}}" for sign in ("+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=")},
    **{f"_{sign}_": f"{{0}} {sign} {{1}}" for sign in ("&&", "||")},
    "!_": "!({0})",
    "-_": "-({0})",
    "@in": "{0} in {1}",
    "_[_]": "{0}[{1}]",
    "_[?_]": "{0}[?{1}]",
    "_?_:_": "{0} ? {1} : {2}",
}
OF_TYPES = {
    "bool": "true",
    "int": "1",
    "uint": "2u",
    "double": "1.5",
    "bytes": "b'a'",
    "null_type": "null",
    "type": "int",
    "string": "'2001-01-01T00:00:00Z'",
    "list": "[1]",
    "map": "{'a': 1}",
    "optional_type": "optional.of('a')",
    "google.protobuf.Timestamp": "timestamp('2001-01-01T00:00:00Z')",
    "google.protobuf.Duration": "duration('1s')",
    "kubernetes.URL": "url('http://a/')",
    "net.IP": "ip('1.2.3.4')",
    "net.CIDR": "cidr('1.2.3.0/24')",
    "kubernetes.Quantity": "quantity('1')",
    "kubernetes.Semver": "semver('1.2.3')",
}
VALUES = {name: compile(text, ENVIRONMENT).evaluate_exactly({}) for name, text in OF_TYPES.items()}
FOR_PARAMETERS = (TIMESTAMP, STRING, DYN, INT)


class Call(NamedTuple):
    """A call as an expression, and the declared types of the variables in it."""

    text: str
    variables: dict[str, Type]


def calls(function: Function, overload: Overload) -> Iterator[Call]:
    """The calls of an overload: all arguments are variables, or all but one are literals."""
    for chosen in FOR_PARAMETERS if overload.list_free_types() else (DYN,):
        types = [with_parameter(each, chosen) for each in overload.arguments]
        variables = {f"a{place}": each for place, each in enumerate(types)}
        yield Call(text_of(function, overload, [*variables]), variables)
        literals = [OF_TYPES.get(each.name, "a") for each in types]
        for place, name in enumerate(variables if len(types) > 1 else ()):
            texts = [*literals[:place], name, *literals[place + 1 :]]
            yield Call(text_of(function, overload, texts), {name: types[place]})


def with_parameter(type_: Type, chosen: Type) -> Type:
    """A type whose parameters are a chosen type."""
    if type_.family == "parameter":
        return chosen
    return replace(type_, parameters=tuple(with_parameter(each, chosen) for each in type_.parameters))


def text_of(function: Function, overload: Overload, arguments: list[str]) -> str:
    """A call in CEL."""
    if function.name in OPERATORS:
        return OPERATORS[function.name].format(*arguments)
    receiver, rest = (f"{arguments[0]}.", arguments[1:]) if overload.member else ("", arguments)
    return f"{receiver}{function.name}({', '.join(rest)})"


def program_of(call: Call) -> Program | None:
    """The program of a call; None for what no expression can write, and for what has no generated function."""
    try:
        program = compile(call.text, ENVIRONMENT.extend(tuple(call.variables.items())))
    except CompileError:
        return None
    return program if program.generate() else None


def differences(program: Program, call: Call) -> Iterator[str]:
    """One line for each value of any type that the two forms answer differently."""
    fitting: dict[str, object] = {name: VALUES.get(each.name) for name, each in call.variables.items()}
    for name, declared in call.variables.items():
        for kind, value in VALUES.items():
            activation = {**fitting, name: value}
            expected, found = (answer(each, activation) for each in (program.evaluate_exactly, program.evaluate))
            if expected != found:
                yield f"{call.text}, {name} is declared {declared.name} and is {kind}: {expected}, generated {found}"


def answer(evaluate: Callable[[Mapping[str, object]], object], activation: Mapping[str, object]) -> object:
    """The value or the error of an evaluation."""
    try:
        return tagged(evaluate(activation))
    except EvaluationError as error:
        return str(error)


FUNCTIONS = load_functions((1, 36), (1, 36), ())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_forms_answer_alike_for_values_of_any_type(name: str) -> None:
    """Every overload, with every pair of a declared type and the type of the value."""
    function = FUNCTIONS[name]
    made = [(call, program_of(call)) for overload in function.overloads for call in calls(function, overload)]
    assert [] == [line for call, program in made if program for line in differences(program, call)]


def test_all_functions_have_a_generated_form() -> None:
    """The test above compares two forms of all but those that only macros and syntax can name."""
    generated = {
        function.name
        for function in FUNCTIONS.values()
        for overload in function.overloads
        if any(program_of(call) for call in calls(function, overload))
    }
    assert {"@not_strictly_false", "@sortByAssociatedKeys", "_?._", "cel.@mapInsert"} == FUNCTIONS.keys() - generated


def test_a_timestamp_of_the_namespace_is_a_string_in_every_evaluation() -> None:
    """The server's error from the first evaluation on; the generated function evaluates from the fourth on."""
    program = compile("string(namespaceObject.metadata.creationTimestamp) == ''", ENVIRONMENT)
    namespace = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert ["no such overload: string(string)"] * 9 == [
        answer(program.evaluate, {"namespaceObject": namespace}) for _ in range(9)
    ]
