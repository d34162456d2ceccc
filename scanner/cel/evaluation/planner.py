"""The walk over a checked tree that exact and counting evaluation share: names, slots, paths, keys, and chains of operators.

Mirrors cel-go's planner. A node becomes a closure of one of two algebras: `exact` evaluates, and its closures raise errors;
`scanner.cel.cost.metered` counts, and its closures return them. An algebra names the closures that both have (`SharedClosures`) and plans
by itself what it does in another way; ADR 18 has the reason that there are two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar, assert_never

from msgspec import Struct

from scanner.cel.analysis.go_values import is_go_key, is_go_value, is_selection
from scanner.cel.checking.checker import is_optional
from scanner.cel.evaluation.selections import keep_value
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
)
from scanner.cel.values import runtime
from scanner.cel.values.values import Value

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree, ResolvedCall
    from scanner.cel.checking.env import Environment
    from scanner.cel.evaluation.selections import Rewrap

Closure = TypeVar("Closure")
PathStep: TypeAlias = "tuple[Closure | None, Value, bool]"
"""One selection: a computed key or a constant one, and whether it is optional."""


class SharedClosures(Struct, Generic[Closure], frozen=True):
    """The closures that both algebras make of the same things."""

    constant: Callable[[Value], Closure]
    root: Callable[[int, str], Closure]
    variable: Callable[[int, Rewrap], Closure]
    check_key: Callable[[Closure], Closure]
    copy_result: Callable[[Closure], Closure]
    conditional: Callable[[Closure, Closure, Closure], Closure]
    conjunction: Callable[[tuple[Closure, ...]], Closure]
    disjunction: Callable[[tuple[Closure, ...]], Closure]


class Planner(ABC, Generic[Closure]):
    """Plans a tree. `roots` are the variables that a frame begins with, `size` is the length of the frame."""

    def __init__(
        self, parts: SharedClosures[Closure], checked: CheckedTree, folded: FoldedTree, environment: Environment
    ) -> None:
        self._parts = parts
        self._checked = checked
        self._folded = folded
        self._environment = environment
        self._keeps_optionals = OPTIONALS_KEPT.holds(environment.version)
        self._rewrap: Rewrap = keep_value if self._keeps_optionals else runtime.rewrap_value
        names = sorted(environment.roots & set(checked.names.values()))
        self.roots = tuple(names)
        self._scope: dict[str, int] = {}
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._used = len(names)
        self.size = len(names)

    def plan(self, node: Node) -> Closure:
        """Return the closure of a node; that of a constant node returns its value."""
        if node.id in self._folded.constants:
            return self._parts.constant(self._folded.constants[node.id])
        match node:
            case Literal(value=value):
                return self._parts.constant(value)
            case Identifier():
                return self._plan_identifier(node)
            case Select():
                return self._plan_select(node)
            case Call():
                return self._plan_call(node)
            case ListLiteral() | MapLiteral() | StructLiteral():
                return self._plan_literal(node)
            case Comprehension():
                return self._plan_comprehension(node)
            case _:
                assert_never(node)

    def _get_constant(self, node: Node) -> tuple[Value] | None:
        """Return the value of a constant node in a tuple of one; None for any other node."""
        if node.id in self._folded.constants:
            return (self._folded.constants[node.id],)
        return (node.value,) if isinstance(node, Literal) else None

    # --- what the algebras plan themselves

    @abstractmethod
    def _plan_identifier(self, node: Identifier) -> Closure: ...

    @abstractmethod
    def _plan_select(self, node: Select) -> Closure: ...

    @abstractmethod
    def _plan_selection(self, node: Call) -> Closure:
        """Plan an index or an optional step."""

    @abstractmethod
    def _plan_branch(self, node: Node) -> Closure:
        """Plan a branch of a conditional: a branch that is not a selection is read like one."""

    @abstractmethod
    def _plan_base(self, node: Node) -> Closure:
        """Plan the root of a path, or a computed key."""

    @abstractmethod
    def _plan_function(self, node: Call) -> Closure: ...

    @abstractmethod
    def _plan_literal(self, node: ListLiteral | MapLiteral | StructLiteral) -> Closure: ...

    @abstractmethod
    def _plan_comprehension(self, node: Comprehension) -> Closure: ...

    # --- names and selections

    def _plan_name(self, node: Node) -> Closure:
        name = self._checked.names[node.id]
        slot = None if node.id in self._checked.globals else self._scope.get(name)
        if slot is not None:
            return self._parts.variable(slot, self._rewrap)
        return self._parts.root(self._slots[name], name)

    def _plan_path(self, node: Node) -> tuple[Closure, tuple[PathStep[Closure], ...]]:
        """Return the root of a chain of selections and indexes, and its steps."""
        steps: list[PathStep[Closure]] = []
        base = node
        while base.id not in self._folded.constants and is_selection(base, self._checked):
            base, step = self._plan_step(base)
            steps.append(step)
        steps.reverse()
        return self._plan_base(base), tuple(steps)

    def _plan_step(self, node: Node) -> tuple[Node, PathStep[Closure]]:
        """Return the operand of a selection, and the step."""
        if isinstance(node, Select):
            return node.operand, (None, node.field, False)
        if not isinstance(node, Call):
            raise TypeError(node)
        operand, key = node.arguments
        optional = node.function != "_[_]"
        if key.id in self._folded.constants:
            return operand, (None, self._folded.constants[key.id], optional)
        return operand, (self._plan_index(key), None, optional)

    def _plan_index(self, node: Node) -> Closure:
        """Plan a computed key or index; the error of an invalid one has its Go type, which depends on its origin."""
        if isinstance(node, Call) and node.function == "_?_:_":
            condition, yes, no = node.arguments
            return self._parts.conditional(self.plan(condition), self._plan_index(yes), self._plan_index(no))
        key = self._plan_base(node)
        is_native = is_go_value(node, self._checked, self._folded, self._scope)
        return self._parts.check_key(key) if is_native else key

    # --- calls

    def _plan_call(self, node: Call) -> Closure:
        match node.function:
            case "_&&_":
                return self._parts.conjunction(self._plan_terms(node))
            case "_||_":
                return self._parts.disjunction(self._plan_terms(node))
            case "_?_:_":
                return self._plan_conditional(node)
            case "_[_]" | "_[?_]" | "_?._":
                return self._plan_selection(node)
            case _:
                return self._plan_function(node)

    def _plan_terms(self, node: Call) -> tuple[Closure, ...]:
        """Return the closures of a chain of one logical operator, left to right."""
        return tuple(self.plan(term) for term in list_terms(node))

    def _plan_conditional(self, node: Call) -> Closure:
        condition, yes, no = node.arguments
        return self._parts.conditional(self.plan(condition), self._plan_branch(yes), self._plan_branch(no))

    def _may_be_optional(self, node: Node) -> bool:
        """Return whether a branch that is no selection, and no conditional, may be an optional."""
        is_read = isinstance(node, Identifier) or is_selection(node, self._checked)
        if is_read or (isinstance(node, Call) and node.function == "_?_:_"):
            return False
        type_ = self._checked.types[node.id]
        return type_.family == "dyn" or is_optional(type_)

    # --- literals

    def _plan_key(self, node: Node) -> Closure:
        """Plan the key of a map's entry; upstream makes a new list or map at each read of one in an object."""
        key = self.plan(node)
        is_native = is_go_key(node, self._checked, self._folded, self._scope)
        return self._parts.copy_result(key) if is_native else key

    # --- comprehensions

    def _declare(self, name: str) -> int:
        slot = self._used
        self._used += 1
        self.size = max(self.size, self._used)
        self._scope = {**self._scope, name: slot}
        return slot


