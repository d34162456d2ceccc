"""The declarations of all functions of all environments: each has the cost of a call at run time, and its maximum."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from scanner.cel import DYN, Environment, Value, allow_patches, compile
from scanner.cel.errors import EvaluationError
from scanner.cel.functions import LIBRARIES, load_functions
from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import UNIT, Operand, Price
from scanner.cel.syntax.tree import Literal
from scanner.cel.types.type_system import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type
from scanner.cel.values.extent import UNKNOWN, SizeBound, find_extent
from scanner.cel.values.values import NONE, Duration, Optional, Timestamp, UInt
from scanner.cel.values.values import type_of as value_type
from scanner.policies.kyverno.libraries import environment as kyverno_environment

FIRST, NEWEST = 28, 37
ENVIRONMENTS = {
    **{f"1.{minor}": allow_patches(Environment(version=(1, minor))) for minor in range(FIRST, NEWEST + 1)},
    "kyverno": kyverno_environment(namespaced=False),
    "kyverno, namespaced": kyverno_environment(namespaced=True),
}
TEXTS = (
    *("", "a", "10.0.0.1", "::1", "10.0.0.0/8", "fe80::/64", "https://example.com:80/a?b=c", "1.2.3", "1Gi", "uuid"),
    *("dns1123Label", "x" * 300, "ghcr.io/a/b:1", "[a-z]+", "%s and %d"),
)


class Sized(NamedTuple):
    """A value, and the extent of the values that it was made of."""

    value: Value
    extent: SizeBound


def functions(environment: Environment) -> dict[str, Function]:
    """Return all functions of an environment by name."""
    return load_functions(environment.version, environment.features, environment.extras)


CALLS = {
    (name, overload.id): (function, overload, environment)
    for environment in ENVIRONMENTS.values()
    for name, function in functions(environment).items()
    for overload in function.overloads
}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_every_function_declares_its_cost(environment: Environment) -> None:
    """Each function of an environment has a price and a bound."""
    declared = functions(environment)
    assert set() == {
        name for name, function in declared.items() if function.cost is None or function.cost.bound is None
    }


def test_every_library_is_in_an_environment() -> None:
    """The tests of this module iterate over the overloads of all libraries."""
    iterated = {overload for _, overload in CALLS}
    assert iterated >= {o.id for library in LIBRARIES for function in library.functions for o in function.overloads}


@pytest.mark.parametrize("call", CALLS, ids=".".join)
def test_no_call_costs_more_than_its_bound(call: tuple[str, str]) -> None:
    """For random arguments of the declared types no price exceeds the bound, in any release, with one or several candidates."""
    function, overload, environment = CALLS[call]
    chance = random.Random(".".join(call))
    prices = prices_of(function, overload)
    for _ in range(20):
        arguments = tuple(made(chance, type_, environment) for type_ in overload.arguments)
        values = tuple(argument.value for argument in arguments)
        result = result_of(function, overload, values)
        highest = max(price.rule(values, result if price.late else None) for price in prices)
        assert highest <= bound_of(function, arguments)


def prices_of(function: Function, overload: Overload) -> set[Price]:
    """Return the prices of calls of an overload in all releases."""
    candidates = ((overload.id,), tuple(other.id for other in function.overloads))
    releases = ((1, minor) for minor in range(FIRST, NEWEST + 1))
    return {function.price(ids, release) or UNIT for release in releases for ids in candidates}


def result_of(function: Function, overload: Overload, values: tuple[Value, ...]) -> Value | EvaluationError:
    """Return the value of a call, or its error; None where a receiver is missing, or the lists of a macro differ in length."""
    try:
        return function.find_run((overload.id,))(*values)
    except EvaluationError as error:
        return error
    except (AttributeError, IndexError):
        return None


def bound_of(function: Function, arguments: tuple[Sized, ...]) -> float:
    """Return the bound of a call with these arguments as literals."""
    assert function.cost is not None
    assert function.cost.bound is not None
    return function.cost.bound(
        tuple(Operand(argument.extent, Literal(0, 0, argument.value), is_constant=False) for argument in arguments)
    )


def made(chance: random.Random, type_: Type, environment: Environment) -> Sized:
    """Return a random value of a type."""
    if type_.family == "list":
        elements = [made(chance, type_.parameters[0], environment) for _ in range(chance.randrange(6))]
        return sized([element.value for element in elements], *(element.extent for element in elements))
    if type_.family == "map":
        return sized({chance.choice(TEXTS): chance.choice(TEXTS) for _ in range(chance.randrange(4))})
    if type_.name == "optional_type":
        inner = made(chance, type_.parameters[0], environment)
        return chance.choice((Sized(NONE, SizeBound()), Sized(Optional(inner.value), inner.extent)))
    if type_.family in ("dyn", "parameter", "type"):
        return made(chance, chance.choice((INT, STRING, BYTES, BOOL)), environment)
    return made_plain(chance, type_) or parsed(chance, type_, environment)


def made_plain(chance: random.Random, type_: Type) -> Sized | None:
    """Return a random value of one of CEL's own types without parts; None for another type."""
    number = chance.randrange(100)
    plain: dict[Type, Value] = {
        INT: number,
        UINT: UInt(number),
        DOUBLE: float(number),
        BOOL: number > 50,
        STRING: chance.choice(TEXTS),
        BYTES: chance.choice(TEXTS).encode(),
        TIMESTAMP: Timestamp(number),
        DURATION: Duration(number),
    }
    return sized(plain[type_]) if type_ in plain else None


