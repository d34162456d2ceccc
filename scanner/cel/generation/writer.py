"""The state of a function that is being generated, and the terms that every part of the generator writes."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from scanner.cel.evaluation.selections import keep_value
from scanner.cel.generation.python_calls import unforeseen
from scanner.cel.generation.python_operations import Operations
from scanner.cel.generation.python_terms import (
    OF_CLASS,
    PythonNames,
    Term,
    TermKind,
    make_conditional,
    make_identity_test,
    make_name,
)
from scanner.cel.memo import ResultCache
from scanner.cel.releases import OPTIONALS_KEPT
from scanner.cel.syntax.tree import Call, Comprehension, Node, walk
from scanner.cel.values import runtime
from scanner.cel.values.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.syntax.source import Source

_Made = TypeVar("_Made")


class NotGenerated(Exception):
    """An expression has a part that only the closures evaluate."""


class Variable(NamedTuple):
    """A variable of a macro: the local variable that holds it, and the kind of its value."""

    local: str
    kind: TermKind


class Writer(ABC):
    """Writes the statements of a function into `_block`, and returns the terms of its expressions.

    `_roots` are the local names of declared variables, `_scope` holds the variables of macros, and `_path_locals` the local names of
    the paths that were read already.
    """

    def __init__(
        self, checked: CheckedTree, folded: FoldedTree, environment: Environment, source: Source, *, absorbing: bool
    ) -> None:
        self._absorbing = absorbing
        self._checked = checked
        self._source = source
        self._folded = folded
        self._rewrap = keep_value if OPTIONALS_KEPT.holds(environment.version) else runtime.rewrap_value
        self._environment = environment
        self._declared = {name for name, _ in environment.variables}
        self._names = PythonNames()
        self._operations = Operations(self._names)
        self._block: list[ast.stmt] = []
        self._roots: dict[str, str] = {}
        self._parsers: dict[str, ResultCache[Value]] = {}
        self._scope: dict[str, Variable] = {}
        self._path_locals: dict[tuple[str, ...], str] = {}

    @abstractmethod
    def _generate(self, node: Node) -> Term:
        """Return the Python of a node, with the node's position in the text."""

    def _place(self, code: ast.expr, offset: int) -> ast.expr:
        """Record the position of an expression in the text, unless a part of it has one."""
        if not hasattr(code, "lineno"):
            line, column = self._source.place(offset)
            before = (self._source.line(line) or "")[:column]
            code.lineno = code.end_lineno = max(line, 1)
            code.col_offset = len(before.encode("utf-8", "surrogatepass"))
            code.end_col_offset = code.col_offset + 1
        return code

    def _generate_constant(self, value: Value) -> Term:
        kind = OF_CLASS.get(type(value), TermKind.ANY)
        if isinstance(value, float) and not isfinite(value):
            return Term(self._names.share(value, "constant"), kind)
        if value is None or isinstance(value, bool | int | float | str):
            return Term(self._names.share(value, "constant") if kind is TermKind.ANY else ast.Constant(value), kind)
        if type(value) is list and all(type(element) in OF_CLASS for element in value):
            kind = TermKind.DOCUMENTS
        return Term(self._names.share(value, "constant"), kind)

    def _generate_truth(self, node: Node) -> ast.expr:
        """Return the Python of a condition whose value is certainly True or False."""
        return self._make_certain(self._generate(node))

    def _make_certain(self, term: Term) -> ast.expr:
        if term.kind is TermKind.BOOL:
            return term.code
        storing, name = self._names.keep(term.code)
        is_bool = ast.BoolOp(
            ast.Or(),
            [
                make_identity_test(storing, ast.Constant(value=True)),
                make_identity_test(make_name(name), ast.Constant(value=False)),
            ],
        )
        return make_conditional(is_bool, make_name(name), self._names.call(unforeseen))

    def _generate_inside(self, make: Callable[[], _Made]) -> tuple[_Made, list[ast.stmt]]:
        """Return the result of a function and the statements that it requires before it."""
        outer, self._block = self._block, []
        try:
            return make(), self._block
        finally:
            self._block = outer

    def _needs_statements(self, node: Node) -> bool:
        """Return whether a node is evaluated by statements before its expression."""
        loops = _has_loop(node, self._folded)
        return loops or (self._absorbing and can_absorb(node, self._folded))


# --- trees


def require_part(node: Node | None) -> Node:
    """Return a part that a comprehension has to have. Raises `NotGenerated` when the part is None."""
    if node is None:
        raise NotGenerated
    return node


def can_absorb(root: Node, folded: FoldedTree) -> bool:
    """Return whether the absorbing form of a function differs from the plain form."""
    return any(_absorbs_errors(node) and node.id not in folded.constants for node in walk(root))


def _has_loop(node: Node, folded: FoldedTree) -> bool:
    """Return whether a node needs statements before its expression."""
    return any(isinstance(part, Comprehension) and part.id not in folded.constants for part in walk(node))


def _absorbs_errors(node: Node) -> bool:
    """Return whether a node ignores parts of it that raise, where others decide."""
    if isinstance(node, Comprehension):
        return node.fold in ("all", "exists")
    return isinstance(node, Call) and node.function in ("_&&_", "_||_")
