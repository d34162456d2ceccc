"""A checked tree to one Python function: fast where the answer is ordinary, and raising wherever it is not.

The function is optimistic. What it returns is what the closures of `exact` return; of anything else, an error that another
operand may absorb, a value of an unforeseen class, it knows nothing, raises, and the closures decide. Guards stand only where
Python would give an answer that CEL does not: bools as ints, characters of strings, numbers beyond 64 bits.

Where that happens to most objects, there is a second, absorbing form. It passes over an operand of a logical operator that raises,
and over an element of `all` or `exists`: where another one decides, it does so whatever this one would have come to.

It is built of `ast` nodes, so that no text of a policy is ever parsed as Python, and every node has its place in the CEL text.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeVar, assert_never

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.errors import EvaluationStopped
from scanner.cel.evaluation import tracker_panics
from scanner.cel.evaluation.operators import is_member
from scanner.cel.evaluation.planner import may_be_sum
from scanner.cel.evaluation.selections import as_it_is, reread
from scanner.cel.functions.python_forms import Form
from scanner.cel.generation.python_calls import at, found, keys, pairs, unforeseen, unwrapped
from scanner.cel.generation.python_operations import Operations
from scanner.cel.generation.python_terms import (
    OF_CLASS,
    PLAIN,
    Kind,
    Names,
    Term,
    assign,
    class_of,
    either,
    identical,
    is_class,
    item,
    joined,
    name_of,
    of_type,
)
from scanner.cel.memo import Remembered
from scanner.cel.releases import OPTIONALS_KEPT
from scanner.cel.syntax.tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    children,
    walk,
)
from scanner.cel.values import runtime
from scanner.cel.values.values import Optional, Value, make_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scanner.cel.analysis.constants import Folded
    from scanner.cel.checking.checker import Checked
    from scanner.cel.checking.env import Environment
    from scanner.cel.functions.declaration import Function
    from scanner.cel.syntax.source import Source

FUNCTION = "cel"
ARGUMENT = "activation"
_DOCUMENTS = frozenset({"object", "oldObject", "params", "request", "namespaceObject"})
_Made = TypeVar("_Made")


class NotGenerated(Exception):
    """An expression has a part that only the closures evaluate."""


class _Bound(NamedTuple):
    """A variable of a macro: the local variable that holds it, and what is known of its value."""

    local: str
    kind: Kind


class Generated(NamedTuple):
    """The module that defines the function, and what its global names stand for."""

    module: ast.Module
    names: dict[str, object]


def generate(
    root: Node, checked: Checked, folded: Folded, environment: Environment, source: Source, *, absorbing: bool = False
) -> Generated:
    """Return the function of a checked tree as Python; raise `NotGenerated` where only the closures can evaluate it."""
    return _Generator(checked, folded, environment, source, absorbing=absorbing).function(root)


def can_absorb(root: Node, folded: Folded) -> bool:
    """Return whether the absorbing form of a function is another one."""
    return any(_absorbs(node) and node.id not in folded.constants for node in walk(root))


# --- what the generated functions call


# --- the generator


class _Generator:
    def __init__(
        self, checked: Checked, folded: Folded, environment: Environment, source: Source, *, absorbing: bool
    ) -> None:
        self._absorbing = absorbing
        self._checked = checked
        self._source = source
        self._folded = folded
        self._rewrap = as_it_is if OPTIONALS_KEPT.holds(environment.version) else runtime.rewrapped
        self._environment = environment
        self._declared = {name for name, _ in environment.variables}
        self._names = Names()
        self._operations = Operations(self._names)
        self._block: list[ast.stmt] = []
        self._roots: dict[str, str] = {}
        self._parsers: dict[str, Remembered[Value]] = {}
        self._scope: dict[str, _Bound] = {}
        self._known: dict[tuple[str, ...], str] = {}

    def function(self, root: Node) -> Generated:
        """Return the whole function."""
        roots: list[ast.stmt] = []
        for name in sorted(set(self._checked.names.values()) & self._declared):
            local = self._roots[name] = self._names.local(name)
            roots.append(assign(local, item(name_of(ARGUMENT), name)))
        self._hoist(root)
        result = self._term(root)
        self._block.append(ast.Return(result.code))
        module = ast.parse(f"def {FUNCTION}({ARGUMENT}): ...")
        (definition,) = module.body
        if isinstance(definition, ast.FunctionDef):
            definition.body = roots + self._block
        return Generated(module, self._names.values)

    # --- names

    # --- nodes

    def _term(self, node: Node) -> Term:
        """Return the Python of a node, placed where the node is in the text."""
        if node.id in self._folded.constants:
            term = self._constant(self._folded.constants[node.id])
        else:
            term = self._evaluated(node)
        return Term(self._placed(term.code, node.offset), term.kind)

    def _placed(self, code: ast.expr, offset: int) -> ast.expr:
        """Say where in the text an expression comes from, unless a part of it has said so."""
        if not hasattr(code, "lineno"):
            line, column = self._source.place(offset)
            before = (self._source.line(line) or "")[:column]
            code.lineno = code.end_lineno = max(line, 1)
            code.col_offset = len(before.encode("utf-8", "surrogatepass"))
            code.end_col_offset = code.col_offset + 1
        return code

    def _evaluated(self, node: Node) -> Term:
        match node:
            case Literal(value=value):
                return self._constant(value)
            case Identifier():
                return self._identifier(node)
            case Select():
                return self._select(node)
            case Call():
                return self._operation(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case StructLiteral():
                return self._struct(node)
            case Comprehension():
                return self._comprehension(node)
            case _:
                assert_never(node)

    def _constant(self, value: Value) -> Term:
        kind = OF_CLASS.get(type(value), Kind.ANY)
        if isinstance(value, float) and not isfinite(value):
            return Term(self._names.shared(value, "constant"), kind)
        if value is None or isinstance(value, bool | int | float | str):
            return Term(self._names.shared(value, "constant") if kind is Kind.ANY else ast.Constant(value), kind)
        if type(value) is list and all(type(element) in OF_CLASS for element in value):
            kind = Kind.DOCUMENTS
        return Term(self._names.shared(value, "constant"), kind)

    def _truth(self, node: Node) -> ast.expr:
        """Return the Python of a condition, whose value is True or False for certain."""
        return self._certain(self._term(node))

    def _certain(self, term: Term) -> ast.expr:
        if term.kind is Kind.BOOL:
            return term.code
        kept, name = self._names.kept(term.code)
        is_bool = ast.BoolOp(
            ast.Or(), [identical(kept, ast.Constant(value=True)), identical(name_of(name), ast.Constant(value=False))]
        )
        return either(is_bool, name_of(name), self._names.call(unforeseen))

    # --- names and selections

    def _identifier(self, node: Node) -> Term:
        term = self._bare(node)
        return self._reread(term) if self._is_bound(node) and term.kind is Kind.ANY else term

    def _is_bound(self, node: Node) -> bool:
        return node.id not in self._checked.globals and self._checked.names.get(node.id) in self._scope

    def _bare(self, node: Node) -> Term:
        """Return a variable as it is held, be it an optional."""
        name = self._checked.names[node.id]
        if self._is_bound(node):
            bound = self._scope[name]
            return Term(name_of(bound.local), bound.kind)
        if name not in self._roots:
            raise NotGenerated
        return Term(name_of(self._roots[name]), Kind.JSON if name in _DOCUMENTS else Kind.ANY)

    def _reread(self, term: Term) -> Term:
        """Return an optional as upstream has it after it was held by a variable or a conditional."""
        kept, name = self._names.kept(term.code)
        read_again = ast.Call(self._names.shared(_rereader(self._rewrap), "reread"), [name_of(name)], [])
        return Term(either(is_class(kept, self._names.use(Optional)), read_again, name_of(name)), term.kind)

    def _operand(self, node: Node) -> Term:
        """Return what a selection selects from: reading an optional through it raises, so that it need not be read again."""
        return self._bare(node) if isinstance(node, Identifier) else self._term(node)

    def _select(self, node: Select) -> Term:
        if node.id in self._checked.names:
            return self._identifier(node)
        if node.test:
            return self._has(node)
        if self._is_optional(node):
            return self._optional(node)
        known = self._known.get(self._path(node) or ())
        return self._selected(node) if known is None else Term(name_of(known), Kind.JSON)

    def _selected(self, node: Select) -> Term:
        if self._is_variable(node.operand):
            return self._variable(node)
        operand = self._operand(node.operand)
        return Term(item(operand.code, node.field), Kind.JSON if operand.kind in PLAIN else Kind.ANY)

    def _is_variable(self, node: Node) -> bool:
        return isinstance(node, Identifier) and self._checked.names[node.id] == "variables" and not self._is_bound(node)

    def _variable(self, node: Select) -> Term:
        """Read a variable of the policy: evaluated when it is read first."""
        entries = ast.Attribute(self._operand(node.operand).code, "entries", ast.Load())
        return Term(item(entries, node.field), of_type(self._checked.types[node.id]))

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
            return (self._roots[name],) if name in _DOCUMENTS and name in self._roots else None
        return None

    def _hoist(self, root: Node) -> None:
        """Read beforehand, once, what is read several times and at least once whatever happens."""
        if self._absorbing:
            return
        often = Counter(path for node in walk(root) for path in self._prefixes(node))
        certain = {path for node in _certainly(root) for path in self._prefixes(node)} - set(self._known)
        for path in sorted(certain, key=len):
            longer = any(often[other] == often[path] for other in certain if other[:-1] == path)
            if often[path] > 1 and not longer:
                local = self._names.local(path[-1])
                self._block.append(assign(local, self._chain(path)))
                self._known[path] = local

    def _prefixes(self, node: Node) -> Iterator[tuple[str, ...]]:
        """Yield the path of a selection whose operand is read as it stands: each selection of a chain yields its own."""
        path = self._path(node)
        if path is not None and len(path) > 1:
            yield path

    def _chain(self, path: tuple[str, ...]) -> ast.expr:
        """Return the selections of a path, from the longest part of it that is held already."""
        held = next((at_ for at_ in range(len(path) - 1, 1, -1) if path[:at_] in self._known), 1)
        code: ast.expr = name_of(self._known[path[:held]] if held > 1 else path[0])
        for field in path[held:]:
            code = item(code, field)
        return code

    def _has(self, node: Select) -> Term:
        if self._is_optional(node.operand):
            return Term(ast.UnaryOp(ast.Not(), self._walked(node.operand, node.field).absent), Kind.BOOL)
        operand = self._operand(node.operand)
        kept, name = self._names.kept(operand.code)
        field = ast.Constant(node.field)
        otherwise = (
            self._names.call(runtime.has, name_of(name), field)
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

    # --- optionals

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
        """Follow a chain from its first optional step on: whether the way ends before its end, and the value at its end."""
        steps: list[Node] = []
        while self._is_optional(node):
            steps.append(node)
            node = node.operand if isinstance(node, Select) else node.arguments[0] if isinstance(node, Call) else node
        base = self._operand(node)
        code, name = base.code, ""
        tests: list[ast.expr] = []
        for key in (*map(self._step, reversed(steps)), *map(ast.Constant, more)):
            name = self._names.local("step")
            looked = self._looked(code, key)
            kept = ast.NamedExpr(target=ast.Name(name, ast.Store()), value=looked)
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

    def _looked(self, container: ast.expr, key: ast.expr) -> ast.expr:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return ast.Call(ast.Attribute(container, "get", ast.Load()), [key, self._names.absent()], [])
        return self._names.call(found, container, key)

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

    # --- operators

    def _operation(self, node: Call) -> Term:
        match node.function:
            case "_&&_" | "_||_":
                return self._logic(node)
            case "_?_:_":
                return self._conditional(node)
            case "_==_" | "_!=_":
                return self._equality(node)
            case "_[_]" | "_[?_]" | "_?._":
                return self._index(node)
            case _:
                return self._function(node)

    def _logic(self, node: Call) -> Term:
        conjunction = node.function == "_&&_"
        terms = _terms(node)
        known = dict(self._known)
        if self._absorbing:
            return self._absorbed(terms, conjunction=conjunction)
        try:
            if any(self._needs_statements(term) for term in terms[1:]):
                return self._logic_in_steps(terms, conjunction=conjunction)
            operator = ast.And() if conjunction else ast.Or()
            values = [self._decides(term, terms[at + 1 :], when=conjunction) for at, term in enumerate(terms)]
            return Term(ast.BoolOp(operator, values), Kind.BOOL)
        finally:
            self._known = known

    def _absorbed(self, terms: Sequence[Node], *, conjunction: bool) -> Term:
        """Evaluate the terms until one decides; those that raise matter only where none does."""
        result, erred = self._names.local("holds"), self._names.local("erred")
        undecided: ast.expr = name_of(result) if conjunction else ast.UnaryOp(ast.Not(), name_of(result))
        neutral: list[ast.stmt] = [assign(erred, ast.Constant(value=True)), assign(result, ast.Constant(conjunction))]
        chain: list[ast.stmt] = []
        for term in reversed(terms):
            code, block = self._inside(partial(self._truth_apart, term))
            attempt = self._attempt([*block, assign(result, code)], neutral)
            chain = [attempt, ast.If(undecided, chain, [])] if chain else [attempt]
        raised = ast.BoolOp(ast.And(), [name_of(erred), undecided])
        give_up = ast.If(raised, [ast.Expr(self._names.call(unforeseen))], [])
        self._block += [assign(erred, ast.Constant(value=False)), *chain, give_up]
        return Term(name_of(result), Kind.BOOL)

    def _truth_apart(self, node: Node) -> ast.expr:
        """Return a condition that leaves nothing behind for others: it may not have been evaluated to its end."""
        known = dict(self._known)
        try:
            return self._truth(node)
        finally:
            self._known = known

    def _attempt(self, block: list[ast.stmt], otherwise: list[ast.stmt]) -> ast.stmt:
        stopped = ast.ExceptHandler(self._names.class_(EvaluationStopped), None, [ast.Raise(None, None)])
        raised = ast.ExceptHandler(self._names.class_(Exception), None, otherwise)
        return ast.Try(body=block, handlers=[stopped, raised], orelse=[], finalbody=[])

    def _needs_statements(self, node: Node) -> bool:
        """Return whether a node is evaluated by statements before its expression."""
        loops = _has_loop(node, self._folded)
        return loops or (self._absorbing and can_absorb(node, self._folded))

    def _logic_in_steps(self, terms: Sequence[Node], *, conjunction: bool) -> Term:
        """Evaluate the terms one after the other as statements, because some of them are loops."""
        result = self._names.local("holds")
        for at_, term in enumerate(terms):
            code, block = self._inside(partial(self._decides, term, terms[at_ + 1 :], when=conjunction))
            block.append(assign(result, code))
            if at_ == 0:
                self._block.extend(block)
                continue
            test: ast.expr = name_of(result) if conjunction else ast.UnaryOp(ast.Not(), name_of(result))
            self._block.append(ast.If(test, block, []))
        return Term(name_of(result), Kind.BOOL)

    def _decides(self, node: Node, rest: Sequence[Node], *, when: bool) -> ast.expr:
        """Return one condition; `has(x.y)` keeps what it found for those that are evaluated only when it holds."""
        test = node if when else _negated(node)
        if isinstance(test, Select) and test.test and rest:
            path = self._path(test.operand)
            if path is not None and any(self._mentions(term, test) for term in rest):
                return self._remembered(test, (*path, test.field), when=when)
        return self._truth(node)

    def _remembered(self, test: Select, path: tuple[str, ...], *, when: bool) -> ast.expr:
        local = self._names.local(test.field)
        got = self._looked(self._operand(test.operand).code, ast.Constant(test.field))
        kept = ast.NamedExpr(target=ast.Name(local, ast.Store()), value=got)
        self._known[path] = local
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
        known = dict(self._known)
        test = self._decides(condition, (yes,), when=True)
        if not (self._needs_statements(yes) or self._needs_statements(no)):
            then = self._branch(yes)
            self._known = known
            otherwise = self._branch(no)
            return Term(either(test, then.code, otherwise.code), joined(then.kind, otherwise.kind))
        result, chosen = self._names.local("value"), self._names.local("chosen")
        self._block.append(assign(chosen, test))
        then, block = self._inside(lambda: self._branch(yes))
        block.append(assign(result, then.code))
        self._known = known
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

    def _inside(self, make: Callable[[], _Made]) -> tuple[_Made, list[ast.stmt]]:
        """Return what is made and the statements that it needs before it."""
        outer, self._block = self._block, []
        try:
            return make(), self._block
        finally:
            self._block = outer

    def _equality(self, node: Call) -> Term:
        left, right = (self._term(argument) for argument in node.arguments)
        self._reject_sum(node.arguments[0], left)
        equal = node.function == "_==_"
        code = self._operations.compared(left, right, equal=equal) or self._operations.compared_exactly(
            left, right, equal=equal
        )
        return Term(code, Kind.BOOL)

    def _reject_sum(self, node: Node, term: Term) -> None:
        """Leave to the closures what may be a joined list of more than plain values: they know which lists are joined."""
        if term.kind not in PLAIN and may_be_sum(node, self._checked):
            raise NotGenerated

    # --- functions

    def _function(self, node: Call) -> Term:
        resolution = self._checked.calls[node.id]
        function, nodes = resolution.function, resolution.arguments
        pattern = self._folded.patterns.get(node.id)
        if pattern is not None and function.python is Form.PATTERN:
            subject = self._term(nodes[0]).code
            return Term(ast.Subscript(self._names.shared(pattern.answers, "pattern"), subject, ast.Load()), Kind.BOOL)
        members = self._folded.sets.get(node.id)
        if members is not None:
            return self._is_member(nodes[0], members)
        special = self._special(function, nodes)
        if special is not None:
            return special
        run = function.runner(resolution.overload_ids)
        tracker = tracker_panics.tracker_of(resolution)
        if tracker is not None:
            run = tracker_panics.watched(tracker, run)
        terms = [self._argument(argument, function) for argument in nodes]
        if all(term.kind is Kind.PARSED for term in terms):
            run = function.unguarded(resolution.overload_ids) or run
        return self._operations.inlined(function.python, terms, run) or self._applied(node, terms, run)

    def _applied(self, node: Call, terms: Sequence[Term], run: Callable[..., Value]) -> Term:
        called = ast.Call(self._names.shared(run, node.function), [term.code for term in terms], [])
        return Term(called, self._kind_of_result(node))

    def _kind_of_result(self, node: Call) -> Kind:
        """Return what a call gives; what a type parameter stands for is a guess of the checker where a list came as dyn."""
        call = self._checked.calls[node.id]
        candidates = (overload for overload in call.function.overloads if overload.id in call.overload_ids)
        is_guess = any(overload.result.family == "parameter" for overload in candidates)
        return Kind.ANY if is_guess else of_type(self._checked.types[node.id])

    def _argument(self, node: Node, function: Function) -> Term:
        """Return an argument; what is parsed only to be read is remembered by its text."""
        call = self._checked.calls.get(node.id)
        if call is None or not (call.function.parses and function.only_reads) or len(call.arguments) > 1:
            return self._term(node)
        name = call.function.name
        parsed = self._parsers.setdefault(name, Remembered(call.function.runner(call.overload_ids)))
        text = self._term(call.arguments[0])
        return Term(ast.Subscript(self._names.shared(parsed, name), text.code, ast.Load()), Kind.PARSED)

    def _is_member(self, node: Node, members: frozenset[tuple[type, Value]]) -> Term:
        element = self._term(node)
        if element.kind in PLAIN and all(kind is str for kind, _ in members):
            texts = frozenset(text for _, text in members)
            inside = ast.Compare(element.code, [ast.In()], [self._names.shared(texts, "members")])
            return Term(inside, Kind.BOOL)
        return Term(self._names.call(is_member, element.code, self._names.shared(members, "members")), Kind.BOOL)

    def _special(self, function: Function, nodes: Sequence[Node]) -> Term | None:
        if function.python is Form.SAME:
            return self._term(nodes[0])
        match function.name, nodes:
            case "!_", [operand]:
                return Term(ast.UnaryOp(ast.Not(), self._truth(operand)), Kind.BOOL)
            case "orValue", [optional, other]:
                return self._or_value(optional, other)
            case "or", [optional, other]:
                return self._or(optional, other)
            case "hasValue", [optional] if self._is_optional(optional):
                return Term(ast.UnaryOp(ast.Not(), self._walked(optional).absent), Kind.BOOL)
            case "@in", [_, MapLiteral() | Comprehension()]:
                raise NotGenerated
            case "@in", [element, _] if may_be_sum(element, self._checked):
                raise NotGenerated
            case _:
                return None

    # --- literals

    def _list(self, node: ListLiteral) -> Term:
        if node.optional:
            raise NotGenerated
        terms = [self._term(element) for element in node.elements]
        kind = Kind.DOCUMENTS if all(term.kind in PLAIN for term in terms) else Kind.LIST
        return Term(ast.List([term.code for term in terms], ast.Load()), kind)

    def _map(self, node: MapLiteral) -> Term:
        if any(entry.optional for entry in node.entries):
            raise NotGenerated
        pairs_ = [(self._term(entry.key), self._term(entry.value)) for entry in node.entries]
        if all(isinstance(key.code, ast.Constant) and key.kind is Kind.STRING for key, _ in pairs_):
            return Term(ast.Dict([key.code for key, _ in pairs_], [value.code for _, value in pairs_]), Kind.MAP)
        if not all(isinstance(key.code, ast.Constant) for key, _ in pairs_):
            raise NotGenerated
        entries = ast.List([ast.Tuple([key.code, value.code], ast.Load()) for key, value in pairs_], ast.Load())
        return Term(self._names.call(make_map, entries), Kind.MAP)

    def _struct(self, node: StructLiteral) -> Term:
        make = self._environment.maker(self._checked.names[node.id])
        if make is None or any(entry.optional for entry in node.entries):
            raise NotGenerated
        names: list[ast.expr | None] = [ast.Constant(entry.name) for entry in node.entries]
        fields = ast.Dict(names, [self._term(entry.value).code for entry in node.entries])
        return Term(ast.Call(self._names.shared(make, "make"), [fields], []), Kind.ANY)

    # --- comprehensions

    def _comprehension(self, node: Comprehension) -> Term:
        if node.is_open or node.fold in ("transformMap", "transformMapEntry"):
            raise NotGenerated
        if node.fold == "bind":
            return self._bind(node)
        outer, known = self._scope, dict(self._known)
        target, over = self._loop(node)
        fold = self._folded_over(node)
        self._scope, self._known = outer, known
        self._block.extend(fold.before)
        self._block.append(ast.For(target=target, iter=over, body=fold.block, orelse=[*fold.after], type_comment=None))
        return fold.term

    def _bind(self, node: Comprehension) -> Term:
        value = self._term(node.start)
        local = self._names.local(node.accumulator)
        self._block.append(assign(local, value.code))
        outer = self._scope
        self._scope = {**outer, node.accumulator: _Bound(local, value.kind)}
        try:
            return self._term(node.result)
        finally:
            self._scope = outer

    def _loop(self, node: Comprehension) -> tuple[ast.expr, ast.expr]:
        """Put the variables in scope; return the target of the loop and what it runs over."""
        over = self._term(node.range)
        element = Kind.JSON if over.kind in PLAIN else Kind.ANY
        first = self._names.local(node.variable)
        if node.second_variable is not None:
            second = self._names.local(node.second_variable)
            scope = {node.variable: _Bound(first, Kind.JSON), node.second_variable: _Bound(second, element)}
            self._scope = {**self._scope, **scope}
            target = ast.Tuple([ast.Name(first, ast.Store()), ast.Name(second, ast.Store())], ast.Store())
            return target, self._names.call(pairs, over.code)
        self._scope = {**self._scope, node.variable: _Bound(first, element)}
        if over.kind in (Kind.DOCUMENTS, Kind.LIST):
            return ast.Name(first, ast.Store()), over.code
        held = self._names.local("range")
        is_no_list = ast.Compare(class_of(name_of(held)), [ast.IsNot()], [self._names.class_(list)])
        replaced = assign(held, self._names.call(keys, name_of(held)))
        self._block += [assign(held, over.code), ast.If(is_no_list, [replaced], [])]
        return ast.Name(first, ast.Store()), name_of(held)

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
        test, block = self._inside(lambda: self._tested(_required(node.predicate)))
        found_it: list[ast.stmt] = [assign(result, ast.Constant(stop)), ast.Break()]
        block.append(ast.If(test if stop else ast.UnaryOp(ast.Not(), test), found_it, []))
        term, before = Term(name_of(result), Kind.BOOL), [assign(result, ast.Constant(not stop))]
        if not self._absorbing:
            return _Fold(term, before, block)
        erred = self._names.local("erred")
        attempt = self._attempt(block, [assign(erred, ast.Constant(value=True))])
        give_up = ast.If(name_of(erred), [ast.Expr(self._names.call(unforeseen))], [])
        return _Fold(term, [*before, assign(erred, ast.Constant(value=False))], [attempt], (give_up,))

    def _tested(self, predicate: Node) -> ast.expr:
        self._hoist(predicate)
        return self._truth(predicate)

    def _counted(self, node: Comprehension, result: str) -> _Fold:
        test, block = self._inside(lambda: self._tested(_required(node.predicate)))
        add = ast.AugAssign(target=ast.Name(result, ast.Store()), op=ast.Add(), value=ast.Constant(1))
        block.append(ast.If(test, [add], []))
        is_one = ast.Compare(name_of(result), [ast.Eq()], [ast.Constant(1)])
        return _Fold(Term(is_one, Kind.BOOL), [assign(result, ast.Constant(0))], block)

    def _collected(self, node: Comprehension, result: str) -> _Fold:
        known = dict(self._known)
        test, block = self._inside(lambda: None if node.predicate is None else self._truth(_required(node.predicate)))
        body, inner = self._inside(lambda: self._term(_required(node.body)))
        self._known = known
        append = ast.Call(ast.Attribute(name_of(result), "append", ast.Load()), [body.code], [])
        inner.append(ast.Expr(append))
        block += inner if test is None else [ast.If(test, inner, [])]
        kind = Kind.DOCUMENTS if body.kind in PLAIN else Kind.LIST
        return _Fold(Term(name_of(result), kind), [assign(result, ast.List([], ast.Load()))], block)


class _Fold(NamedTuple):
    """The result of a loop, the statements before it and in it, and those for when nothing has ended it."""

    term: Term
    before: list[ast.stmt]
    block: list[ast.stmt]
    after: tuple[ast.stmt, ...] = ()


class _Walked(NamedTuple):
    """Whether a chain of optional steps ends early, and the value at its end, good only after that was asked."""

    absent: ast.expr
    value: ast.expr
    kind: Kind


# --- Python, node by node


# --- trees


def _terms(node: Call) -> list[Node]:
    """Return the terms of a chain of one logical operator, left to right."""
    terms: list[Node] = []
    waiting: list[Node] = [node]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Call) and term.function == node.function:
            waiting.extend(reversed(term.arguments))
        else:
            terms.append(term)
    return terms


def _certainly(root: Node) -> Iterator[Node]:
    """Yield the nodes that are evaluated whatever the others come to, unless one of them raises."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case Call(function="_&&_" | "_||_" | "_?_:_"):
                waiting.append(node.arguments[0])
            case Call(function="orValue" | "or", target=Select() | Call() | Identifier() as target):
                waiting.append(target)
            case Comprehension(fold="bind"):
                waiting.append(node.start)
            case Comprehension():
                waiting.append(node.range)
            case _:
                waiting.extend(children(node))


def _negated(node: Node) -> Node | None:
    """Return what a negation negates."""
    return node.arguments[0] if isinstance(node, Call) and node.function == "!_" else None


def _has_loop(node: Node, folded: Folded) -> bool:
    """Return whether a node needs statements before its expression."""
    return any(isinstance(part, Comprehension) and part.id not in folded.constants for part in walk(node))


def _absorbs(node: Node) -> bool:
    """Return whether a node passes over parts of it that err, where others decide."""
    if isinstance(node, Comprehension):
        return node.fold in ("all", "exists")
    return isinstance(node, Call) and node.function in ("_&&_", "_||_")


def _required(node: Node | None) -> Node:
    if node is None:
        raise NotGenerated
    return node


def _rereader(rewrap: Callable[[Value], Value]) -> Callable[[Optional], Optional]:
    return _REREADERS.setdefault(rewrap, lambda optional: reread(optional, rewrap))


_REREADERS: dict[Callable[[Value], Value], Callable[[Optional], Optional]] = {}
