"""The parts of a document that upstream keeps as Go values until an operation uses them.

Upstream names such values by their Go types where they cannot be keys, and makes a new list or map of them at each read.

Source of truth: `newQualifier` and `refQualify` of cel-go's `interpreter/attributes.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.syntax.tree import Call, Node, Select
from scanner.cel.values.values import UInt, Value
from scanner.cel.values.wrapped_values import find_go_name

if TYPE_CHECKING:
    from collections.abc import Container

    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree

OBJECTS = frozenset({"object", "oldObject"})
"""The documents of an activation that are the object, before and after."""
DOCUMENTS = OBJECTS | {"params", "request", "namespaceObject"}
"""The variables of an activation that are documents."""
_NAMES: dict[type, str] = {type(None): "<nil>", dict: "map[string]interface {}", list: "[]interface {}"}


def is_go_value(node: Node, checked: CheckedTree, folded: FoldedTree, scope: Container[str]) -> bool:
    """Return whether a node reads a part of a document; `scope` has the names of the macros' variables."""
    while is_selection(node, checked):
        match node:
            case Select(operand=operand):
                node = operand
            case Call(function="_[_]", arguments=(operand, key)) if not _makes_value(key, folded):
                node = operand
            case _:
                return False
    name = checked.names.get(node.id)
    return name in DOCUMENTS and name not in scope


def is_go_key(node: Node, checked: CheckedTree, folded: FoldedTree, scope: Container[str]) -> bool:
    """Return whether the key of a map literal's entry is a Go value, with or without `dyn()` around it."""
    while isinstance(node, Call) and node.function == "dyn":
        node = node.arguments[0]
    return is_go_value(node, checked, folded, scope)


def is_selection(node: Node, checked: CheckedTree) -> bool:
    """Return whether a node selects a field, an index or an optional step of its operand; a presence test does not count."""
    if isinstance(node, Select):
        return not node.test and node.id not in checked.names
    return isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._")


def explain_refused_key(key: Value) -> str:
    """Return Go's error text for a value that cannot be a key or an index; empty for a valid one."""
    name = find_go_name(key) or _NAMES.get(type(key))
    return f"invalid qualifier type: {name}" if name else ""


def _makes_value(key: Node, folded: FoldedTree) -> bool:
    """Return whether upstream's lookup of a key makes a CEL value of the result."""
    return isinstance(folded.constants.get(key.id), bool | UInt | float)