def parsed(chance: random.Random, type_: Type, environment: Environment) -> Sized:
    """Return a value of a library's type; null for types whose values only an activation has."""
    values = parsed_values(environment).get(type_)
    return chance.choice(values) if values else Sized(None, SizeBound())


@cache
def parsed_values(environment: Environment) -> dict[Type, list[Sized]]:
    """Return the results of an environment's functions for texts, by type."""
    values: dict[Type, list[Sized]] = defaultdict(list)
    for text in TEXTS:
        for value in results(text, functions(environment)):
            inner = value.value if type(value) is Optional else value
            values[value_type(inner)].append(Sized(inner, find_extent(text)))
    return values


def results(text: str, declared: dict[str, Function]) -> Iterator[Value]:
    """Yield the results for a text of all functions that are not members and take a text, or nothing."""
    for function in declared.values():
        for overload in function.overloads:
            if not overload.member and overload.run is not None and overload.arguments in ((STRING,), ()):
                try:
                    yield overload.run(*(text for _ in overload.arguments))
                except (EvaluationError, ValueError):
                    continue


def sized(value: Value, *inside: SizeBound) -> Sized:
    """Return a value with its own extent and the extents of the values inside."""
    extents = (find_extent(value), *inside)
    return Sized(value, SizeBound(*(sum(column) for column in zip(*extents, strict=True))))


def undeclared(function: Function) -> Environment:
    """Return an environment with a library of this function alone."""
    return Environment(extras=(Library("example", (function,)),), variables=(("object", DYN),))


def test_a_function_without_a_bound_is_counted() -> None:
    """An expression that calls a function without a bound has no bound."""
    function = Function("twice", (Overload("twice_dyn", (DYN,), DYN, lambda value: [value, value]),))
    bound = compile("twice(1) == []", undeclared(function)).bound({})
    assert bound.cost >= UNKNOWN


def test_libraries_agree_about_a_function_that_they_share() -> None:
    """Two libraries that declare different things of a function raise ValueError."""
    shared = Function("size", (Overload("size_example", (DURATION,), INT, lambda _: 0),))
    with pytest.raises(ValueError, match="two libraries declare different things of size"):
        compile("size(object)", undeclared(shared))
