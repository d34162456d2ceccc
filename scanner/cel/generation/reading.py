"""Reads of names and plain paths: a path that is certainly read several times is read once, in advance."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from scanner.cel.analysis.go_values import DOCUMENTS
from scanner.cel.evaluation.selections import reread
from scanner.cel.generation.python_calls import look_up
from scanner.cel.generation.python_terms import (
    PLAIN,
    Kind,
    Term,
    assign,
    either,
    identical,
    is_class,
    item,
    name_of,
    of_type,
)
from scanner.cel.generation.writer import NotGenerated, Writer
from scanner.cel.syntax.tree import Call, Comprehension, Identifier, Node, Select, children, walk
from scanner.cel.values.values import Optional, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Reading(Writer):
    """Names, and selections of fields without optional steps."""

    def _identifier(self, node: Node) -> Term:
        term = self._bare(node)
        return self._reread(term) if self._is_bound(node) and term.kind is Kind.ANY else term

    def _is_bound(self, node: Node) -> bool:
        return node.id not in self._checked.globals and self._checked.names.get(node.id) in self._scope

    def _bare(self, node: Node) -> Term:
        """Return a variable in its stored form, optional or not."""
        name = self._checked.names[node.id]
        if self._is_bound(node):
            bound = self._scope[name]
            return Term(name_of(bound.local), bound.kind)
        if name not in self._roots:
            raise NotGenerated
        return Term(name_of(self._roots[name]), Kind.JSON if name in DOCUMENTS else Kind.ANY)

    def _reread(self, term: Term) -> Term:
        """Return an optional in upstream's form after a variable or a conditional has stored it."""
        kept, name = self._names.kept(term.code)
        read_again = ast.Call(self._names.shared(_rereader(self._rewrap), "reread"), [name_of(name)], [])
        return Term(either(is_class(kept, self._names.use(Optional)), read_again, name_of(name)), term.kind)

    def _operand(self, node: Node) -> Term:
        """Return the operand of a selection: a read of an optional through it raises, so that it need not be read again."""
        return self._bare(node) if isinstance(node, Identifier) else self._term(node)

    def _selected(self, node: Select) -> Term:
        if self._is_variable(node.operand):
            return self._variable(node)
        operand = self._operand(node.operand)
        return Term(item(operand.code, node.field), Kind.JSON if operand.kind in PLAIN else Kind.ANY)

    def _is_variable(self, node: Node) -> bool:
        return isinstance(node, Identifier) and self._checked.names[node.id] == "variables" and not self._is_bound(node)

    def _variable(self, node: Select) -> Term:
        """Read a variable of the policy: it is evaluated at its first read."""
        variables, local = self._operand(node.operand).code, self._names.local(node.field)
        entries = ast.Attribute(variables, "entries", ast.Load())
        kept = ast.NamedExpr(target=ast.Name(local, ast.Store()), value=self._lookup(entries, ast.Constant(node.field)))
        first = ast.Call(ast.Attribute(variables, "read", ast.Load()), [ast.Constant(node.field)], [])
        code = either(identical(kept, self._names.absent()), first, name_of(local))
        return Term(code, of_type(self._checked.types[node.id]))

    def _lookup(self, container: ast.expr, key: ast.expr) -> ast.expr:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return ast.Call(ast.Attribute(container, "get", ast.Load()), [key, self._names.absent()], [])
        return self._names.call(look_up, container, key)

    def _path(self, node: Node) -> tuple[str, ...] | None:
        """Return the local name and the fields that a selection reads, where all of them are plain."""
        if isinstance(node, Select) and not node.test and node.id not in self._checked.names:
            path = self._path(node.operand)
            return None if path is None else (*path, node.field)
        if isinstance(node, Identifier) and node.id in self._checked.names:
            name = self._checked.names[node.id]
            if self._is_bound(node):
                bound = self._scope[name]
                return (bound.local,) if bound.kind is Kind.JSON else None
            return (self._roots[name],) if name in DOCUMENTS and name in self._roots else None
        return None

    def _hoist(self, root: Node) -> None:
        """Hoist selections that are read repeatedly and unconditionally."""
        if self._absorbing:
            return
        often = Counter(path for node in walk(root) for path in self._prefixes(node))
        certain = {path for node in _certainly(root) for path in self._prefixes(node)} - set(self._held)
        for path in sorted(certain, key=len):
            longer = any(often[other] == often[path] for other in certain if other[:-1] == path)
            if often[path] > 1 and not longer:
                local = self._names.local(path[-1])
                self._block.append(assign(local, self._chain(path)))
                self._held[path] = local

    def _prefixes(self, node: Node) -> Iterator[tuple[str, ...]]:
        """Yield the path of a selection whose operand is read unchanged: each selection of a chain yields its own."""
        path = self._path(node)
        if path is not None and len(path) > 1:
            yield path

    def _chain(self, path: tuple[str, ...]) -> ast.expr:
        """Return the selections of a path, from its longest part that is stored in a local variable."""
        held = next((at_ for at_ in range(len(path) - 1, 1, -1) if path[:at_] in self._held), 1)
        code: ast.expr = name_of(self._held[path[:held]] if held > 1 else path[0])
        for field in path[held:]:
            code = item(code, field)
        return code


# --- trees


def _certainly(root: Node) -> Iterator[Node]:
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


def _rereader(rewrap: Callable[[Value], Value]) -> Callable[[Optional], Optional]:
    return _REREADERS.setdefault(rewrap, lambda optional: reread(optional, rewrap))


_REREADERS: dict[Callable[[Value], Value], Callable[[Optional], Optional]] = {}
