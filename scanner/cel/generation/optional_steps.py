"""Chains of selections with optional steps, presence tests, indexes, and the replacement of an absent value."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from scanner.cel.analysis.go_values import DOCUMENTS, is_selection
from scanner.cel.evaluation.selections import rewrap_optional
from scanner.cel.generation.python_calls import at, look_up, unforeseen, unwrapped
from scanner.cel.generation.python_terms import (
    PLAIN,
    Term,
    TermKind,
    find_kind,
    join_kinds,
    make_assignment,
    make_class_test,
    make_conditional,
    make_identity_test,
    make_item,
    make_name,
)
from scanner.cel.generation.writer import NotGenerated, Writer
from scanner.cel.syntax.tree import Call, Comprehension, Identifier, Node, Select, children, walk
from scanner.cel.values import access
from scanner.cel.values.values import Optional, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Reads of names and plain paths: a path that is certainly read several times is read once, in advance.


class PlainSteps(Writer):
    """Names, and selections of fields without optional steps."""

    def _generate_identifier(self, node: Node) -> Term:
        term = self._read_bare(node)
        return self._rewrap_term(term) if self._is_bound(node) and term.kind is TermKind.ANY else term

    def _is_bound(self, node: Node) -> bool:
        return node.id not in self._checked.globals and self._checked.names.get(node.id) in self._scope

    def _read_bare(self, node: Node) -> Term:
        """Return a variable in its stored form, optional or not."""
        name = self._checked.names[node.id]
        if self._is_bound(node):
            bound = self._scope[name]
            return Term(make_name(bound.local), bound.kind)
        if name not in self._roots:
            raise NotGenerated
        return Term(make_name(self._roots[name]), TermKind.JSON if name in DOCUMENTS else TermKind.ANY)

    def _rewrap_term(self, term: Term) -> Term:
        """Return an optional in upstream's form after a variable or a conditional has stored it."""
        storing, name = self._names.keep(term.code)
        read_again = ast.Call(self._names.share(_make_rewrapper(self._rewrap), "reread"), [make_name(name)], [])
        return Term(
            make_conditional(make_class_test(storing, self._names.use(Optional)), read_again, make_name(name)),
            term.kind,
        )

    def _generate_operand(self, node: Node) -> Term:
        """Return the operand of a selection: a read of an optional through it raises, so that it need not be read again."""
        return self._read_bare(node) if isinstance(node, Identifier) else self._generate(node)

    def _select_field(self, node: Select) -> Term:
        if self._is_variable(node.operand):
            return self._generate_variable(node)
        operand = self._generate_operand(node.operand)
        return Term(make_item(operand.code, node.field), TermKind.JSON if operand.kind in PLAIN else TermKind.ANY)

    def _is_variable(self, node: Node) -> bool:
        return isinstance(node, Identifier) and self._checked.names[node.id] == "variables" and not self._is_bound(node)

    def _generate_variable(self, node: Select) -> Term:
        """Read a variable of the policy: it is evaluated at its first read."""
        variables, local = self._generate_operand(node.operand).code, self._names.add_local(node.field)
        entries = ast.Attribute(variables, "entries", ast.Load())
        storing = ast.NamedExpr(
            target=ast.Name(local, ast.Store()), value=self._generate_lookup(entries, ast.Constant(node.field))
        )
        first = ast.Call(ast.Attribute(variables, "read", ast.Load()), [ast.Constant(node.field)], [])
        code = make_conditional(make_identity_test(storing, self._names.use_absent()), first, make_name(local))
        return Term(code, find_kind(self._checked.types[node.id]))

    def _generate_lookup(self, container: ast.expr, key: ast.expr) -> ast.expr:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return ast.Call(ast.Attribute(container, "get", ast.Load()), [key, self._names.use_absent()], [])
        return self._names.call(look_up, container, key)

    def _find_path(self, node: Node) -> tuple[str, ...] | None:
        """Return the local name and the fields that a selection reads, where all of them are plain."""
        if isinstance(node, Select) and not node.test and node.id not in self._checked.names:
            path = self._find_path(node.operand)
            return None if path is None else (*path, node.field)
        if isinstance(node, Identifier) and node.id in self._checked.names:
            name = self._checked.names[node.id]
            if self._is_bound(node):
                bound = self._scope[name]
                return (bound.local,) if bound.kind is TermKind.JSON else None
            return (self._roots[name],) if name in DOCUMENTS and name in self._roots else None
        return None

    def _hoist(self, root: Node) -> None:
        """Hoist selections that are read repeatedly and unconditionally."""
        if self._absorbing:
            return
        often = Counter(path for node in walk(root) for path in self._list_prefixes(node))
        certain = {path for node in _list_certain(root) for path in self._list_prefixes(node)} - set(self._path_locals)
        for path in sorted(certain, key=len):
            longer = any(often[other] == often[path] for other in certain if other[:-1] == path)
            if often[path] > 1 and not longer:
                local = self._names.add_local(path[-1])
                self._block.append(make_assignment(local, self._generate_chain(path)))
                self._path_locals[path] = local

    def _list_prefixes(self, node: Node) -> Iterator[tuple[str, ...]]:
        """Yield the path of a selection whose operand is read unchanged: each selection of a chain yields its own."""
        path = self._find_path(node)
        if path is not None and len(path) > 1:
            yield path

    def _generate_chain(self, path: tuple[str, ...]) -> ast.expr:
        """Return the selections of a path, from its longest part that is stored in a local variable."""
        longest = next((at_ for at_ in range(len(path) - 1, 1, -1) if path[:at_] in self._path_locals), 1)
        code: ast.expr = make_name(self._path_locals[path[:longest]] if longest > 1 else path[0])
        for field in path[longest:]:
            code = make_item(code, field)
        return code


