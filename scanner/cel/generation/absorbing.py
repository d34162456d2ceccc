"""The absorbing form of a function: it ignores an operand that raises, where another operand decides (ADR 19)."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationStopped
from scanner.cel.evaluation import tracker_panics
from scanner.cel.generation.optional_steps import OptionalSteps
from scanner.cel.generation.python_calls import unforeseen
from scanner.cel.generation.python_terms import Term, TermKind, make_assignment, make_identity_test, make_name
from scanner.cel.syntax.tree import Call, Comprehension, Literal, Select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scanner.cel.syntax.tree import Node


class AbsorbingOperands(OptionalSteps):
    """Operands that are tried."""

    def _absorb(self, operands: Sequence[Node], *, conjunction: bool) -> Term:
        """Evaluate the operands until one decides; an operand that raises matters only where no operand decides."""
        result, erred = self._names.add_local("holds"), self._names.add_local("erred")
        undecided: ast.expr = make_name(result) if conjunction else ast.UnaryOp(ast.Not(), make_name(result))
        neutral: list[ast.stmt] = [
            make_assignment(erred, ast.Constant(value=True)),
            make_assignment(result, ast.Constant(conjunction)),
        ]
        chain: list[ast.stmt] = []
        for term in reversed(operands):
            attempt = self._attempt(self._generate_operand_tried(term, result, neutral), neutral)
            chain = [attempt, ast.If(undecided, chain, [])] if chain else [attempt]
        raised = ast.BoolOp(ast.And(), [make_name(erred), undecided])
        give_up = ast.If(raised, [ast.Expr(self._names.call(unforeseen))], [])
        self._block += [make_assignment(erred, ast.Constant(value=False)), *chain, give_up]
        return Term(make_name(result), TermKind.BOOL)

    def _generate_operand_tried(self, node: Node, result: str, neutral: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of an operand. Its cached locals end with it: its evaluation may end early."""
        outer_locals = dict(self._path_locals)
        try:
            absent = self._test_absence(node)
            code, block = self._generate_inside(partial(self._generate_truth, node))
        finally:
            self._path_locals = outer_locals
        block.append(make_assignment(result, code))
        return skip_under(absent, neutral, block)

    def _attempt(self, block: list[ast.stmt], otherwise: list[ast.stmt]) -> ast.stmt:
        stopped = ast.ExceptHandler(self._names.use_class(EvaluationStopped), None, [ast.Raise(None, None)])
        raised = ast.ExceptHandler(self._names.use_class(Exception), None, otherwise)
        return ast.Try(body=block, handlers=[stopped, raised], orelse=[], finalbody=[])

    def _test_absence(self, node: Node) -> ast.expr | None:
        """Return the condition under which the first selection of a node errs, and cache the values that it reads.

        It costs a fraction of an exception. None for a node that does not begin with a selection.
        """
        path = self._find_first_path(node)
        tests: list[ast.expr] = []
        for step in (path[:length] for length in range(2, len(path) + 1)):
            container = self._path_locals.get(step[:-1], step[0])
            local = self._path_locals[step] = self._names.add_local(step[-1])
            value = self._generate_lookup(make_name(container), ast.Constant(step[-1]))
            tests.append(
                make_identity_test(
                    ast.NamedExpr(target=ast.Name(local, ast.Store()), value=value), self._names.use_absent()
                )
            )
        return ast.BoolOp(ast.Or(), tests) if len(tests) > 1 else tests[0] if tests else None

    def _find_first_path(self, node: Node, *, alone: bool = False) -> tuple[str, ...]:
        """Return the first path that a node reads, before any other step; empty if it reads none first, or if an error of it may not count.

        With `alone`, also where the closures evaluate anything but paths after an error: it might end the evaluation in another way.
        """
        start: Node | None = node
        while start is not None:
            path = self._find_path(start)
            if path is not None and len(path) > 1:
                return path
            start = self._find_first_evaluated(start, alone=alone)
        return ()

    def _find_first_evaluated(self, node: Node, *, alone: bool) -> Node | None:
        """Return the part that is evaluated first, whose error is the error of the node; None where that is uncertain."""
        match node:
            case Call(function="_&&_" | "_||_") | Comprehension(fold="bind") | Comprehension(is_open=True):
                return None
            case Call(function="_?_:_", arguments=(condition, *_)):
                return condition
            case Call() if (call := self._checked.calls.get(node.id)) and tracker_panics.find_tracker(call) is None:
                parts = [argument for argument in call.arguments if not self._is_constant(argument)]
                is_certain = not alone or all(self._find_path(part) for part in parts[1:])
                return parts[0] if parts and is_certain else None
            case Select() if node.id not in self._checked.names:
                return node.operand
            case Comprehension():
                return node.range
            case _:
                return None

    def _is_constant(self, node: Node) -> bool:
        return isinstance(node, Literal) or node.id in self._folded.constants


def skip_under(absent: ast.expr | None, neutral: list[ast.stmt], block: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a block, which are not executed under a condition."""
    return block if absent is None else [ast.If(absent, neutral, block)]