# --- trees


def list_terms(node: Call) -> list[Node]:
    """Return the operands of a chain of one logical operator, left to right; it may be longer than the stack is deep."""
    operands: list[Node] = []
    stack: list[Node] = [node]
    while stack:
        term = stack.pop()
        if isinstance(term, Call) and term.function == node.function:
            stack.extend(reversed(term.arguments))
        else:
            operands.append(term)
    return operands


def may_be_sum(node: Node, checked: CheckedTree) -> bool:
    """Return whether an operand is written as a sum that may be one of lists."""
    match node:
        case Call(function="dyn", arguments=(inner,)):
            return may_be_sum(inner, checked)
        case Call(function="_?_:_", arguments=(_, yes, no)):
            return may_be_sum(yes, checked) or may_be_sum(no, checked)
        case Call(function="_+_"):
            type_ = checked.types[node.id]
            return type_.family == "list" or type_.is_dyn
        case _:
            return False


def makes_map(node: Node) -> bool:
    """Return whether the expression itself makes a map: Go hashes the keys of lookups in it."""
    return isinstance(node, MapLiteral) or (isinstance(node, Comprehension) and node.fold.startswith("transformMap"))


def evaluates_in_turn(call: ResolvedCall) -> bool:
    """Return whether upstream evaluates no argument after one that fails: in calls of more than two, and dispatched ones.

    Mirrors `evalVarArgs` of cel-go's `interpreter/interpretable.go`.
    """
    function, ids = call.function, call.overload_ids
    if not call.arguments:
        return False
    if len(call.arguments) > 2 or function.in_turn:  # noqa: PLR2004
        return True
    runs = sum(overload.run is not None for overload in function.overloads)
    return function.shared is None and len(ids) != 1 and runs > 1
