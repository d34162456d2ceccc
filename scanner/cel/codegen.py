"""A checked tree to one Python function: fast where the answer is ordinary, and raising wherever it is not.

The function is optimistic. What it returns is what the closures of `exact` return; of anything else, an error that another
operand may absorb, a value of an unforeseen class, it knows nothing, raises, and the closures decide. Guards stand only where
Python would give an answer that CEL does not: bools as ints, characters of strings, numbers beyond 64 bits.

It is built of `ast` nodes, so that no text of a policy is ever parsed as Python, and every node has its place in the CEL text.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from enum import StrEnum
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, TypeVar, assert_never

from scanner.cel import runtime, tracked
from scanner.cel.closures import is_member
from scanner.cel.exact import OPTIONALS_KEPT_SINCE
from scanner.cel.go_values import is_selection
from scanner.cel.remembered import Remembered
from scanner.cel.selections import as_it_is, reread
from scanner.cel.tree import (
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
from scanner.cel.type_system import BOOL, DOUBLE, INT, NULL, STRING, Type
from scanner.cel.values import INT_MAX, INT_MIN, NONE, Optional, Value, make_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scanner.cel.checker import Checked
    from scanner.cel.env import Environment
    from scanner.cel.folding import Folded
    from scanner.cel.source import Source

FUNCTION = "cel"
ARGUMENT = "activation"
_DOCUMENTS = frozenset({"object", "oldObject", "params", "request", "namespaceObject"})
_PARSERS = frozenset({"quantity", "semver", "ip", "cidr", "url"})
_ONLY_ASK = frozenset({"isLessThan", "isGreaterThan", "compareTo", "containsIP", "containsCIDR", "family", "getHost"})
"""Functions that leave their arguments as they are; arithmetic on quantities does not, until 1.36."""
_EXACT_DOUBLES = 2**53
_Made = TypeVar("_Made")
_NOT_A_NAME = re.compile(r"\W")
_COMPARISONS: dict[str, type[ast.cmpop]] = {"_<_": ast.Lt, "_<=_": ast.LtE, "_>_": ast.Gt, "_>=_": ast.GtE}
_ARITHMETIC: dict[str, type[ast.operator]] = {"_+_": ast.Add, "_-_": ast.Sub, "_*_": ast.Mult}


class NotGenerated(Exception):
    """An expression has a part that only the closures evaluate."""


class Unforeseen(Exception):
    """A generated function met a value that it does not know about."""


class Kind(StrEnum):
    """What is known about the class of a value before it is there."""

    ANY = "any"
    JSON = "json"
    BOOL = "bool"
    INT = "int"
    SIZE = "size"
    DOUBLE = "double"
    STRING = "string"
    NULL = "null"
    DOCUMENTS = "list of JSON"
    LIST = "list"
    MAP = "map"
    PARSED = "parsed"


_PLAIN = frozenset(Kind) - {Kind.ANY, Kind.LIST, Kind.MAP, Kind.PARSED}
"""Kinds whose values are what a JSON document may hold."""
_WHOLE = frozenset({Kind.INT, Kind.SIZE})
_OF_TYPE = {BOOL: Kind.BOOL, INT: Kind.INT, DOUBLE: Kind.DOUBLE, STRING: Kind.STRING, NULL: Kind.NULL}
_OF_CLASS = {bool: Kind.BOOL, int: Kind.INT, float: Kind.DOUBLE, str: Kind.STRING, type(None): Kind.NULL}


class Term(NamedTuple):
    """Python for a CEL node, and what is known of its value."""

    code: ast.expr
    kind: Kind


class _Bound(NamedTuple):
    """A variable of a macro: the local variable that holds it, and what is known of its value."""

    local: str
    kind: Kind


class Generated(NamedTuple):
    """The module that defines the function, and what its global names stand for."""

    module: ast.Module
    names: dict[str, object]


def generate(root: Node, checked: Checked, folded: Folded, environment: Environment, source: Source) -> Generated:
    """Return the function of a checked tree as Python; raise `NotGenerated` where only the closures can evaluate it."""
    return _Generator(checked, folded, environment, source).function(root)


# --- what the generated functions call


def unforeseen() -> Value:
    """Give up: raise."""
    raise Unforeseen


def keys(container: Value) -> Value:
    """Return what a comprehension runs over, other than a list."""
    if type(container) is dict:
        return container
    raise Unforeseen


def pairs(container: Value) -> Iterable[tuple[Value, Value]]:
    """Return what a comprehension of two variables runs over."""
    if type(container) is dict or type(container) is list:
        return runtime.pairs(container)
    raise Unforeseen


def at(container: Value, key: Value) -> Value:
    """Return `container[key]` of a list or a map of strings."""
    if type(container) is list and type(key) is int and 0 <= key < len(container):
        return container[key]
    if type(container) is dict and type(key) is str:
        return container[key]
    raise Unforeseen


def found(container: Value, key: Value) -> Value:
    """Return what is under a key or index of a list or a map, or `NONE`."""
    if type(container) is dict or type(container) is list:
        entry = runtime.look_up(container, key)
        return NONE if entry is None else entry[0]
    raise Unforeseen


def unwrapped(optional: Value) -> Optional:
    """Return an optional, to be looked into."""
    if type(optional) is Optional:
        return optional
    raise Unforeseen


# --- the generator


class _Generator:
    def __init__(self, checked: Checked, folded: Folded, environment: Environment, source: Source) -> None:
        self._checked = checked
        self._source = source
        self._folded = folded
        self._again = as_it_is if environment.version >= OPTIONALS_KEPT_SINCE else runtime.rewrapped
        self._declared = {name for name, _ in environment.variables}
        self._names: dict[str, object] = {"__builtins__": {}}
        self._shared: dict[tuple[str, int], str] = {}
        self._counter = 0
        self._block: list[ast.stmt] = []
        self._roots: dict[str, str] = {}
        self._parsers: dict[str, Remembered[Value]] = {}
        self._scope: dict[str, _Bound] = {}
        self._known: dict[tuple[str, ...], str] = {}

    def function(self, root: Node) -> Generated:
        """Return the whole function."""
        roots: list[ast.stmt] = []
        for name in sorted(set(self._checked.names.values()) & self._declared):
            local = self._roots[name] = self._local(name)
            roots.append(_assign(local, _item(_name(ARGUMENT), name)))
        self._hoist(root)
        result = self._term(root)
        self._block.append(ast.Return(result.code))
        module = ast.parse(f"def {FUNCTION}({ARGUMENT}): ...")
        (definition,) = module.body
        if isinstance(definition, ast.FunctionDef):
            definition.body = roots + self._block
        return Generated(module, self._names)

    # --- names

    def _local(self, name: str) -> str:
        self._counter += 1
        return f"{_NOT_A_NAME.sub('_', name)}_{self._counter}"

    def _global(self, value: object, name: str) -> ast.expr:
        """Return a name for a value that the function uses."""
        known = self._shared.get((name, id(value)))
        if known is None:
            known = self._shared[name, id(value)] = self._local(f"the_{name}")
            self._names[known] = value
        return _name(known)

    def _use(self, function: Callable[..., object]) -> ast.expr:
        name = f"{function.__name__}"
        self._names[name] = function
        return _name(name)

    def _call(self, function: Callable[..., object], *arguments: ast.expr) -> ast.expr:
        return ast.Call(func=self._use(function), args=list(arguments), keywords=[])

    def _kept(self, code: ast.expr, name: str = "value") -> tuple[ast.expr, str]:
        """Return an expression that keeps its value under a local name, and the name."""
        if isinstance(code, ast.Name) and code.id not in self._names:
            return code, code.id
        local = self._local(name)
        return ast.NamedExpr(target=ast.Name(local, ast.Store()), value=code), local

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
                raise NotGenerated
            case Comprehension():
                return self._comprehension(node)
            case _:
                assert_never(node)

    def _constant(self, value: Value) -> Term:
        kind = _OF_CLASS.get(type(value), Kind.ANY)
        if isinstance(value, float) and not isfinite(value):
            return Term(self._global(value, "constant"), kind)
        if value is None or isinstance(value, bool | int | float | str):
            return Term(self._global(value, "constant") if kind is Kind.ANY else ast.Constant(value), kind)
        if type(value) is list and all(type(element) in _OF_CLASS for element in value):
            kind = Kind.DOCUMENTS
        return Term(self._global(value, "constant"), kind)

    def _truth(self, node: Node) -> ast.expr:
        """Return the Python of a condition, whose value is True or False for certain."""
        return self._certain(self._term(node))

    def _certain(self, term: Term) -> ast.expr:
        if term.kind is Kind.BOOL:
            return term.code
        kept, name = self._kept(term.code)
        is_bool = ast.BoolOp(
            ast.Or(), [_is(kept, ast.Constant(value=True)), _is(_name(name), ast.Constant(value=False))]
        )
        return _if(is_bool, _name(name), self._call(unforeseen))

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
            return Term(_name(bound.local), bound.kind)
        if name not in self._roots:
            raise NotGenerated
        return Term(_name(self._roots[name]), Kind.JSON if name in _DOCUMENTS else Kind.ANY)

    def _reread(self, term: Term) -> Term:
        """Return an optional as upstream has it after it was held by a variable or a conditional."""
        kept, name = self._kept(term.code)
        again = ast.Call(self._global(_rereader(self._again), "reread"), [_name(name)], [])
        return Term(_if(_is_class(kept, self._use(Optional)), again, _name(name)), term.kind)

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
        return self._selected(node) if known is None else Term(_name(known), Kind.JSON)

    def _selected(self, node: Select) -> Term:
        if self._is_variable(node.operand):
            return self._variable(node)
        operand = self._operand(node.operand)
        return Term(_item(operand.code, node.field), Kind.JSON if operand.kind in _PLAIN else Kind.ANY)

    def _is_variable(self, node: Node) -> bool:
        return isinstance(node, Identifier) and self._checked.names[node.id] == "variables" and not self._is_bound(node)

    def _variable(self, node: Select) -> Term:
        """Read a variable of the policy: evaluated when it is read first."""
        entries = ast.Attribute(self._operand(node.operand).code, "entries", ast.Load())
        return Term(_item(entries, node.field), _of_type(self._checked.types[node.id]))

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
        often = Counter(path for node in walk(root) for path in self._prefixes(node))
        certain = {path for node in _certainly(root) for path in self._prefixes(node)} - set(self._known)
        for path in sorted(certain, key=len):
            longer = any(often[other] == often[path] for other in certain if other[:-1] == path)
            if often[path] > 1 and not longer:
                local = self._local(path[-1])
                self._block.append(_assign(local, self._chain(path)))
                self._known[path] = local

    def _prefixes(self, node: Node) -> Iterator[tuple[str, ...]]:
        """Yield the path of a selection whose operand is read as it stands: each selection of a chain yields its own."""
        path = self._path(node)
        if path is not None and len(path) > 1:
            yield path

    def _chain(self, path: tuple[str, ...]) -> ast.expr:
        """Return the selections of a path, from the longest part of it that is held already."""
        held = next((at_ for at_ in range(len(path) - 1, 1, -1) if path[:at_] in self._known), 1)
        code: ast.expr = _name(self._known[path[:held]] if held > 1 else path[0])
        for field in path[held:]:
            code = _item(code, field)
        return code

    def _has(self, node: Select) -> Term:
        if self._is_optional(node.operand):
            return Term(ast.UnaryOp(ast.Not(), self._walked(node.operand, node.field).absent), Kind.BOOL)
        operand = self._operand(node.operand)
        kept, name = self._kept(operand.code)
        field = ast.Constant(node.field)
        otherwise = self._call(runtime.has, _name(name), field) if operand.kind in _PLAIN else self._call(unforeseen)
        inside = ast.Compare(field, [ast.In()], [_name(name)])
        return Term(_if(_is_class(kept, self._class(dict)), inside, otherwise), Kind.BOOL)

    def _class(self, kind: type) -> ast.expr:
        self._names[kind.__name__] = kind
        return _name(kind.__name__)

    def _index(self, node: Call) -> Term:
        if node.function != "_[_]" or self._is_optional(node):
            return self._optional(node)
        container, key = node.arguments
        operand = self._operand(container)
        element = Kind.JSON if operand.kind in _PLAIN else Kind.ANY
        constant = self._folded.constants.get(key.id)
        if type(constant) is str:
            return Term(_item(operand.code, constant), element)
        if type(constant) is int and constant >= 0:
            kept, name = self._kept(operand.code)
            item = ast.Subscript(_name(name), ast.Constant(constant), ast.Load())
            return Term(_if(_is_class(kept, self._class(list)), item, self._call(unforeseen)), element)
        at_key = self._term(key)
        if at_key.kind is Kind.STRING:
            return Term(ast.Subscript(operand.code, at_key.code, ast.Load()), element)
        return Term(self._call(at, operand.code, at_key.code), element)

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
        made = ast.Call(self._use(Optional), [walked.value], [])
        return Term(_if(walked.absent, self._absent(), made), Kind.ANY)

    def _absent(self) -> ast.expr:
        self._names["NONE"] = NONE
        return _name("NONE")

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
            name = self._local("step")
            looked = self._looked(code, key)
            kept = ast.NamedExpr(target=ast.Name(name, ast.Store()), value=looked)
            tests.append(_is(kept, self._absent()))
            code = _name(name)
        absent = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        return _Walked(absent, _name(name), Kind.JSON if base.kind in _PLAIN else Kind.ANY)

    def _step(self, node: Node) -> ast.expr:
        if isinstance(node, Select):
            return ast.Constant(node.field)
        if not isinstance(node, Call):
            raise NotGenerated
        return self._term(node.arguments[1]).code

    def _looked(self, container: ast.expr, key: ast.expr) -> ast.expr:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return ast.Call(ast.Attribute(container, "get", ast.Load()), [key, self._absent()], [])
        return self._call(found, container, key)

    def _or_value(self, optional: Node, other: Node) -> Term:
        if self._is_optional(optional):
            walked = self._walked(optional)
            return self._chosen(walked.absent, other, Term(walked.value, walked.kind))
        kept, name = self._kept(self._call(unwrapped, self._term(optional).code))
        absent = ast.UnaryOp(ast.Not(), ast.Attribute(kept, "present", ast.Load()))
        value = ast.Call(ast.Attribute(_name(name), "unwrapped", ast.Load()), [], [])
        return self._chosen(absent, other, Term(value, Kind.ANY))

    def _or(self, optional: Node, other: Node) -> Term:
        kept, name = self._kept(self._call(unwrapped, self._term(optional).code))
        absent = ast.UnaryOp(ast.Not(), ast.Attribute(kept, "present", ast.Load()))
        return self._chosen(absent, other, Term(_name(name), Kind.ANY))

    def _chosen(self, absent: ast.expr, other: Node, value: Term) -> Term:
        """Return a value, or another where it is absent, which is evaluated only then."""
        test = absent
        if _has_loop(other, self._folded):
            held = self._local("absent")
            self._block.append(_assign(held, absent))
            test = _name(held)
            result = self._local("value")
            otherwise, block = self._inside(lambda: self._term(other))
            block.append(_assign(result, otherwise.code))
            self._block.append(ast.If(test, block, [_assign(result, value.code)]))
            return Term(_name(result), _joined(value.kind, otherwise.kind))
        otherwise = self._term(other)
        return Term(_if(test, otherwise.code, value.code), _joined(value.kind, otherwise.kind))

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
        try:
            if any(_has_loop(term, self._folded) for term in terms[1:]):
                return self._logic_in_steps(terms, conjunction=conjunction)
            operator = ast.And() if conjunction else ast.Or()
            values = [self._decides(term, terms[at + 1 :], when=conjunction) for at, term in enumerate(terms)]
            return Term(ast.BoolOp(operator, values), Kind.BOOL)
        finally:
            self._known = known

    def _logic_in_steps(self, terms: Sequence[Node], *, conjunction: bool) -> Term:
        """Evaluate the terms one after the other as statements, because some of them are loops."""
        result = self._local("holds")
        for at_, term in enumerate(terms):
            code, block = self._inside(partial(self._decides, term, terms[at_ + 1 :], when=conjunction))
            block.append(_assign(result, code))
            if at_ == 0:
                self._block.extend(block)
                continue
            test: ast.expr = _name(result) if conjunction else ast.UnaryOp(ast.Not(), _name(result))
            self._block.append(ast.If(test, block, []))
        return Term(_name(result), Kind.BOOL)

    def _decides(self, node: Node, rest: Sequence[Node], *, when: bool) -> ast.expr:
        """Return one condition; `has(x.y)` keeps what it found for those that are evaluated only when it holds."""
        test = node if when else _negated(node)
        if isinstance(test, Select) and test.test and rest:
            path = self._path(test.operand)
            if path is not None and any(self._mentions(term, test) for term in rest):
                return self._remembered(test, (*path, test.field), when=when)
        return self._truth(node)

    def _remembered(self, test: Select, path: tuple[str, ...], *, when: bool) -> ast.expr:
        local = self._local(test.field)
        got = self._looked(self._operand(test.operand).code, ast.Constant(test.field))
        kept = ast.NamedExpr(target=ast.Name(local, ast.Store()), value=got)
        self._known[path] = local
        return self._placed(ast.Compare(kept, [ast.IsNot() if when else ast.Is()], [self._absent()]), test.offset)

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
        if not (_has_loop(yes, self._folded) or _has_loop(no, self._folded)):
            then = self._branch(yes)
            self._known = known
            otherwise = self._branch(no)
            return Term(_if(test, then.code, otherwise.code), _joined(then.kind, otherwise.kind))
        result, chosen = self._local("value"), self._local("chosen")
        self._block.append(_assign(chosen, test))
        then, block = self._inside(lambda: self._branch(yes))
        block.append(_assign(result, then.code))
        self._known = known
        otherwise, other = self._inside(lambda: self._branch(no))
        other.append(_assign(result, otherwise.code))
        self._block.append(ast.If(_name(chosen), block, other))
        return Term(_name(result), _joined(then.kind, otherwise.kind))

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
        equal = node.function == "_==_"
        code = self._compared(left, right, equal=equal) or self._compared_exactly(left, right, equal=equal)
        return Term(code, Kind.BOOL)

    def _compared(self, left: Term, right: Term, *, equal: bool) -> ast.expr | None:
        """Return an inlined comparison where Python's own is CEL's."""
        same: ast.cmpop = ast.Eq() if equal else ast.NotEq()
        identical: ast.cmpop = ast.Is() if equal else ast.IsNot()
        kinds = {left.kind, right.kind}
        if isinstance(left.code, ast.Constant) and isinstance(right.code, ast.Constant):
            return None
        if Kind.NULL in kinds:
            return ast.Compare(left.code, [identical], [right.code])
        if kinds == {Kind.BOOL} or kinds <= _WHOLE:
            return ast.Compare(left.code, [same], [right.code])
        if Kind.STRING in kinds and (kinds <= _PLAIN or left.kind is Kind.STRING):
            return ast.Compare(left.code, [same], [right.code])
        if not kinds <= _PLAIN:
            return None
        for constant, other in ((right, left), (left, right)):
            if isinstance(constant.code, ast.Constant):
                code = self._compared_to(other, constant.code, equal=equal)
                if code is not None:
                    return code
        return None

    def _compared_to(self, other: Term, constant: ast.Constant, *, equal: bool) -> ast.expr | None:
        """Compare a JSON value to a literal; True and False are no numbers."""
        value = constant.value
        if type(value) is bool:
            return ast.Compare(other.code, [ast.Is() if equal else ast.IsNot()], [constant])
        if not isinstance(value, int | float) or abs(value) >= _EXACT_DOUBLES:
            return None
        if value not in (0, 1):
            return ast.Compare(other.code, [ast.Eq() if equal else ast.NotEq()], [constant])
        kept, name = self._kept(other.code)
        same = ast.Compare(kept, [ast.Eq()], [constant])
        number = ast.Compare(_class_of(_name(name)), [ast.IsNot()], [self._class(bool)])
        both = ast.BoolOp(ast.And(), [same, number])
        return both if equal else ast.UnaryOp(ast.Not(), both)

    def _compared_exactly(self, left: Term, right: Term, *, equal: bool) -> ast.expr:
        kept, name = self._kept(left.code)
        same: ast.cmpop = ast.Eq() if equal else ast.NotEq()
        function = runtime.equal if equal else runtime.unequal
        return _if(
            _is_class(kept, self._class(str)),
            ast.Compare(_name(name), [same], [right.code]),
            self._call(function, _name(name), right.code),
        )

    # --- functions

    def _function(self, node: Call) -> Term:
        resolution = self._checked.calls[node.id]
        name, nodes = resolution.function.name, resolution.arguments
        pattern = self._folded.patterns.get(node.id)
        if pattern is not None and name == "matches":
            subject = self._term(nodes[0]).code
            return Term(ast.Subscript(self._global(pattern.answers, "pattern"), subject, ast.Load()), Kind.BOOL)
        members = self._folded.sets.get(node.id)
        if members is not None:
            return self._is_member(nodes[0], members)
        special = self._special(name, nodes)
        if special is not None:
            return special
        run = resolution.function.runner(resolution.overload_ids)
        if tracked.is_tracked(resolution.overload_ids):
            run = tracked.watched(resolution.overload_ids[0], run)
        terms = [self._argument(argument, name) for argument in nodes]
        if len(resolution.overload_ids) == 1 and all(term.kind is Kind.PARSED for term in terms):
            run = resolution.function.unguarded(resolution.overload_ids[0]) or run
        return self._inlined(name, terms, run) or self._applied(node, terms, run)

    def _applied(self, node: Call, terms: Sequence[Term], run: Callable[..., Value]) -> Term:
        called = ast.Call(self._global(run, node.function), [term.code for term in terms], [])
        return Term(called, self._kind_of_result(node))

    def _kind_of_result(self, node: Call) -> Kind:
        """Return what a call gives; what a type parameter stands for is a guess of the checker where a list came as dyn."""
        call = self._checked.calls[node.id]
        is_guess = any(
            one.id in call.overload_ids and one.result.family == "parameter" for one in call.function.overloads
        )
        return Kind.ANY if is_guess else _of_type(self._checked.types[node.id])

    def _argument(self, node: Node, function: str) -> Term:
        """Return an argument; what is parsed only to be asked something is remembered by its text."""
        call = self._checked.calls.get(node.id)
        if call is None or call.function.name not in _PARSERS or function not in _ONLY_ASK or len(call.arguments) > 1:
            return self._term(node)
        name = call.function.name
        parsed = self._parsers.setdefault(name, Remembered(call.function.runner(call.overload_ids)))
        text = self._term(call.arguments[0])
        return Term(ast.Subscript(self._global(parsed, name), text.code, ast.Load()), Kind.PARSED)

    def _is_member(self, node: Node, members: frozenset[tuple[type, Value]]) -> Term:
        element = self._term(node)
        if element.kind in _PLAIN and all(kind is str for kind, _ in members):
            texts = frozenset(text for _, text in members)
            inside = ast.Compare(element.code, [ast.In()], [self._global(texts, "members")])
            return Term(inside, Kind.BOOL)
        return Term(self._call(is_member, element.code, self._global(members, "members")), Kind.BOOL)

    def _special(self, name: str, nodes: Sequence[Node]) -> Term | None:
        match name, nodes:
            case "!_", [operand]:
                return Term(ast.UnaryOp(ast.Not(), self._truth(operand)), Kind.BOOL)
            case "orValue", [optional, other]:
                return self._or_value(optional, other)
            case "or", [optional, other]:
                return self._or(optional, other)
            case "hasValue", [optional] if self._is_optional(optional):
                return Term(ast.UnaryOp(ast.Not(), self._walked(optional).absent), Kind.BOOL)
            case "dyn", [operand]:
                return self._term(operand)
            case "@in", [_, MapLiteral() | Comprehension()]:
                raise NotGenerated
            case _:
                return None

    def _inlined(self, name: str, terms: Sequence[Term], run: Callable[..., Value]) -> Term | None:
        """Return Python's own operation where it is CEL's, or raises where it is not."""
        match name, terms:
            case "size", [operand] if operand.kind in _PLAIN | {Kind.LIST}:
                self._names["len"] = len
                return Term(ast.Call(_name("len"), [operand.code], []), Kind.SIZE)
            case "startsWith" | "endsWith", [operand, other]:
                method = ast.Attribute(operand.code, name.lower(), ast.Load())
                return Term(ast.Call(method, [other.code], []), Kind.BOOL)
            case "contains", [operand, other]:
                return self._contains(operand, other, run)
            case "string", [operand] if operand.kind is Kind.STRING:
                return operand
            case "string", [operand]:
                return self._as_text(operand, run)
            case "@in", [element, container]:
                return self._is_in(element, container)
            case (("_<_" | "_<=_" | "_>_" | "_>=_"), [left, right]):
                return self._ordered(_COMPARISONS[name](), left, right, run)
            case (("_+_" | "_-_" | "_*_"), [left, right]):
                return self._calculated(name, left, right, run)
            case (("_%_" | "_/_"), [left, right]):
                return self._divided(name, left, right, run)
            case _:
                return None

    def _as_text(self, operand: Term, run: Callable[..., Value]) -> Term:
        kept, name = self._kept(operand.code)
        printed = ast.Call(self._class(str), [_name(name)], [])
        converted = ast.Call(self._global(run, "string"), [_name(name)], [])
        whole = _if(_is_class(_name(name), self._class(int)), printed, converted)
        return Term(_if(_is_class(kept, self._class(str)), _name(name), whole), Kind.STRING)

    def _contains(self, operand: Term, other: Term, run: Callable[..., Value]) -> Term:
        if operand.kind is Kind.STRING:
            return Term(ast.Compare(other.code, [ast.In()], [operand.code]), Kind.BOOL)
        kept, name = self._kept(operand.code)
        inside = ast.Compare(other.code, [ast.In()], [_name(name)])
        otherwise = ast.Call(self._global(run, "contains"), [_name(name), other.code], [])
        return Term(_if(_is_class(kept, self._class(str)), inside, otherwise), Kind.BOOL)

    def _is_in(self, element: Term, container: Term) -> Term:
        if element.kind is not Kind.STRING:
            return Term(self._call(runtime.contains, container.code, element.code), Kind.BOOL)
        kept, name = self._kept(container.code)
        inside = ast.Compare(element.code, [ast.In()], [_name(name)])
        otherwise = self._call(runtime.contains, _name(name), element.code)
        return Term(_if(_is_class(kept, self._class(dict)), inside, otherwise), Kind.BOOL)

    def _ordered(self, operator: ast.cmpop, left: Term, right: Term, run: Callable[..., Value]) -> Term:
        kinds = {left.kind, right.kind}
        if kinds <= _WHOLE or kinds == {Kind.STRING}:
            return Term(ast.Compare(left.code, [operator], [right.code]), Kind.BOOL)
        ordered = self._global(run, type(operator).__name__)
        for at_, (whole, other) in enumerate(((right, left), (left, right))):
            if whole.kind in _WHOLE and other.kind in (Kind.JSON, Kind.ANY):
                kept, name = self._kept(other.code)
                pair = (_name(name), whole.code) if at_ == 0 else (whole.code, _name(name))
                compared = ast.Compare(pair[0], [operator], [pair[1]])
                otherwise = ast.Call(ordered, list(pair), [])
                return Term(_if(_is_class(kept, self._class(int)), compared, otherwise), Kind.BOOL)
        return Term(ast.Call(ordered, [left.code, right.code], []), Kind.BOOL)

    def _calculated(self, name: str, left: Term, right: Term, run: Callable[..., Value]) -> Term | None:
        operator = _ARITHMETIC[name]()
        kinds = {left.kind, right.kind}
        if name == "_+_" and Kind.STRING in kinds:
            return Term(ast.BinOp(left.code, operator, right.code), Kind.STRING)
        if name == "_+_" and kinds & {Kind.DOCUMENTS, Kind.LIST}:
            listed = Kind.DOCUMENTS if kinds <= _PLAIN else Kind.LIST
            return Term(ast.BinOp(left.code, operator, right.code), listed)
        if name == "_+_" and kinds <= _PLAIN and not kinds & _WHOLE:
            return Term(ast.Call(self._global(run, "add"), [left.code, right.code], []), Kind.JSON)
        if not (right.kind in _WHOLE and left.kind in _WHOLE | {Kind.JSON, Kind.ANY}):
            return None
        kept, operand = self._kept(left.code)
        result, kept_result = self._local("number"), ast.BinOp(_name(operand), operator, right.code)
        number = ast.NamedExpr(target=ast.Name(result, ast.Store()), value=kept_result)
        fits = ast.Compare(ast.Constant(INT_MIN), [ast.LtE(), ast.LtE()], [number, ast.Constant(INT_MAX)])
        test = ast.BoolOp(ast.And(), [_is_class(kept, self._class(int)), fits])
        otherwise = ast.Call(self._global(run, type(operator).__name__), [_name(operand), right.code], [])
        return Term(_if(test, _name(result), otherwise), Kind.INT)

    def _divided(self, name: str, left: Term, right: Term, run: Callable[..., Value]) -> Term | None:
        """Divide by a positive literal: of what is not negative, Python's quotient and remainder are CEL's."""
        divisor = right.code.value if isinstance(right.code, ast.Constant) else None
        if type(divisor) is not int or divisor <= 0 or left.kind not in _WHOLE | {Kind.JSON, Kind.ANY}:
            return None
        operator: ast.operator = ast.Mod() if name == "_%_" else ast.FloorDiv()
        kept, operand = self._kept(left.code)
        positive = ast.Compare(_name(operand), [ast.GtE()], [ast.Constant(0)])
        test = ast.BoolOp(ast.And(), [_is_class(kept, self._class(int)), positive])
        otherwise = ast.Call(self._global(run, type(operator).__name__), [_name(operand), right.code], [])
        divided = ast.BinOp(_name(operand), operator, right.code)
        return Term(_if(test, divided, otherwise), Kind.INT)

    # --- literals

    def _list(self, node: ListLiteral) -> Term:
        if node.optional:
            raise NotGenerated
        terms = [self._term(element) for element in node.elements]
        kind = Kind.DOCUMENTS if all(term.kind in _PLAIN for term in terms) else Kind.LIST
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
        return Term(self._call(make_map, entries), Kind.MAP)

    # --- comprehensions

    def _comprehension(self, node: Comprehension) -> Term:
        if node.fold in ("transformMap", "transformMapEntry"):
            raise NotGenerated
        if node.fold == "bind":
            return self._bind(node)
        outer, known = self._scope, dict(self._known)
        target, over = self._loop(node)
        term, start, block = self._folded_over(node)
        self._scope, self._known = outer, known
        self._block.extend(start)
        self._block.append(ast.For(target=target, iter=over, body=block, orelse=[], type_comment=None))
        return term

    def _bind(self, node: Comprehension) -> Term:
        value = self._term(node.start)
        local = self._local(node.accumulator)
        self._block.append(_assign(local, value.code))
        outer = self._scope
        self._scope = {**outer, node.accumulator: _Bound(local, value.kind)}
        try:
            return self._term(node.result)
        finally:
            self._scope = outer

    def _loop(self, node: Comprehension) -> tuple[ast.expr, ast.expr]:
        """Put the variables in scope; return the target of the loop and what it runs over."""
        over = self._term(node.range)
        element = Kind.JSON if over.kind in _PLAIN else Kind.ANY
        first = self._local(node.variable)
        if node.second_variable is not None:
            second = self._local(node.second_variable)
            scope = {node.variable: _Bound(first, Kind.JSON), node.second_variable: _Bound(second, element)}
            self._scope = {**self._scope, **scope}
            target = ast.Tuple([ast.Name(first, ast.Store()), ast.Name(second, ast.Store())], ast.Store())
            return target, self._call(pairs, over.code)
        self._scope = {**self._scope, node.variable: _Bound(first, element)}
        if over.kind in (Kind.DOCUMENTS, Kind.LIST):
            return ast.Name(first, ast.Store()), over.code
        held = self._local("range")
        is_no_list = ast.Compare(_class_of(_name(held)), [ast.IsNot()], [self._class(list)])
        replaced = _assign(held, self._call(keys, _name(held)))
        self._block += [_assign(held, over.code), ast.If(is_no_list, [replaced], [])]
        return ast.Name(first, ast.Store()), _name(held)

    def _folded_over(self, node: Comprehension) -> tuple[Term, list[ast.stmt], list[ast.stmt]]:
        """Return the result, the statement before the loop and those in it."""
        result = self._local(node.fold)
        match node.fold:
            case "all" | "exists":
                return self._quantified(node, result, stop=node.fold == "exists")
            case "exists_one":
                return self._counted(node, result)
            case _:
                return self._collected(node, result)

    def _quantified(
        self, node: Comprehension, result: str, *, stop: bool
    ) -> tuple[Term, list[ast.stmt], list[ast.stmt]]:
        test, block = self._inside(lambda: self._tested(_required(node.predicate)))
        found_it: list[ast.stmt] = [_assign(result, ast.Constant(stop)), ast.Break()]
        block.append(ast.If(test if stop else ast.UnaryOp(ast.Not(), test), found_it, []))
        return Term(_name(result), Kind.BOOL), [_assign(result, ast.Constant(not stop))], block

    def _tested(self, predicate: Node) -> ast.expr:
        self._hoist(predicate)
        return self._truth(predicate)

    def _counted(self, node: Comprehension, result: str) -> tuple[Term, list[ast.stmt], list[ast.stmt]]:
        test, block = self._inside(lambda: self._tested(_required(node.predicate)))
        add = ast.AugAssign(target=ast.Name(result, ast.Store()), op=ast.Add(), value=ast.Constant(1))
        block.append(ast.If(test, [add], []))
        is_one = ast.Compare(_name(result), [ast.Eq()], [ast.Constant(1)])
        return Term(is_one, Kind.BOOL), [_assign(result, ast.Constant(0))], block

    def _collected(self, node: Comprehension, result: str) -> tuple[Term, list[ast.stmt], list[ast.stmt]]:
        known = dict(self._known)
        test, block = self._inside(lambda: None if node.predicate is None else self._truth(_required(node.predicate)))
        body, inner = self._inside(lambda: self._term(_required(node.body)))
        self._known = known
        append = ast.Call(ast.Attribute(_name(result), "append", ast.Load()), [body.code], [])
        inner.append(ast.Expr(append))
        block += inner if test is None else [ast.If(test, inner, [])]
        kind = Kind.DOCUMENTS if body.kind in _PLAIN else Kind.LIST
        return Term(_name(result), kind), [_assign(result, ast.List([], ast.Load()))], block


class _Walked(NamedTuple):
    """Whether a chain of optional steps ends early, and the value at its end, good only after that was asked."""

    absent: ast.expr
    value: ast.expr
    kind: Kind


# --- Python, node by node


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign(targets=[ast.Name(name, ast.Store())], value=value, type_comment=None)


def _item(container: ast.expr, key: str) -> ast.expr:
    return ast.Subscript(container, ast.Constant(key), ast.Load())


def _if(test: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr:
    return ast.IfExp(test=test, body=yes, orelse=no)


def _is(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [ast.Is()], [right])


def _class_of(value: ast.expr) -> ast.expr:
    return ast.Attribute(value, "__class__", ast.Load())


def _is_class(value: ast.expr, kind: ast.expr) -> ast.expr:
    return _is(_class_of(value), kind)


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


def _required(node: Node | None) -> Node:
    if node is None:
        raise NotGenerated
    return node


def _of_type(type_: Type) -> Kind:
    """Return what a static type tells of a value; of a list, not what is in it."""
    return Kind.LIST if type_.family == "list" else _OF_TYPE.get(type_, Kind.ANY)


def _joined(one: Kind, other: Kind) -> Kind:
    """Return what is known of a value that is of one of two kinds."""
    if one is other:
        return one
    return Kind.JSON if one in _PLAIN and other in _PLAIN else Kind.ANY


def _rereader(again: Callable[[Value], Value]) -> Callable[[Optional], Optional]:
    return _REREADERS.setdefault(again, lambda optional: reread(optional, again))


_REREADERS: dict[Callable[[Value], Value], Callable[[Optional], Optional]] = {}
