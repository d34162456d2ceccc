"""Logical operators and conditionals, as Python's own, or as statements where an operand is a loop."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.evaluation.planner import terms
from scanner.cel.generation.absorbing import Absorbing
from scanner.cel.generation.python_terms import Kind, Term, assign, either, joined, name_of
from scanner.cel.syntax.tree import Call, Identifier, Node, Select, walk

if TYPE_CHECKING:
    from collections.abc import Sequence


AFFIXES = frozenset({"startswith", "endswith"})
"""The methods of a text that accept a tuple, and are true for any of its texts."""


class Logic(Absorbing):
    """The Python of operators that decide which operands are evaluated."""

    def _logic(self, node: Call) -> Term:
        conjunction = node.function == "_&&_"
        operands = terms(node)
        held = dict(self._held)
        if self._absorbing:
            return self._absorbed(operands, conjunction=conjunction)
        try:
            if any(self._needs_statements(term) for term in operands[1:]):
                return self._logic_in_steps(operands, conjunction=conjunction)
            values = [
                self._decides(term, operands[position + 1 :], when=conjunction)
                for position, term in enumerate(operands)
            ]
            return Term(_combined(values, conjunction=conjunction), Kind.BOOL)
        finally:
            self._held = held

    def _logic_in_steps(self, operands: Sequence[Node], *, conjunction: bool) -> Term:
        """Evaluate the terms one after the other as statements, because some of them are loops; those without a loop together."""
        result = self._names.local("holds")
        steps: list[tuple[list[ast.stmt], list[ast.expr]]] = []
        for position, term in enumerate(operands):
            code, block = self._inside(partial(self._decides, term, operands[position + 1 :], when=conjunction))
            if block or not steps:
                steps.append((block, []))
            steps[-1][1].append(code)
        for position, (block, values) in enumerate(steps):
            block.append(assign(result, _combined(values, conjunction=conjunction)))
            if position == 0:
                self._block.extend(block)
                continue
            test: ast.expr = name_of(result) if conjunction else ast.UnaryOp(ast.Not(), name_of(result))
            self._block.append(ast.If(test, block, []))
        return Term(name_of(result), Kind.BOOL)

    def _decides(self, node: Node, rest: Sequence[Node], *, when: bool) -> ast.expr:
        """Return one condition; `has(x.y)` keeps its value for conditions that are evaluated only when it holds."""
        test = node if when else _negated(node)
        if isinstance(test, Select) and test.test and rest:
            path = self._path(test.operand)
            if path is not None and any(self._mentions(term, test) for term in rest):
                return self._remembered(test, (*path, test.field), when=when)
        return self._truth(node)

    def _remembered(self, test: Select, path: tuple[str, ...], *, when: bool) -> ast.expr:
        local = self._names.local(test.field)
        value = self._lookup(self._operand(test.operand).code, ast.Constant(test.field))
        kept = ast.NamedExpr(target=ast.Name(local, ast.Store()), value=value)
        self._held[path] = local
        return self._placed(ast.Compare(kept, [ast.IsNot() if when else ast.Is()], [self._names.absent()]), test.offset)

    def _mentions(self, node: Node, test: Select) -> bool:
        wanted = self._path(test.operand)
        return any(
            isinstance(part, Select)
            and part.field == test.field
            and not part.test
            and wanted is not None
            and self._path(part.operand) == wanted
            for part in walk(node)
        )

    def _conditional(self, node: Call) -> Term:
        condition, yes, no = node.arguments
        held = dict(self._held)
        test = self._decides(condition, (yes,), when=True)
        if not (self._needs_statements(yes) or self._needs_statements(no)):
            then = self._branch(yes)
            self._held = held
            otherwise = self._branch(no)
            return Term(either(test, then.code, otherwise.code), joined(then.kind, otherwise.kind))
        result, chosen = self._names.local("value"), self._names.local("chosen")
        self._block.append(assign(chosen, test))
        then, block = self._inside(lambda: self._branch(yes))
        block.append(assign(result, then.code))
        self._held = held
        otherwise, other = self._inside(lambda: self._branch(no))
        other.append(assign(result, otherwise.code))
        self._block.append(ast.If(name_of(chosen), block, other))
        return Term(name_of(result), joined(then.kind, otherwise.kind))

    def _branch(self, node: Node) -> Term:
        term = self._term(node)
        is_read = isinstance(node, Identifier) or is_selection(node, self._checked)
        if is_read or term.kind is not Kind.ANY or (isinstance(node, Call) and node.function == "_?_:_"):
            return term
        return self._reread(term)


# --- trees


def _negated(node: Node) -> Node | None:
    """Return the operand of a negation."""
    return node.arguments[0] if isinstance(node, Call) and node.function == "!_" else None


# --- Python


def _combined(values: list[ast.expr], *, conjunction: bool) -> ast.expr:
    """Return the condition that all, or any, of some conditions hold."""
    values = values if conjunction else _any_affix(values)
    return ast.BoolOp(ast.And() if conjunction else ast.Or(), values) if len(values) > 1 else values[0]


def _any_affix(values: Sequence[ast.expr]) -> list[ast.expr]:
    """Return conditions of which one has to hold; neighbours that test one variable for a prefix or suffix become one condition."""
    joined_: list[ast.expr] = []
    for value in values:
        match (joined_[-1] if joined_ else None), value:
            case (
                ast.Call(ast.Attribute(ast.Name(first), method) as test, [ast.Constant() | ast.Tuple() as known]),
                ast.Call(ast.Attribute(ast.Name(second), other), [ast.Constant() as further]),
            ) if first == second and method == other and method in AFFIXES:
                affixes = known.elts if isinstance(known, ast.Tuple) else [known]
                all_ = ast.Tuple([*affixes, further], ast.Load())
                joined_[-1] = ast.copy_location(ast.Call(test, [all_], []), value)
            case _:
                joined_.append(value)
    return joined_
