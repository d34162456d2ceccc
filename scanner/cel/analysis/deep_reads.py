"""The parts of its inputs that an expression reads, through loops: `object.spec.containers.*.image`, for all equal in shape.

Unlike `reads`, a path continues through the elements of a list or map in a loop (`*`). Of the range of a loop the shape is
read (`#`): the number of elements, and their keys. A path ends where this cannot be determined, and means all values below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.syntax.tree import Call, Comprehension, Identifier, Literal, Node, Select, children

if TYPE_CHECKING:
    from scanner.cel.checking.checker import CheckedTree

Path: TypeAlias = "tuple[str, ...]"
ELEMENTS = "*"
SHAPE = "#"
_Scope: TypeAlias = "Mapping[str, Path | None]"


def find_deep_reads(root: Node, checked: CheckedTree, variables: frozenset[str]) -> frozenset[Path]:
    """Return the paths of an expression: tuples of names that begin with a declared variable, with `*` and `#` as steps."""
    reader = _DeepReader(checked, variables)
    reader.read(root, {})
    return frozenset(reader.paths)


class _DeepReader:
    def __init__(self, checked: CheckedTree, variables: frozenset[str]) -> None:
        self._checked = checked
        self._variables = variables
        self.paths: set[Path] = set()

    def read(self, root: Node, scope: _Scope) -> None:
        """Collect the paths that a node reads, all of its value included."""
        stack = [root]
        while stack:
            node = stack.pop()
            path = self._find_path(node, scope)
            if path is not None:
                self.paths.add(path)
                self._read_keys(node, scope)
            elif isinstance(node, Comprehension):
                self._read_loop(node, scope)
            elif not isinstance(node, Identifier | Select) or self._checked.names.get(node.id) is None:
                call = self._checked.calls.get(node.id)
                stack.extend(children(node) if call is None else call.arguments)

    def _find_path(self, node: Node, scope: _Scope) -> Path | None:
        """Return the path of a selection; None for another node, or for a selection from a computed value."""
        steps: list[str] = []
        while True:
            name = self._checked.names.get(node.id)
            if name is not None:
                root = self._find_root(node, name, scope)
                return None if root is None else (*root, *reversed(steps))
            match node:
                case Select(operand=operand, field=field):
                    steps.append(field)
                    node = operand
                case Call(function="_[_]" | "_[?_]" | "_?._", arguments=(operand, key)):
                    constant = key.value if isinstance(key, Literal) else None
                    is_name = isinstance(constant, str) and constant not in (ELEMENTS, SHAPE)
                    steps.append(str(constant) if is_name else ELEMENTS)
                    node = operand
                case _:
                    return None

    def _find_root(self, node: Node, name: str, scope: _Scope) -> Path | None:
        if isinstance(node, Identifier) and node.id not in self._checked.globals and name in scope:
            return scope[name]
        return tuple(name.split(".")) if name in self._variables else None

    def _read_keys(self, node: Node, scope: _Scope) -> None:
        """Collect the paths that the computed keys of a path read."""
        while isinstance(node, Select | Call):
            match node:
                case Select(operand=operand):
                    node = operand
                case Call(arguments=(operand, key)):
                    self.read(key, scope)
                    node = operand
                case _:
                    return

    def _read_loop(self, node: Comprehension, scope: _Scope) -> None:
        if node.fold == "bind":
            self.read(node.start, scope)
            self.read(node.result, {**scope, node.accumulator: self._find_path(node.start, scope)})
            return
        over = self._find_path(node.range, scope)
        if over is None:
            self.read(node.range, scope)
        else:
            self.paths.add((*over, SHAPE))
            self._read_keys(node.range, scope)
        element = None if over is None else (*over, ELEMENTS)
        names = {node.variable: element} | ({} if node.second_variable is None else {node.second_variable: element})
        for part in (node.predicate, node.body):
            if part is not None:
                self.read(part, {**scope, **names})
