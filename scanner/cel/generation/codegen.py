"""The translation of a checked tree to one Python function: fast for ordinary values, and raising for all others.

A result of the function equals the result of the closures of `exact`. In any other case, such as an error that another
operand may absorb or a value of an unforeseen class, the function raises and the closures decide. Guards exist only where
Python would return a result that CEL does not: bools as ints, characters of strings, numbers beyond 64 bits.

Where the function raises on most objects, there is a second, absorbing form. It ignores an operand of a logical operator that
raises, and an element of `all` or `exists`: where another operand or element decides, the result does not depend on that one.

It is built of `ast` nodes, so that no text of a policy is ever parsed as Python, and every node has its place in the CEL text.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, assert_never

from scanner.cel.errors import EvaluationError
from scanner.cel.evaluation import tracker_panics
from scanner.cel.evaluation.operators import is_member
from scanner.cel.evaluation.planner import may_be_sum
from scanner.cel.functions.python_forms import PlainForm
from scanner.cel.generation.loops import Loops
from scanner.cel.generation.python_terms import (
    PLAIN,
    Term,
    TermKind,
    find_kind,
    make_assignment,
    make_identity_test,
    make_item,
    make_name,
)
from scanner.cel.generation.writer import NotGenerated
from scanner.cel.memo import ResultCache
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
)
from scanner.cel.values import access
from scanner.cel.values.values import Value, make_map

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.functions.declaration import Function
    from scanner.cel.syntax.source import Source

FUNCTION = "cel"
ARGUMENT = "activation"


class GeneratedModule(NamedTuple):
    """The module that defines the function, and the values of its global names."""

    module: ast.Module
    names: dict[str, object]


def generate(
    root: Node,
    checked: CheckedTree,
    folded: FoldedTree,
    environment: Environment,
    source: Source,
    *,
    absorbing: bool = False,
) -> GeneratedModule:
    """Return the function of a checked tree as Python. Raises `NotGenerated` where only the closures can evaluate it.

    `source` gives the Python nodes their places; `absorbing` selects the form that ignores operands that raise.
    """
    return _Generator(checked, folded, environment, source, absorbing=absorbing).generate_function(root)


def generate_refusal(
    root: Node, checked: CheckedTree, folded: FoldedTree, environment: Environment, source: Source
) -> GeneratedModule | None:
    """Return a function that returns the error of an expression whose first path is absent, or None where it has no such error.

    None for an expression that does not begin with a path, or whose outcome may be another one then.
    """
    return _Generator(checked, folded, environment, source, absorbing=True).generate_refusal(root)


class _Generator(Loops):
    def generate_function(self, root: Node) -> GeneratedModule:
        """Return the module that defines the function of the whole expression. Raises NotGenerated."""
        roots = self._declare_roots()
        self._hoist(root)
        result = self._generate(root)
        return self._make_module([*roots, *self._block, ast.Return(result.code)])

    def generate_refusal(self, root: Node) -> GeneratedModule | None:
        """Return the module of a function that reads the first path alone; None for an expression without one."""
        roots = self._declare_roots()
        path = self._find_first_path(root, alone=True)
        if not path:
            return None
        block: list[ast.stmt] = []
        container = path[0]
        for field in path[1:]:
            local = self._names.add_local(field)
            block.append(make_assignment(local, self._generate_lookup(make_name(container), ast.Constant(field))))
            error = ast.Call(
                self._names.use_class(EvaluationError), [ast.Constant(str(access.make_no_such_key(field)))], []
            )
            block.append(
                ast.If(make_identity_test(make_name(local), self._names.use_absent()), [ast.Return(error)], [])
            )
            container = local
        return self._make_module([*roots, *block])

    def _declare_roots(self) -> list[ast.stmt]:
        """Return the statements that put the declared variables into locals."""
        roots: list[ast.stmt] = []
        for name in sorted(set(self._checked.names.values()) & self._declared):
            local = self._roots[name] = self._names.add_local(name)
            roots.append(make_assignment(local, make_item(make_name(ARGUMENT), name)))
        return roots

    def _make_module(self, body: list[ast.stmt]) -> GeneratedModule:
        module = ast.parse(f"def {FUNCTION}({ARGUMENT}): ...")
        (definition,) = module.body
        if isinstance(definition, ast.FunctionDef):
            definition.body = body
        return GeneratedModule(module, self._names.values)

    def _generate(self, node: Node) -> Term:
        """Return the Python of a node, with the node's position in the text."""
        if node.id in self._folded.constants:
            term = self._generate_constant(self._folded.constants[node.id])
        else:
            term = self._generate_unplaced(node)
        return Term(self._place(term.code, node.offset), term.kind)

    def _generate_unplaced(self, node: Node) -> Term:
        match node:
            case Literal(value=value):
                return self._generate_constant(value)
            case Identifier():
                return self._generate_identifier(node)
            case Select():
                return self._generate_select(node)
            case Call():
                return self._generate_operation(node)
            case ListLiteral():
                return self._generate_list(node)
            case MapLiteral():
                return self._generate_map(node)
            case StructLiteral():
                return self._generate_struct(node)
            case Comprehension():
                return self._generate_comprehension(node)
            case _:
                assert_never(node)

    def _generate_operation(self, node: Call) -> Term:
        match node.function:
            case "_&&_" | "_||_":
                return self._generate_logic(node)
            case "_?_:_":
                return self._generate_conditional(node)
            case "_==_" | "_!=_":
                return self._generate_equality(node)
            case "_[_]" | "_[?_]" | "_?._":
                return self._generate_index(node)
            case _:
                return self._generate_function(node)

    def _generate_equality(self, node: Call) -> Term:
        left, right = (self._generate(argument) for argument in node.arguments)
        self._reject_sum(node.arguments[0], left)
        equal = node.function == "_==_"
        code = self._operations.compare(left, right, equal=equal) or self._operations.compare_exactly(
            left, right, equal=equal
        )
        return Term(code, TermKind.BOOL)

    def _reject_sum(self, node: Node, term: Term) -> None:
        """Leave a possibly joined list of more than plain values to the closures: they record which lists are joined."""
        if term.kind not in PLAIN and may_be_sum(node, self._checked):
            raise NotGenerated

    def _generate_function(self, node: Call) -> Term:
        resolution = self._checked.calls[node.id]
        function, nodes = resolution.function, resolution.arguments
        pattern = self._folded.patterns.get(node.id)
        if pattern is not None and function.python is PlainForm.PATTERN:
            subject = self._generate(nodes[0]).code
            return Term(
                ast.Subscript(self._names.share(pattern.answers, "pattern"), subject, ast.Load()), TermKind.BOOL
            )
        members = self._folded.sets.get(node.id)
        if members is not None:
            return self._generate_membership(nodes[0], members)
        special = self._generate_special(function, nodes)
        if special is not None:
            return special
        run = function.find_run(resolution.overload_ids)
        tracker = tracker_panics.find_tracker(resolution)
        if tracker is not None:
            run = tracker_panics.watch_calls(tracker, run)
        terms = [self._generate_argument(argument, function) for argument in nodes]
        if all(term.kind is TermKind.PARSED for term in terms):
            run = function.find_unguarded_run(resolution.overload_ids) or run
        overload = function.find_overload(resolution.overload_ids)
        return self._operations.inline(function.python, terms, run, overload) or self._generate_call(node, terms, run)

    def _generate_call(self, node: Call, terms: Sequence[Term], run: Callable[..., Value]) -> Term:
        called = ast.Call(self._names.share(run, node.function), [term.code for term in terms], [])
        return Term(called, self._find_result_kind(node))

    def _find_result_kind(self, node: Call) -> TermKind:
        """Return the kind of a call's result; the type of a type parameter is uncertain where a list came as dyn."""
        call = self._checked.calls[node.id]
        candidates = (overload for overload in call.function.overloads if overload.id in call.overload_ids)
        is_guess = any(overload.result.family == "parameter" for overload in candidates)
        return TermKind.ANY if is_guess else find_kind(self._checked.types[node.id])

    def _generate_argument(self, node: Node, function: Function) -> Term:
        """Return an argument; a parsed value that is only read is cached by its text."""
        call = self._checked.calls.get(node.id)
        if call is None or not (call.function.parses and function.only_reads) or len(call.arguments) > 1:
            return self._generate(node)
        name = call.function.name
        parsed = self._parsers.setdefault(name, ResultCache(call.function.find_run(call.overload_ids)))
        text = self._generate(call.arguments[0])
        if isinstance(text.code, ast.Constant) and isinstance(text.code.value, str):
            with suppress(EvaluationError):  # a malformed text raises when it is evaluated
                return Term(self._names.share(parsed[text.code.value], name), TermKind.PARSED)
        return Term(ast.Subscript(self._names.share(parsed, name), text.code, ast.Load()), TermKind.PARSED)

    def _generate_membership(self, node: Node, members: frozenset[tuple[type, Value]]) -> Term:
        element = self._generate(node)
        if element.kind in PLAIN and all(kind is str for kind, _ in members):
            texts = frozenset(text for _, text in members)
            inside = ast.Compare(element.code, [ast.In()], [self._names.share(texts, "members")])
            return Term(inside, TermKind.BOOL)
        return Term(self._names.call(is_member, element.code, self._names.share(members, "members")), TermKind.BOOL)

    def _generate_special(self, function: Function, nodes: Sequence[Node]) -> Term | None:
        if function.python is PlainForm.SAME:
            return self._generate(nodes[0])
        match function.name, nodes:
            case "!_", [operand]:
                return Term(ast.UnaryOp(ast.Not(), self._generate_truth(operand)), TermKind.BOOL)
            case "orValue", [optional, other]:
                return self._generate_or_value(optional, other)
            case "or", [optional, other]:
                return self._generate_or(optional, other)
            case "hasValue", [optional] if self._is_optional(optional):
                return Term(ast.UnaryOp(ast.Not(), self._walk_steps(optional).use_absent), TermKind.BOOL)
            case "@in", [_, MapLiteral() | Comprehension()]:
                raise NotGenerated
            case "@in", [element, _] if may_be_sum(element, self._checked):
                raise NotGenerated
            case _:
                return None

    def _generate_list(self, node: ListLiteral) -> Term:
        if node.optional:
            raise NotGenerated
        terms = [self._generate(element) for element in node.elements]
        kind = TermKind.DOCUMENTS if all(term.kind in PLAIN for term in terms) else TermKind.LIST
        return Term(ast.List([term.code for term in terms], ast.Load()), kind)

    def _generate_map(self, node: MapLiteral) -> Term:
        if any(entry.optional for entry in node.entries):
            raise NotGenerated
        pairs_ = [(self._generate(entry.key), self._generate(entry.value)) for entry in node.entries]
        if all(isinstance(key.code, ast.Constant) and key.kind is TermKind.STRING for key, _ in pairs_):
            return Term(ast.Dict([key.code for key, _ in pairs_], [value.code for _, value in pairs_]), TermKind.MAP)
        if not all(isinstance(key.code, ast.Constant) for key, _ in pairs_):
            raise NotGenerated
        entries = ast.List([ast.Tuple([key.code, value.code], ast.Load()) for key, value in pairs_], ast.Load())
        return Term(self._names.call(make_map, entries), TermKind.MAP)

    def _generate_struct(self, node: StructLiteral) -> Term:
        make = self._environment.maker(self._checked.names[node.id])
        if make is None or any(entry.optional for entry in node.entries):
            raise NotGenerated
        names: list[ast.expr | None] = [ast.Constant(entry.name) for entry in node.entries]
        fields = ast.Dict(names, [self._generate(entry.value).code for entry in node.entries])
        return Term(ast.Call(self._names.share(make, "make"), [fields], []), TermKind.ANY)
