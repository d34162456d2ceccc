"""Chains of selections with optional steps, presence tests, indexes, and the replacement of an absent value."""

from __future__ import annotations

import ast
from typing import NamedTuple

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.generation.python_calls import at, unforeseen, unwrapped
from scanner.cel.generation.python_terms import (
    PLAIN,
    Kind,
    Term,
    assign,
    either,
    identical,
    is_class,
    item,
    joined,
    name_of,
)
from scanner.cel.generation.reading import Reading
from scanner.cel.generation.writer import NotGenerated
from scanner.cel.syntax.tree import Call, Node, Select
from scanner.cel.values import access
from scanner.cel.values.values import Optional


class _Walked(NamedTuple):
    """The end of a chain of optional steps: whether it ended early, and its value, valid only after that test."""

    absent: ast.expr
    value: ast.expr
    kind: Kind


class OptionalSteps(Reading):
    """Selections of all kinds."""

    def _select(self, node: Select) -> Term:
        if node.id in self._checked.names:
            return self._identifier(node)
        if node.test:
            return self._has(node)
        if self._is_optional(node):
            return self._optional(node)
        local = self._held.get(self._path(node) or ())
        return self._selected(node) if local is None else Term(name_of(local), Kind.JSON)

    def _has(self, node: Select) -> Term:
        if self._is_optional(node.operand):
            return Term(ast.UnaryOp(ast.Not(), self._walked(node.operand, node.field).absent), Kind.BOOL)
        operand = self._operand(node.operand)
        kept, name = self._names.kept(operand.code)
        field = ast.Constant(node.field)
        otherwise = (
            self._names.call(access.has, name_of(name), field)
            if operand.kind in PLAIN
            else self._names.call(unforeseen)
        )
        inside = ast.Compare(field, [ast.In()], [name_of(name)])
        return Term(either(is_class(kept, self._names.class_(dict)), inside, otherwise), Kind.BOOL)

    def _index(self, node: Call) -> Term:
        if node.function != "_[_]" or self._is_optional(node):
            return self._optional(node)
        container, key = node.arguments
        operand = self._operand(container)
        element = Kind.JSON if operand.kind in PLAIN else Kind.ANY
        constant = self._folded.constants.get(key.id)
        if type(constant) is str:
            return Term(item(operand.code, constant), element)
        if type(constant) is int and constant >= 0:
            kept, name = self._names.kept(operand.code)
            at_index = ast.Subscript(name_of(name), ast.Constant(constant), ast.Load())
            return Term(
                either(is_class(kept, self._names.class_(list)), at_index, self._names.call(unforeseen)), element
            )
        at_key = self._term(key)
        if at_key.kind is Kind.STRING:
            return Term(ast.Subscript(operand.code, at_key.code, ast.Load()), element)
        return Term(self._names.call(at, operand.code, at_key.code), element)

    def _is_optional(self, node: Node) -> bool:
        """Return whether one of the steps of a chain of selections is marked as optional."""
        while is_selection(node, self._checked):
            if isinstance(node, Call):
                if node.function != "_[_]":
                    return True
                node = node.arguments[0]
            elif isinstance(node, Select):
                node = node.operand
        return False

    def _optional(self, node: Node) -> Term:
        walked = self._walked(node)
        made = ast.Call(self._names.use(Optional), [walked.value], [])
        return Term(either(walked.absent, self._names.absent(), made), Kind.ANY)

    def _walked(self, node: Node, *more: str) -> _Walked:
        """Follow a chain from its first optional step on: whether it ends early, and the value at its end."""
        steps: list[Node] = []
        while self._is_optional(node):
            steps.append(node)
            node = node.operand if isinstance(node, Select) else node.arguments[0] if isinstance(node, Call) else node
        base = self._operand(node)
        code, name = base.code, ""
        tests: list[ast.expr] = []
        for key in (*map(self._step, reversed(steps)), *map(ast.Constant, more)):
            name = self._names.local("step")
            value = self._lookup(code, key)
            kept = ast.NamedExpr(target=ast.Name(name, ast.Store()), value=value)
            tests.append(identical(kept, self._names.absent()))
            code = name_of(name)
        absent = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        return _Walked(absent, name_of(name), Kind.JSON if base.kind in PLAIN else Kind.ANY)

    def _step(self, node: Node) -> ast.expr:
        if isinstance(node, Select):
            return ast.Constant(node.field)
        if not isinstance(node, Call):
            raise NotGenerated
        return self._term(node.arguments[1]).code

    def _or_value(self, optional: Node, other: Node) -> Term:
        if self._is_optional(optional):
            walked = self._walked(optional)
            return self._chosen(walked.absent, other, Term(walked.value, walked.kind))
        kept, name = self._names.kept(self._names.call(unwrapped, self._term(optional).code))
        absent = ast.UnaryOp(ast.Not(), ast.Attribute(kept, "present", ast.Load()))
        value = ast.Call(ast.Attribute(name_of(name), "unwrapped", ast.Load()), [], [])
        return self._chosen(absent, other, Term(value, Kind.ANY))

    def _or(self, optional: Node, other: Node) -> Term:
        kept, name = self._names.kept(self._names.call(unwrapped, self._term(optional).code))
        absent = ast.UnaryOp(ast.Not(), ast.Attribute(kept, "present", ast.Load()))
        return self._chosen(absent, other, Term(name_of(name), Kind.ANY))

    def _chosen(self, absent: ast.expr, other: Node, value: Term) -> Term:
        """Return a value, or another where it is absent, which is evaluated only then."""
        test = absent
        if self._needs_statements(other):
            held = self._names.local("absent")
            self._block.append(assign(held, absent))
            test = name_of(held)
            result = self._names.local("value")
            otherwise, block = self._inside(lambda: self._term(other))
            block.append(assign(result, otherwise.code))
            self._block.append(ast.If(test, block, [assign(result, value.code)]))
            return Term(name_of(result), joined(value.kind, otherwise.kind))
        otherwise = self._term(other)
        return Term(either(test, otherwise.code, value.code), joined(value.kind, otherwise.kind))
