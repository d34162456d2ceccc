"""A public function that raises an error of Assay names it in its docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
NAMES_AN_ERROR = re.compile(r"\b[Rr]ais(e|es|ed|ing)\b")


class Raising(NamedTuple):
    """A public function, the errors that its own body raises, and its docstring."""

    place: str
    errors: frozenset[str]
    docstring: str


class Modules(NamedTuple):
    """What the modules define: `errors` maps an error to itself and the errors above it; `makers`, a function to the error it returns."""

    trees: dict[str, ast.Module]
    errors: dict[str, frozenset[str]]
    makers: dict[str, str]


@cache
def scanner() -> Modules:
    """Every module of the package."""
    paths = sorted((ROOT / "scanner").rglob("*.py"))
    return modules({path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in paths})


def modules(trees: dict[str, ast.Module]) -> Modules:
    """The modules, with the errors of Assay and the functions that make one."""
    nodes = [node for tree in trees.values() for node in _statements(tree)]
    bases = {node.name: {_name(base) for base in node.bases} for node in nodes if isinstance(node, ast.ClassDef)}
    errors = {name: above for name in bases if "AssayError" in (above := _above(name, bases))}
    makers = {
        node.name: returned
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.returns and (returned := _name(node.returns)) in errors
    }
    return Modules(trees, errors, makers)


def raising(read: Modules) -> list[Raising]:
    """The public functions and methods that raise an error of Assay."""
    return [
        Raising(f"{module}:{name}", errors, ast.get_docstring(function) or "")
        for module, tree in read.trees.items()
        for name, function in _public(tree.body)
        if (errors := _raised(function, read)) and not _is_command(module, name)
    ]


def unnamed(function: Raising, read: Modules) -> set[str]:
    """The errors that the docstring names neither by themselves nor by an error above them."""
    if not NAMES_AN_ERROR.search(function.docstring):
        return set(function.errors)
    words = set(re.findall(r"\w+", function.docstring))
    return {error for error in function.errors if not words & (read.errors[error] - {"AssayError"} | {error})}


def _is_command(module: str, name: str) -> bool:
    """The docstring of a command is its help, which states exit codes instead."""
    return module.startswith("scanner/cli/") and name == "command"


def _above(name: str, bases: dict[str, set[str]]) -> frozenset[str]:
    return frozenset({name}).union(*(_above(base, bases) for base in bases.get(name, ())))


def _public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public(node.body, f"{node.name}.")


def _raised(function: ast.FunctionDef, read: Modules) -> frozenset[str]:
    names = {_name(node.exc) for node in _own(function) if isinstance(node, ast.Raise) and node.exc}
    return frozenset(read.makers.get(name, name) for name in names if name in read.errors or name in read.makers)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a function without those of functions inside it."""
    for child in _blocks(node):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield child
            yield from _own(child)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node. Their expressions contain no definition, and are most of a tree."""
    for child in _blocks(node):
        yield child
        yield from _statements(child)


def _blocks(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, name, ())


def _name(node: ast.expr) -> str:
    match node:
        case ast.Call(func=called):
            return _name(called)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Constant(value=str() as name):
            return name
        case _:
            return ""


@pytest.mark.long
def test_a_docstring_names_the_errors_that_its_function_raises() -> None:
    """Every docstring has the verb and every error, or one above it that is narrower than AssayError."""
    missing = {function.place: unnamed(function, scanner()) for function in raising(scanner())}
    assert {} == {place: errors for place, errors in missing.items() if errors}


def test_most_functions_that_raise_are_known() -> None:
    """The search for raising functions reads the whole package."""
    rooms = {function.place.split("/")[1] for function in raising(scanner())}
    assert {"admission", "cel", "cli", "cluster", "policies", "store"} <= rooms


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Read it.", {"UsageError"}),
        ("Read it. Raises StoreError.", {"UsageError"}),
        ("Read it, no UsageError.", {"UsageError"}),
        ("Read it. Raises UsageError for an empty text.", set()),
    ],
)
def test_a_docstring_without_the_error_is_recognised(docstring: str, expected: set[str]) -> None:
    """A function that raises through a helper is found, and its docstring has to name the error."""
    source = f'''
class AssayError(Exception): pass
class UsageError(AssayError): pass
def _refusal() -> UsageError: return UsageError()
def read(text):
    """{docstring}"""
    raise _refusal()
'''
    read = modules({"scanner/example.py": ast.parse(source)})
    assert [expected] == [unnamed(function, read) for function in raising(read)]
