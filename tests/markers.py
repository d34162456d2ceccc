"""The markers of a test by what it uses: the servers and programs of `requirements.py`, and processes that it starts.

A test uses what its function, its fixtures and its parameters name, and what the functions and classes of the tests that they name use in
turn. `long` is written at the tests and modules that it marks, and so is the marker of a fixture that a test requests by its name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from inspect import unwrap
from types import CodeType, FunctionType, ModuleType

import pytest

from tests.requirements import Requirement

MARKERS = {
    "postgres": "uses PostgreSQL",
    "browser": "opens pages in a browser",
    "server": "uses a kube-apiserver or another program that make builds",
    "subprocess": "starts a process",
    "long": "computes for more than a second, or has many cases that together take long",
}
PACKAGE = __name__.partition(".")[0]


def mark(test: pytest.Function) -> None:
    """Add the markers of what a test uses. One with the parameter `sqlite` uses no other database."""
    parameters = list(test.callspec.params.values()) if hasattr(test, "callspec") else []
    fixtures = [fixture.func for fixtures in test._fixtureinfo.name2fixturedefs.values() for fixture in fixtures]
    used = used_by([test.function, *fixtures, *parameters])
    for marker in sorted(used - {"postgres"} if "sqlite" in parameters else used):
        test.add_marker(marker)


def used_by(things: Iterable[object]) -> frozenset[str]:
    """The markers of functions and classes and of all that they name."""
    left = [code for thing in things for code in _code_of(thing)]
    reached = set(left)
    markers = frozenset[str]()
    while left:
        own, named = _uses(left.pop())
        markers |= own
        left += named - reached
        reached |= named
    return markers


@cache
def _uses(code: FunctionType | type) -> tuple[frozenset[str], frozenset[FunctionType | type]]:
    """The markers of what a function or class names itself, and the functions and classes that it names."""
    named = list(_attributes(code) if isinstance(code, type) else _named_in(code))
    markers = {thing.marker for thing in named if isinstance(thing, Requirement)}
    markers |= {"subprocess" for thing in named if thing is subprocess}
    others = (thing for thing in named if not isinstance(thing, Requirement))
    return frozenset(markers), frozenset(code for thing in others for code in _code_of(thing))


def _code_of(thing: object) -> Iterator[FunctionType | type]:
    """The function below its decorators, or the class itself or that of an instance."""
    match thing:
        case property(fget=function) | cached_property(func=function) | classmethod(__func__=function):
            yield from _code_of(function)
        case _ if callable(thing) and isinstance(function := unwrap(thing), FunctionType):
            yield function
        case _:
            yield thing if isinstance(thing, type) else type(thing)


def _attributes(owner: type) -> Iterator[object]:
    """The methods and other attributes of a class of the tests, and those of its bases."""
    for part in owner.__mro__:
        if _is_of_tests(part):
            yield from vars(part).values()


def _named_in(function: FunctionType) -> Iterator[object]:
    """The values around a function, and in the tests also those of the names in it: global ones, and those in a module of the tests."""
    yield from (cell.cell_contents for cell in function.__closure__ or ())
    yield getattr(getattr(function, "hypothesis", None), "inner_test", None)
    if not _is_of_tests(function):
        return
    names = set(_names(function.__code__))
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield value
        if isinstance(value, ModuleType) and value.__name__.startswith(PACKAGE):
            yield from (vars(value)[each] for each in names & vars(value).keys())


def _is_of_tests(code: FunctionType | type) -> bool:
    return code.__module__.partition(".")[0] == PACKAGE


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
