"""The parts of its inputs that an expression reads: for caching, redaction and the note *depends on requester*.

A path ends at the first step that is not a constant name: at a call, a computed index, or a comprehension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.syntax.tree import Call, Identifier, Literal, Node, Select, children

if TYPE_CHECKING:
    from scanner.cel.checking.checker import CheckedTree

Path = tuple[str, ...]


def find_paths(root: Node, checked: CheckedTree, variables: frozenset[str]) -> frozenset[Path]:
    """Return the access paths of an expression: tuples of names that begin with a declared variable."""
    reads: set[Path] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        path = _find_path(node, checked, variables)
        if path is not None:
            reads.add(path)
            continue
        call = checked.calls.get(node.id)
        stack.extend(children(node) if call is None else call.arguments)
    return frozenset(reads)


def _find_path(node: Node, checked: CheckedTree, variables: frozenset[str]) -> Path | None:
    fields: list[str] = []
    while True:
        name = checked.names.get(node.id)
        if name is not None:
            return (*name.split("."), *reversed(fields)) if name in variables else None
        step = _get_constant_step(node)
        if step is None:
            return None
        node, field = step
        fields.append(field)


def _get_constant_step(node: Node) -> tuple[Node, str] | None:
    match node:
        case Select(operand=operand, field=field):
            return operand, field
        case Call(function="_[_]" | "_[?_]" | "_?._", arguments=(operand, Literal(value=str(key)))):
            return operand, key
        case Identifier() | _:
            return None
