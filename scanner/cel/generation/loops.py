"""Comprehensions as loops."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.evaluation.planner import list_terms
from scanner.cel.functions.python_forms import MethodForm
from scanner.cel.generation.absorbing import AbsorbingOperands, skip_under
from scanner.cel.generation.python_calls import keys, pairs, unforeseen
from scanner.cel.generation.python_terms import (
    PLAIN,
    Term,
    TermKind,
    join_kinds,
    make_assignment,
    make_class,
    make_conditional,
    make_name,
)
from scanner.cel.generation.writer import NotGenerated, Variable, require_part
from scanner.cel.syntax.tree import Call, Comprehension, Identifier, Node, Select, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

# Logical operators and conditionals, as Python's own, or as statements where an operand is a loop.

AFFIXES = frozenset({"startswith", "endswith"})
"""The methods of a text that accept a tuple, and are true for any of its texts."""


class Logic(AbsorbingOperands):
    """The Python of operators that decide which operands are evaluated."""

    def _generate_logic(self, node: Call) -> Term:
        conjunction = node.function == "_&&_"
        operands = list_terms(node)
        outer_locals = dict(self._path_locals)
        if self._absorbing:
            return self._absorb(operands, conjunction=conjunction)
        try:
            if any(self._needs_statements(term) for term in operands[1:]):
                return self._generate_logic_in_steps(operands, conjunction=conjunction)
            values = [
                self._generate_condition(term, operands[position + 1 :], when=conjunction)
                for position, term in enumerate(operands)
            ]
            return Term(_combine_conditions(values, conjunction=conjunction), TermKind.BOOL)
        finally:
            self._path_locals = outer_locals

    def _generate_logic_in_steps(self, operands: Sequence[Node], *, conjunction: bool) -> Term:
        """Evaluate the terms one after the other as statements, because some of them are loops; those without a loop together."""
        result = self._names.add_local("holds")
        steps: list[tuple[list[ast.stmt], list[ast.expr]]] = []
        for position, term in enumerate(operands):
            code, block = self._generate_inside(
                partial(self._generate_condition, term, operands[position + 1 :], when=conjunction)
            )
            # Conditions without statements of their own join those before them.
            if block or not steps:
                steps.append((block, []))
            steps[-1][1].append(code)
        for position, (block, values) in enumerate(steps):
            block.append(make_assignment(result, _combine_conditions(values, conjunction=conjunction)))
            if position == 0:
                self._block.extend(block)
                continue
            test: ast.expr = make_name(result) if conjunction else ast.UnaryOp(ast.Not(), make_name(result))
            self._block.append(ast.If(test, block, []))
        return Term(make_name(result), TermKind.BOOL)

    def _generate_condition(self, node: Node, rest: Sequence[Node], *, when: bool) -> ast.expr:
        """Return one condition; `has(x.y)` keeps its value for conditions that are evaluated only when it holds."""
        test = node if when else _get_negated(node)
        if isinstance(test, Select) and test.test and rest:
            path = self._find_path(test.operand)
            if path is not None and any(self._mentions(term, test) for term in rest):
                return self._remember_presence(test, (*path, test.field), when=when)
        return self._generate_truth(node)

    def _remember_presence(self, test: Select, path: tuple[str, ...], *, when: bool) -> ast.expr:
        local = self._names.add_local(test.field)
        value = self._generate_lookup(self._generate_operand(test.operand).code, ast.Constant(test.field))
        remembered = ast.NamedExpr(target=ast.Name(local, ast.Store()), value=value)
        self._path_locals[path] = local
        return self._place(
            ast.Compare(remembered, [ast.IsNot() if when else ast.Is()], [self._names.use_absent()]), test.offset
        )

    def _mentions(self, node: Node, test: Select) -> bool:
        tested_path = self._find_path(test.operand)
        return any(
            isinstance(part, Select)
            and part.field == test.field
            and not part.test
            and tested_path is not None
            and self._find_path(part.operand) == tested_path
            for part in walk(node)
        )

    def _generate_conditional(self, node: Call) -> Term:
        condition, yes, no = node.arguments
        outer_locals = dict(self._path_locals)
        test = self._generate_condition(condition, (yes,), when=True)
        if not (self._needs_statements(yes) or self._needs_statements(no)):
            then = self._generate_branch(yes)
            self._path_locals = outer_locals
            otherwise = self._generate_branch(no)
            return Term(make_conditional(test, then.code, otherwise.code), join_kinds(then.kind, otherwise.kind))
        result, condition_name = self._names.add_local("value"), self._names.add_local("chosen")
        self._block.append(make_assignment(condition_name, test))
        then, block = self._generate_inside(lambda: self._generate_branch(yes))
        block.append(make_assignment(result, then.code))
        self._path_locals = outer_locals
        otherwise, other = self._generate_inside(lambda: self._generate_branch(no))
        other.append(make_assignment(result, otherwise.code))
        self._block.append(ast.If(make_name(condition_name), block, other))
        return Term(make_name(result), join_kinds(then.kind, otherwise.kind))

    def _generate_branch(self, node: Node) -> Term:
        term = self._generate(node)
        is_read = isinstance(node, Identifier) or is_selection(node, self._checked)
        if is_read or term.kind is not TermKind.ANY or (isinstance(node, Call) and node.function == "_?_:_"):
            return term
        return self._rewrap_term(term)


# --- trees


def _get_negated(node: Node) -> Node | None:
    """Return the operand of a negation."""
    return node.arguments[0] if isinstance(node, Call) and node.function == "!_" else None


# --- Python


def _combine_conditions(values: list[ast.expr], *, conjunction: bool) -> ast.expr:
    """Return the condition that all, or any, of some conditions hold."""
    values = values if conjunction else _join_affix_tests(values)
    return ast.BoolOp(ast.And() if conjunction else ast.Or(), values) if len(values) > 1 else values[0]


def _join_affix_tests(values: Sequence[ast.expr]) -> list[ast.expr]:
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


class _Fold(NamedTuple):
    """The result of a loop, the statements before and in it, and those that run when the loop was not ended early."""

    term: Term
    before: list[ast.stmt]
    block: list[ast.stmt]
    after: tuple[ast.stmt, ...] = ()


class Loops(Logic):
    """Loops, and the variables that macros bind."""

    def _generate_comprehension(self, node: Comprehension) -> Term:
        if node.is_open or node.fold in ("transformMap", "transformMapEntry"):
            # An open fold shows its accumulator to an argument, and a map may get keys that are no texts.
            raise NotGenerated
        if node.fold == "bind":
            return self._generate_bind(node)
        affix = self._join_affixes(node)
        if affix is not None:
            return affix
        outer_scope, outer_locals = self._scope, dict(self._path_locals)
        target, over = self._open_loop(node)
        fold = self._fold_over(node)
        self._scope, self._path_locals = outer_scope, outer_locals
        self._block.extend(fold.before)
        self._block.append(ast.For(target=target, iter=over, body=fold.block, orelse=[*fold.after], type_comment=None))
        return fold.term

    def _generate_bind(self, node: Comprehension) -> Term:
        value = self._generate(node.start)
        local = self._names.add_local(node.accumulator)
        self._block.append(make_assignment(local, value.code))
        outer = self._scope
        self._scope = {**outer, node.accumulator: Variable(local, value.kind)}
        try:
            return self._generate(node.result)
        finally:
            self._scope = outer

    def _open_loop(self, node: Comprehension) -> tuple[ast.expr, ast.expr]:
        """Put the variables in scope; return the target of the loop and its iterable."""
        over = self._generate(node.range)
        element = TermKind.JSON if over.kind in PLAIN else TermKind.ANY
        first = self._names.add_local(node.variable)
        if node.second_variable is not None:
            second = self._names.add_local(node.second_variable)
            scope = {node.variable: Variable(first, TermKind.JSON), node.second_variable: Variable(second, element)}
            self._scope = {**self._scope, **scope}
            target = ast.Tuple([ast.Name(first, ast.Store()), ast.Name(second, ast.Store())], ast.Store())
            return target, self._names.call(pairs, over.code)
        self._scope = {**self._scope, node.variable: Variable(first, element)}
        return ast.Name(first, ast.Store()), self._make_iterable(over)

    def _make_iterable(self, over: Term) -> ast.expr:
        """Return the list of a range, or the map whose keys it is."""
        if over.kind in (TermKind.DOCUMENTS, TermKind.LIST):
            return over.code
        range_name = self._names.add_local("range")
        is_no_list = ast.Compare(make_class(make_name(range_name)), [ast.IsNot()], [self._names.use_class(list)])
        replaced = make_assignment(range_name, self._names.call(keys, make_name(range_name)))
        self._block += [make_assignment(range_name, over.code), ast.If(is_no_list, [replaced], [])]
        return make_name(range_name)

    def _join_affixes(self, node: Comprehension) -> Term | None:
        """Return `affixes.exists(affix, text.startsWith(affix))` as one call with a tuple; None for any other fold.

        Python tries the affixes in their order, and raises at one that is not a text, unless one before it matched.
        """
        call = None if node.predicate is None else self._checked.calls.get(node.predicate.id)
        if node.fold != "exists" or node.second_variable is not None or self._absorbing or call is None:
            return None
        match call.function.python, call.arguments:
            case MethodForm(name=name), (text, Identifier(name=node.variable)) if name in AFFIXES:
                if any(isinstance(part, Identifier) and part.name == node.variable for part in walk(text)):
                    return None
            case _:
                return None
        constant = self._folded.constants.get(node.range.id)
        if type(constant) is list and all(type(affix) is str for affix in constant):
            affixes: ast.expr = self._names.share(tuple(constant), "affixes")
        else:
            affixes = ast.Call(self._names.use_class(tuple), [self._make_iterable(self._generate(node.range))], [])
        return Term(ast.Call(ast.Attribute(self._generate(text).code, name, ast.Load()), [affixes], []), TermKind.BOOL)

    def _fold_over(self, node: Comprehension) -> _Fold:
        result = self._names.add_local(node.fold)
        match node.fold:
            case "all" | "exists":
                return self._quantify(node, result, stop=node.fold == "exists")
            case "exists_one":
                return self._count(node, result)
            case _:
                return self._collect(node, result)

    def _quantify(self, node: Comprehension, result: str, *, stop: bool) -> _Fold:
        predicate = require_part(node.predicate)
        absent = self._test_absence(predicate) if self._absorbing else None
        test, block = self._generate_inside(lambda: self._test(predicate))
        stopping: list[ast.stmt] = [make_assignment(result, ast.Constant(stop)), ast.Break()]
        block.append(ast.If(test if stop else ast.UnaryOp(ast.Not(), test), stopping, []))
        term, before = Term(make_name(result), TermKind.BOOL), [make_assignment(result, ast.Constant(not stop))]
        if not self._absorbing:
            return _Fold(term, before, block)
        erred = self._names.add_local("erred")
        passed: list[ast.stmt] = [make_assignment(erred, ast.Constant(value=True))]
        attempt = self._attempt(skip_under(absent, passed, block), passed)
        give_up = ast.If(make_name(erred), [ast.Expr(self._names.call(unforeseen))], [])
        return _Fold(term, [*before, make_assignment(erred, ast.Constant(value=False))], [attempt], (give_up,))

    def _test(self, predicate: Node) -> ast.expr:
        self._hoist(predicate)
        return self._generate_truth(predicate)

    def _count(self, node: Comprehension, result: str) -> _Fold:
        test, block = self._generate_inside(lambda: self._test(require_part(node.predicate)))
        add = ast.AugAssign(target=ast.Name(result, ast.Store()), op=ast.Add(), value=ast.Constant(1))
        block.append(ast.If(test, [add], []))
        is_one = ast.Compare(make_name(result), [ast.Eq()], [ast.Constant(1)])
        return _Fold(Term(is_one, TermKind.BOOL), [make_assignment(result, ast.Constant(0))], block)

    def _collect(self, node: Comprehension, result: str) -> _Fold:
        outer_locals = dict(self._path_locals)
        test, block = self._generate_inside(
            lambda: None if node.predicate is None else self._generate_truth(require_part(node.predicate))
        )
        body, inner = self._generate_inside(lambda: self._generate(require_part(node.body)))
        self._path_locals = outer_locals
        append = ast.Call(ast.Attribute(make_name(result), "append", ast.Load()), [body.code], [])
        inner.append(ast.Expr(append))
        block += inner if test is None else [ast.If(test, inner, [])]
        kind = TermKind.DOCUMENTS if body.kind in PLAIN else TermKind.LIST
        return _Fold(Term(make_name(result), kind), [make_assignment(result, ast.List([], ast.Load()))], block)
