"""Calls that are macros in Kyverno: `orValue` on any value, `cel.bind`, `math.greatest` with many arguments, `time.now`.

Mirrors the macros of Kyverno's compiler and of cel-go's bindings and math extensions. `orValue` becomes a function of two dyn
values: an optional has its usual result, any other value is returned unchanged, and the result is dyn.
"""

from __future__ import annotations

from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import ONE
from scanner.cel.functions.result_sizes import parts
from scanner.cel.syntax.macros import ANY_NUMBER, BadMacro, Macro, NodeWriter
from scanner.cel.syntax.tree import Identifier, Node
from scanner.cel.types.type_system import DYN
from scanner.cel.values.values import Optional, Value

NOW = "@now"
"""The variable that `time.now()` reads: expressions cannot name it."""
_OR_VALUE = "@orValue"
_MOST_PLAIN = 2


def _is_name(node: Node, name: str) -> bool:
    return isinstance(node, Identifier) and node.name == name


def _or_value(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    return write.call(_OR_VALUE, target, arguments[0])


def _bind(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    if not _is_name(target, "cel"):
        return write.member(target, "bind", *arguments)
    variable, value, result = arguments
    if not isinstance(variable, Identifier):
        raise BadMacro("cel.bind() variable names must be simple identifiers", variable.offset)
    return write.bind(variable.name, value, result)


def _now(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    return write.name(NOW) if _is_name(target, "time") else write.member(target, "now", *arguments)


def _extreme(name: str) -> Macro:
    def expand(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
        if not _is_name(target, "math") or len(arguments) <= _MOST_PLAIN:
            return write.member(target, name, *arguments)
        return write.member(target, name, write.list(*arguments))

    return (name, ANY_NUMBER, True, expand)


def _value_or(value: Value, alternative: Value) -> Value:
    if type(value) is not Optional:
        return value
    return value.unwrapped() if value.present else alternative


LIBRARY = Library(
    "kyverno.syntax",
    (Function(_OR_VALUE, (Overload("@or_value_dyn_dyn", (DYN, DYN), DYN, _value_or),), cost=ONE, result=parts),),
    macros=(
        ("orValue", 1, True, _or_value),
        ("bind", 3, True, _bind),
        ("now", 0, True, _now),
        _extreme("greatest"),
        _extreme("least"),
    ),
)
