"""Terms of generated Python: nodes, the kinds of their values, and the names of the function."""

from __future__ import annotations

import ast
import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from scanner.cel.types.type_system import BOOL, DOUBLE, INT, NULL, STRING, Type
from scanner.cel.values.values import NONE

if TYPE_CHECKING:
    from collections.abc import Callable

_NOT_A_NAME = re.compile(r"\W")


class TermKind(StrEnum):
    """The statically known class of a value."""

    ANY = "any"
    JSON = "json"
    BOOL = "bool"
    INT = "int"
    SIZE = "size"
    DOUBLE = "double"
    STRING = "string"
    NULL = "null"
    DOCUMENTS = "list of JSON"
    LIST = "list"
    MAP = "map"
    PARSED = "parsed"


PLAIN = frozenset(TermKind) - {TermKind.ANY, TermKind.LIST, TermKind.MAP, TermKind.PARSED}
"""The kinds of values that a JSON document may hold."""

WHOLE = frozenset({TermKind.INT, TermKind.SIZE})

_OF_TYPE = {
    BOOL: TermKind.BOOL,
    INT: TermKind.INT,
    DOUBLE: TermKind.DOUBLE,
    STRING: TermKind.STRING,
    NULL: TermKind.NULL,
}

OF_CLASS = {
    bool: TermKind.BOOL,
    int: TermKind.INT,
    float: TermKind.DOUBLE,
    str: TermKind.STRING,
    type(None): TermKind.NULL,
}


class Term(NamedTuple):
    """Python for a CEL node, and the kind of its value."""

    code: ast.expr
    kind: TermKind


def find_kind(type_: Type) -> TermKind:
    """Return the kind of a static type; the elements of a list are not included."""
    if type_.nullable:
        return TermKind.ANY
    return TermKind.LIST if type_.family == "list" else _OF_TYPE.get(type_, TermKind.ANY)


def join_kinds(first: TermKind, second: TermKind) -> TermKind:
    """Return the kind of a value that has one of two kinds."""
    if first is second:
        return first
    return TermKind.JSON if first in PLAIN and second in PLAIN else TermKind.ANY


def make_name(name: str) -> ast.Name:
    """Return the node that reads a name."""
    return ast.Name(name, ast.Load())


def make_assignment(name: str, value: ast.expr) -> ast.stmt:
    """Return the statement `name = value`."""
    return ast.Assign(targets=[ast.Name(name, ast.Store())], value=value, type_comment=None)


def make_item(container: ast.expr, key: str) -> ast.expr:
    """Return the node of `container['key']`."""
    return ast.Subscript(container, ast.Constant(key), ast.Load())


def make_conditional(test: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr:
    """Return the node of `yes if test else no`."""
    return ast.IfExp(test=test, body=yes, orelse=no)


def make_identity_test(left: ast.expr, right: ast.expr) -> ast.expr:
    """Return the node of `left is right`."""
    return ast.Compare(left, [ast.Is()], [right])


def make_class(value: ast.expr) -> ast.expr:
    """Return the node of `value.__class__`."""
    return ast.Attribute(value, "__class__", ast.Load())


def make_class_test(value: ast.expr, kind: ast.expr) -> ast.expr:
    """Return the node of `value.__class__ is kind`."""
    return make_identity_test(make_class(value), kind)


class PythonNames:
    """The names of a function: its local variables, and the values of its global names."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {"__builtins__": {}}
        self._shared: dict[tuple[str, int], str] = {}
        self._counter = 0

    def add_local(self, name: str) -> str:
        """Return a new name that contains a given one."""
        self._counter += 1
        return f"{_NOT_A_NAME.sub('_', name)}_{self._counter}"

    def share(self, value: object, name: str) -> ast.expr:
        """Return the node of a global name for a value that the function uses; the same value and name have one global name."""
        name_ = self._shared.get((name, id(value)))
        if name_ is None:
            name_ = self._shared[name, id(value)] = self.add_local(f"the_{name}")
            self.values[name_] = value
        return make_name(name_)

    def use(self, function: Callable[..., object]) -> ast.expr:
        """Return the node of a global name for a function: the function's own name."""
        name = f"{function.__name__}"
        self.values[name] = function
        return make_name(name)

    def call(self, function: Callable[..., object], *arguments: ast.expr) -> ast.expr:
        """Return the node of a function's call."""
        return ast.Call(func=self.use(function), args=list(arguments), keywords=[])

    def keep(self, code: ast.expr, name: str = "value") -> tuple[ast.expr, str]:
        """Return an expression that stores its value in a local variable, and the variable's name."""
        if isinstance(code, ast.Name) and code.id not in self.values:
            return code, code.id
        local = self.add_local(name)
        return ast.NamedExpr(target=ast.Name(local, ast.Store()), value=code), local

    def use_class(self, kind: type) -> ast.expr:
        """Return the node of a global name for a class."""
        self.values[kind.__name__] = kind
        return make_name(kind.__name__)

    def use_absent(self) -> ast.expr:
        """Return the node of a global name for the absent optional."""
        self.values["NONE"] = NONE
        return make_name("NONE")