# --- trees


def _list_certain(root: Node) -> Iterator[Node]:
    """Yield the nodes that are always evaluated, unless another of them raises."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Call(function="_&&_" | "_||_" | "_?_:_"):
                stack.append(node.arguments[0])
            case Call(function="orValue" | "or", target=Select() | Call() | Identifier() as target):
                stack.append(target)
            case Comprehension(fold="bind"):
                stack.append(node.start)
            case Comprehension():
                stack.append(node.range)
            case _:
                stack.extend(children(node))


def _make_rewrapper(rewrap: Callable[[Value], Value]) -> Callable[[Optional], Optional]:
    return _REREADERS.setdefault(rewrap, lambda optional: rewrap_optional(optional, rewrap))


_REREADERS: dict[Callable[[Value], Value], Callable[[Optional], Optional]] = {}


class _ChainEnd(NamedTuple):
    """The end of a chain of optional steps: whether it ended early, and its value, valid only after that test."""

    use_absent: ast.expr
    value: ast.expr
    kind: TermKind


class OptionalSteps(PlainSteps):
    """Selections of all kinds."""

    def _generate_select(self, node: Select) -> Term:
        if node.id in self._checked.names:
            return self._generate_identifier(node)
        if node.test:
            return self._generate_has(node)
        if self._is_optional(node):
            return self._generate_optional(node)
        local = self._path_locals.get(self._find_path(node) or ())
        return self._select_field(node) if local is None else Term(make_name(local), TermKind.JSON)

    def _generate_has(self, node: Select) -> Term:
        if self._is_optional(node.operand):
            return Term(ast.UnaryOp(ast.Not(), self._walk_steps(node.operand, node.field).use_absent), TermKind.BOOL)
        operand = self._generate_operand(node.operand)
        storing, name = self._names.keep(operand.code)
        field = ast.Constant(node.field)
        otherwise = (
            self._names.call(access.has, make_name(name), field)
            if operand.kind in PLAIN
            else self._names.call(unforeseen)
        )
        inside = ast.Compare(field, [ast.In()], [make_name(name)])
        return Term(
            make_conditional(make_class_test(storing, self._names.use_class(dict)), inside, otherwise), TermKind.BOOL
        )

    def _generate_index(self, node: Call) -> Term:
        if node.function != "_[_]" or self._is_optional(node):
            return self._generate_optional(node)
        container, key = node.arguments
        operand = self._generate_operand(container)
        element = TermKind.JSON if operand.kind in PLAIN else TermKind.ANY
        constant = self._folded.constants.get(key.id)
        if type(constant) is str:
            return Term(make_item(operand.code, constant), element)
        if type(constant) is int and constant >= 0:
            storing, name = self._names.keep(operand.code)
            at_index = ast.Subscript(make_name(name), ast.Constant(constant), ast.Load())
            return Term(
                make_conditional(
                    make_class_test(storing, self._names.use_class(list)), at_index, self._names.call(unforeseen)
                ),
                element,
            )
        at_key = self._generate(key)
        if at_key.kind is TermKind.STRING:
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

    def _generate_optional(self, node: Node) -> Term:
        walked = self._walk_steps(node)
        optional = ast.Call(self._names.use(Optional), [walked.value], [])
        return Term(make_conditional(walked.use_absent, self._names.use_absent(), optional), TermKind.ANY)

    def _walk_steps(self, node: Node, *more: str) -> _ChainEnd:
        """Follow a chain from its first optional step on: whether it ends early, and the value at its end."""
        steps: list[Node] = []
        while self._is_optional(node):
            steps.append(node)
            node = node.operand if isinstance(node, Select) else node.arguments[0] if isinstance(node, Call) else node
        base = self._generate_operand(node)
        code, name = base.code, ""
        tests: list[ast.expr] = []
        for key in (*map(self._generate_step, reversed(steps)), *map(ast.Constant, more)):
            name = self._names.add_local("step")
            value = self._generate_lookup(code, key)
            storing = ast.NamedExpr(target=ast.Name(name, ast.Store()), value=value)
            tests.append(make_identity_test(storing, self._names.use_absent()))
            code = make_name(name)
        absent = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        return _ChainEnd(absent, make_name(name), TermKind.JSON if base.kind in PLAIN else TermKind.ANY)

    def _generate_step(self, node: Node) -> ast.expr:
        if isinstance(node, Select):
            return ast.Constant(node.field)
        if not isinstance(node, Call):
            raise NotGenerated
        return self._generate(node.arguments[1]).code

    def _generate_or_value(self, optional: Node, other: Node) -> Term:
        if self._is_optional(optional):
            walked = self._walk_steps(optional)
            return self._choose(walked.use_absent, other, Term(walked.value, walked.kind))
        storing, name = self._names.keep(self._names.call(unwrapped, self._generate(optional).code))
        absent = ast.UnaryOp(ast.Not(), ast.Attribute(storing, "present", ast.Load()))
        value = ast.Call(ast.Attribute(make_name(name), "unwrapped", ast.Load()), [], [])
        return self._choose(absent, other, Term(value, TermKind.ANY))

    def _generate_or(self, optional: Node, other: Node) -> Term:
        storing, name = self._names.keep(self._names.call(unwrapped, self._generate(optional).code))
        absent = ast.UnaryOp(ast.Not(), ast.Attribute(storing, "present", ast.Load()))
        return self._choose(absent, other, Term(make_name(name), TermKind.ANY))

    def _choose(self, absent: ast.expr, other: Node, value: Term) -> Term:
        """Return a value, or another where it is absent, which is evaluated only then."""
        test = absent
        if self._needs_statements(other):
            absent_name = self._names.add_local("absent")
            self._block.append(make_assignment(absent_name, absent))
            test = make_name(absent_name)
            result = self._names.add_local("value")
            otherwise, block = self._generate_inside(lambda: self._generate(other))
            block.append(make_assignment(result, otherwise.code))
            self._block.append(ast.If(test, block, [make_assignment(result, value.code)]))
            return Term(make_name(result), join_kinds(value.kind, otherwise.kind))
        otherwise = self._generate(other)
        return Term(make_conditional(test, otherwise.code, value.code), join_kinds(value.kind, otherwise.kind))
