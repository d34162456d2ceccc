"""The absorbing form of a function: it ignores an operand that raises, where another operand decides (ADR 19)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationStopped
from scanner.cel.generation.optional_steps import OptionalSteps
from scanner.cel.generation.python_calls import unforeseen
from scanner.cel.generation.python_terms import Kind, Term, assign, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scanner.cel.syntax.tree import Node


class Absorbing(OptionalSteps):
    """Operands that are tried."""

    def _absorbed(self, operands: Sequence[Node], *, conjunction: bool) -> Term:
        """Evaluate the operands until one decides; an operand that raises matters only where no operand decides."""
        result, erred = self._names.local("holds"), self._names.local("erred")
        undecided: ast.expr = name_of(result) if conjunction else ast.UnaryOp(ast.Not(), name_of(result))
        neutral: list[ast.stmt] = [assign(erred, ast.Constant(value=True)), assign(result, ast.Constant(conjunction))]
        chain: list[ast.stmt] = []
        for term in reversed(operands):
            code, block = self._inside(partial(self._truth_apart, term))
            attempt = self._attempt([*block, assign(result, code)], neutral)
            chain = [attempt, ast.If(undecided, chain, [])] if chain else [attempt]
        raised = ast.BoolOp(ast.And(), [name_of(erred), undecided])
        give_up = ast.If(raised, [ast.Expr(self._names.call(unforeseen))], [])
        self._block += [assign(erred, ast.Constant(value=False)), *chain, give_up]
        return Term(name_of(result), Kind.BOOL)

    def _truth_apart(self, node: Node) -> ast.expr:
        """Return a condition that leaves no cached locals to later nodes: its evaluation may end early."""
        held = dict(self._held)
        try:
            return self._truth(node)
        finally:
            self._held = held

    def _attempt(self, block: list[ast.stmt], otherwise: list[ast.stmt]) -> ast.stmt:
        stopped = ast.ExceptHandler(self._names.class_(EvaluationStopped), None, [ast.Raise(None, None)])
        raised = ast.ExceptHandler(self._names.class_(Exception), None, otherwise)
        return ast.Try(body=block, handlers=[stopped, raised], orelse=[], finalbody=[])
