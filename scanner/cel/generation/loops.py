"""Comprehensions as loops."""

from __future__ import annotations

import ast
from typing import NamedTuple

from scanner.cel.functions.python_forms import Method
from scanner.cel.generation.absorbing import unless
from scanner.cel.generation.logic import AFFIXES, Logic
from scanner.cel.generation.python_calls import keys, pairs, unforeseen
from scanner.cel.generation.python_terms import PLAIN, Kind, Term, assign, class_of, name_of
from scanner.cel.generation.writer import NotGenerated, Variable, required
from scanner.cel.syntax.tree import Comprehension, Identifier, Node, walk


class _Fold(NamedTuple):
    """The result of a loop, the statements before and in it, and those that run when the loop was not ended early."""

    term: Term
    before: list[ast.stmt]
    block: list[ast.stmt]
    after: tuple[ast.stmt, ...] = ()


class Loops(Logic):
    """Loops, and the variables that macros bind."""

    def _comprehension(self, node: Comprehension) -> Term:
        if node.is_open or node.fold in ("transformMap", "transformMapEntry"):
            raise NotGenerated
        if node.fold == "bind":
            return self._bind(node)
        affix = self._any_affix(node)
        if affix is not None:
            return affix
        outer, held = self._scope, dict(self._held)
        target, over = self._loop(node)
        fold = self._folded_over(node)
        self._scope, self._held = outer, held
        self._block.extend(fold.before)
        self._block.append(ast.For(target=target, iter=over, body=fold.block, orelse=[*fold.after], type_comment=None))
        return fold.term

    def _bind(self, node: Comprehension) -> Term:
        value = self._term(node.start)
        local = self._names.local(node.accumulator)
        self._block.append(assign(local, value.code))
        outer = self._scope
        self._scope = {**outer, node.accumulator: Variable(local, value.kind)}
        try:
            return self._term(node.result)
        finally:
            self._scope = outer

    def _loop(self, node: Comprehension) -> tuple[ast.expr, ast.expr]:
        """Put the variables in scope; return the target of the loop and its iterable."""
        over = self._term(node.range)
        element = Kind.JSON if over.kind in PLAIN else Kind.ANY
        first = self._names.local(node.variable)
        if node.second_variable is not None:
            second = self._names.local(node.second_variable)
            scope = {node.variable: Variable(first, Kind.JSON), node.second_variable: Variable(second, element)}
            self._scope = {**self._scope, **scope}
            target = ast.Tuple([ast.Name(first, ast.Store()), ast.Name(second, ast.Store())], ast.Store())
            return target, self._names.call(pairs, over.code)
        self._scope = {**self._scope, node.variable: Variable(first, element)}
        return ast.Name(first, ast.Store()), self._iterable(over)

    def _iterable(self, over: Term) -> ast.expr:
        """Return the list of a range, or the map whose keys it is."""
        if over.kind in (Kind.DOCUMENTS, Kind.LIST):
            return over.code
        held = self._names.local("range")
        is_no_list = ast.Compare(class_of(name_of(held)), [ast.IsNot()], [self._names.class_(list)])
        replaced = assign(held, self._names.call(keys, name_of(held)))
        self._block += [assign(held, over.code), ast.If(is_no_list, [replaced], [])]
        return name_of(held)

    def _any_affix(self, node: Comprehension) -> Term | None:
        """Return `affixes.exists(affix, text.startsWith(affix))` as one call with a tuple; None for any other fold.

        Python tries the affixes in their order, and raises at one that is not a text, unless one before it matched.
        """
        call = None if node.predicate is None else self._checked.calls.get(node.predicate.id)
        if node.fold != "exists" or node.second_variable is not None or self._absorbing or call is None:
            return None
        match call.function.python, call.arguments:
            case Method(name=name), (text, Identifier(name=node.variable)) if name in AFFIXES:
                if any(isinstance(part, Identifier) and part.name == node.variable for part in walk(text)):
                    return None
            case _:
                return None
        constant = self._folded.constants.get(node.range.id)
        if type(constant) is list and all(type(affix) is str for affix in constant):
            affixes: ast.expr = self._names.shared(tuple(constant), "affixes")
        else:
            affixes = ast.Call(self._names.class_(tuple), [self._iterable(self._term(node.range))], [])
        return Term(ast.Call(ast.Attribute(self._term(text).code, name, ast.Load()), [affixes], []), Kind.BOOL)

    def _folded_over(self, node: Comprehension) -> _Fold:
        result = self._names.local(node.fold)
        match node.fold:
            case "all" | "exists":
                return self._quantified(node, result, stop=node.fold == "exists")
            case "exists_one":
                return self._counted(node, result)
            case _:
                return self._collected(node, result)

    def _quantified(self, node: Comprehension, result: str, *, stop: bool) -> _Fold:
        predicate = required(node.predicate)
        absent = self._absence(predicate) if self._absorbing else None
        test, block = self._inside(lambda: self._tested(predicate))
        stopping: list[ast.stmt] = [assign(result, ast.Constant(stop)), ast.Break()]
        block.append(ast.If(test if stop else ast.UnaryOp(ast.Not(), test), stopping, []))
        term, before = Term(name_of(result), Kind.BOOL), [assign(result, ast.Constant(not stop))]
        if not self._absorbing:
            return _Fold(term, before, block)
        erred = self._names.local("erred")
        passed: list[ast.stmt] = [assign(erred, ast.Constant(value=True))]
        attempt = self._attempt(unless(absent, passed, block), passed)
        give_up = ast.If(name_of(erred), [ast.Expr(self._names.call(unforeseen))], [])
        return _Fold(term, [*before, assign(erred, ast.Constant(value=False))], [attempt], (give_up,))

    def _tested(self, predicate: Node) -> ast.expr:
        self._hoist(predicate)
        return self._truth(predicate)

    def _counted(self, node: Comprehension, result: str) -> _Fold:
        test, block = self._inside(lambda: self._tested(required(node.predicate)))
        add = ast.AugAssign(target=ast.Name(result, ast.Store()), op=ast.Add(), value=ast.Constant(1))
        block.append(ast.If(test, [add], []))
        is_one = ast.Compare(name_of(result), [ast.Eq()], [ast.Constant(1)])
        return _Fold(Term(is_one, Kind.BOOL), [assign(result, ast.Constant(0))], block)

    def _collected(self, node: Comprehension, result: str) -> _Fold:
        held = dict(self._held)
        test, block = self._inside(lambda: None if node.predicate is None else self._truth(required(node.predicate)))
        body, inner = self._inside(lambda: self._term(required(node.body)))
        self._held = held
        append = ast.Call(ast.Attribute(name_of(result), "append", ast.Load()), [body.code], [])
        inner.append(ast.Expr(append))
        block += inner if test is None else [ast.If(test, inner, [])]
        kind = Kind.DOCUMENTS if body.kind in PLAIN else Kind.LIST
        return _Fold(Term(name_of(result), kind), [assign(result, ast.List([], ast.Load()))], block)
