"""The CEL text of a tree, to show users a part of an expression: macros in source form, each white space as one blank."""

from __future__ import annotations

import json
from typing import assert_never

from scanner.cel.syntax.tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from scanner.cel.values.values import UInt, Value

_BINARY = {
    "_?_:_": 1,
    "_||_": 2,
    "_&&_": 3,
    "_==_": 4,
    "_!=_": 4,
    "_<_": 4,
    "_<=_": 4,
    "_>_": 4,
    "_>=_": 4,
    "@in": 4,
    "_+_": 5,
    "_-_": 5,
    "_*_": 6,
    "_/_": 6,
    "_%_": 6,
}
"""The precedence of an operator."""
_UNARY, _WHOLE = 7, 8


def unparse(node: Node) -> str:
    """Return the CEL text of a node on one line; a macro has its source form."""
    return _write_within(node, 0)


def _write_within(node: Node, within: int) -> str:
    text, binding = _write(node)
    return f"({text})" if binding < within else text


def _write(node: Node) -> tuple[str, int]:
    """Return the text of a node and its precedence."""
    match node:
        case Literal(value=value):
            return _write_literal(value), _WHOLE
        case Identifier(name=name):
            return name, _WHOLE
        case Select(operand=operand, field=field, test=True):
            return f"has({_write_within(operand, _WHOLE)}.{field})", _WHOLE
        case Select(operand=operand, field=field):
            return f"{_write_within(operand, _WHOLE)}.{field}", _WHOLE
        case Call():
            return _write_call(node)
        case ListLiteral(elements=elements, optional=optional):
            marked = (f"{'?' * (at in optional)}{unparse(element)}" for at, element in enumerate(elements))
            return f"[{', '.join(marked)}]", _WHOLE
        case MapLiteral(entries=entries):
            pairs = (f"{'?' * entry.optional}{unparse(entry.key)}: {unparse(entry.value)}" for entry in entries)
            return f"{{{', '.join(pairs)}}}", _WHOLE
        case StructLiteral(type_name=name, entries=fields):
            texts = (f"{'?' * entry.optional}{entry.name}: {unparse(entry.value)}" for entry in fields)
            return f"{name}{{{', '.join(texts)}}}", _WHOLE
        case Comprehension():
            return _write_macro(node), _WHOLE
        case _:
            assert_never(node)


def _write_call(node: Call) -> tuple[str, int]:
    match node.function, node.arguments:
        case "_?_:_", (condition, yes, no):
            mapped = _write_optional_map(condition, yes)
            if mapped:
                return mapped, _WHOLE
            return f"{_write_within(condition, 2)} ? {_write_within(yes, 2)} : {_write_within(no, 1)}", 1
        case "!_" | "-_" as function, (operand,):
            return _write_unary(function[0], operand), _UNARY
        case "_[_]", (container, key):
            return f"{_write_within(container, _WHOLE)}[{unparse(key)}]", _WHOLE
        case "_[?_]", (container, key):
            return f"{_write_within(container, _WHOLE)}[?{unparse(key)}]", _WHOLE
        case "_?._", (container, Literal(value=str() as field)):
            return f"{_write_within(container, _WHOLE)}.?{field}", _WHOLE
        case function, (left, right) if function in _BINARY:
            binding = _BINARY[function]
            sign = "in" if function == "@in" else function.strip("_")
            return f"{_write_within(left, binding)} {sign} {_write_within(right, binding + 1)}", binding
        case function, arguments:
            texts = ", ".join(map(unparse, arguments))
            receiver = "" if node.target is None else f"{_write_within(node.target, _WHOLE)}."
            return f"{receiver}{function}({texts})", _WHOLE


def _write_unary(sign: str, operand: Node) -> str:
    """Return a sign and its operand; the grammar drops two signs in a row."""
    text = _write_within(operand, _UNARY)
    return f"{sign}({text})" if text.startswith(sign) else f"{sign}{text}"


def _write_optional_map(condition: Node, yes: Node) -> str:
    """Return the source form of `optMap` and `optFlatMap`, and nothing for any other conditional."""
    match condition, yes:
        case Call(function="hasValue", target=receiver), Call(
            function="optional.of", arguments=(Comprehension(fold="bind") as bound,)
        ) if receiver is not None:
            return f"{_write_within(receiver, _WHOLE)}.optMap({bound.accumulator}, {unparse(bound.result)})"
        case Call(function="hasValue", target=receiver), Comprehension(fold="bind") as bound if receiver is not None:
            return f"{_write_within(receiver, _WHOLE)}.optFlatMap({bound.accumulator}, {unparse(bound.result)})"
        case _:
            return ""


def _write_macro(node: Comprehension) -> str:
    match node:
        case Comprehension(
            fold="bind", result=Call(function="@sortByAssociatedKeys", arguments=(Comprehension() as keys,))
        ):
            return f"{_write_within(node.start, _WHOLE)}.sortBy({keys.variable}, {unparse(keys.body or keys)})"
        case _:
            pass
    if node.fold == "bind":
        return f"cel.bind({node.accumulator}, {unparse(node.start)}, {unparse(node.result)})"
    names = [name for name in (node.variable, node.second_variable) if name is not None]
    parts = [unparse(part) for part in (node.predicate, node.body) if part is not None]
    if node.fold == "filter":
        parts = parts[:1]
    return f"{_write_within(node.range, _WHOLE)}.{node.fold}({', '.join([*names, *parts])})"


def _write_literal(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case UInt():
            return f"{int(value)}u"
        case str():
            return _quote(value)
        case bytes():
            return "b'" + "".join(f"\\x{byte:02x}" for byte in value) + "'"
        case _:
            return str(value)


def _quote(text: str) -> str:
    """Quote with apostrophes, as policies mostly do."""
    inner = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"
