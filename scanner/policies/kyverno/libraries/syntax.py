"""Calls that are macros: `orValue` on any value, `cel.bind`, `math.greatest` and `math.least`, `proto.getExt`, `time.now`.

Mirrors the macros of Kyverno's compiler and of cel-go's bindings, math and protos extensions. Since 1.19 `orValue` is a function of
two dyn values: an optional has its usual result, any other value is returned unchanged, and the result is dyn. `time.now` is a
function upstream, which reads a clock; here it reads a variable.
"""

from __future__ import annotations

from scanner.cel.checking.checker import get_qualified_name
from scanner.cel.functions.declaration import ArgumentFlow
from scanner.cel.functions.result_sizes import parts
from scanner.cel.syntax.macros import ANY_NUMBER, BadMacro, Macro, NodeWriter
from scanner.cel.syntax.tree import Identifier, ListLiteral, Literal, MapLiteral, Node, Select, StructLiteral
from scanner.cel.values.values import Optional, UInt, Value
from scanner.policies.kyverno.libraries.declared import Implementation

NOW = "@now"
"""The variable that `time.now()` reads: expressions cannot name it."""
_OR_VALUE = "__orValueCompat__"
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


def _extreme(name: str, function: str) -> Macro:
    def expand(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
        if not _is_name(target, "math"):
            return write.member(target, name, *arguments)
        if not arguments:
            raise BadMacro(f"math.{name}() requires at least one argument", target.offset)
        if len(arguments) == 1:
            if not _may_be_number(arguments[0]) and not _may_be_numbers(arguments[0]):
                raise BadMacro(f"math.{name}() invalid single argument value", arguments[0].offset)
            return write.call(function, *arguments)
        for argument in arguments:
            if not _may_be_number(argument):
                raise BadMacro(f"math.{name}() simple literal arguments must be numeric", argument.offset)
        return write.call(function, *(arguments if len(arguments) == _MOST_PLAIN else (write.list(*arguments),)))

    return (name, ANY_NUMBER, True, expand)


def _may_be_number(node: Node) -> bool:
    if isinstance(node, Literal):
        return type(node.value) in (int, UInt, float)
    return not isinstance(node, ListLiteral | MapLiteral | StructLiteral)


def _may_be_numbers(node: Node) -> bool:
    return isinstance(node, ListLiteral) and bool(node.elements) and all(map(_may_be_number, node.elements))


def _get_extension(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    if not _is_name(target, "proto"):
        return write.member(target, "getExt", *arguments)
    return write.select(arguments[0], _extension(arguments[1]))


def _has_extension(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    if not _is_name(target, "proto"):
        return write.member(target, "hasExt", *arguments)
    return write.presence(arguments[0], _extension(arguments[1]))


def _extension(node: Node) -> str:
    """Return the name of an extension field, which has dots."""
    name = get_qualified_name(node) if isinstance(node, Select) else None
    if name is None:
        raise BadMacro("invalid extension field", node.offset)
    return name


def _value_or(value: Value, alternative: Value) -> Value:
    if type(value) is not Optional:
        return value
    return value.unwrapped() if value.present else alternative


IMPLEMENTATION = Implementation({f"{_OR_VALUE}_dyn_dyn": _value_or}, flow=ArgumentFlow.PASSES, result=parts)
MACROS: tuple[Macro, ...] = (
    ("orValue", 1, True, _or_value),
    ("bind", 3, True, _bind),
    ("getExt", 2, True, _get_extension),
    ("hasExt", 2, True, _has_extension),
    _extreme("greatest", "math.@max"),
    _extreme("least", "math.@min"),
)
NOW_MACRO: Macro = ("now", 0, True, _now)
