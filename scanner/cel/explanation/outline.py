"""The outline of an expression before evaluation: its parts, their types, and the constant parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.syntax.tree import Comprehension, Identifier, Node, Select, children
from scanner.cel.syntax.unparse import unparse

if TYPE_CHECKING:
    from scanner.cel.analysis.analysis import Analysis
    from scanner.cel.program import Program


class OutlinePart(Struct, frozen=True):
    """A part of an expression: its depth in the tree, from 0, its text and its type; a constant is computed only once."""

    depth: int
    text: str
    type: str
    constant: bool


def outline(program: Program) -> tuple[OutlinePart, ...]:
    """Return the parts of an expression with their types, parents first. Paths and constants are not taken apart."""
    return tuple(_list_parts(program.analysis))


def _list_parts(analysis: Analysis) -> Iterator[OutlinePart]:
    stack = [(0, analysis.root)]
    while stack:
        depth, node = stack.pop()
        constant = node.id in analysis.folded.constants
        yield OutlinePart(depth, unparse(node), analysis.checked.types[node.id].full_name(), constant)
        below = () if constant or _is_path(node, analysis) else _list_parts_below(node)
        stack.extend((depth + 1, part) for part in reversed(tuple(below)))


def _is_path(node: Node, analysis: Analysis) -> bool:
    """Return whether a node is a chain of fields that begins with a variable."""
    while isinstance(node, Select) and is_selection(node, analysis.checked):
        node = node.operand
    return isinstance(node, Identifier) or node.id in analysis.checked.names


def _list_parts_below(node: Node) -> Iterator[Node]:
    """Yield the parts of a node as its text shows them: of a macro, its arguments."""
    match node:
        case Comprehension(fold="bind"):
            yield from (node.start, node.result)
        case Comprehension():
            yield node.range
            yield from (part for part in (node.predicate, node.body) if part is not None)
        case _:
            yield from children(node)
