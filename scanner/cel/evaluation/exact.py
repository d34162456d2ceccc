"""The translation of a checked tree to nested closures that evaluate exactly as kube-apiserver does.

A closure takes the frame, a list: the declared variables first, then a slot per comprehension variable in scope. Errors are
exceptions; only the logical operators, `all` and `exists` hold one back, because another operand may absorb it.

Rules: `docs/semantics/cel-evaluation.md#selection`, `docs/semantics/cel-evaluation.md#logic`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar, assert_never

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation import comprehensions, operators, selections, tracker_panics
from scanner.cel.evaluation.frame import Evaluate
from scanner.cel.evaluation.planner import Planner, SharedClosures, evaluates_in_turn, makes_map, may_be_sum
from scanner.cel.functions.comprehensions import MAP_INSERT
from scanner.cel.syntax.tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from scanner.cel.values import equality
from scanner.cel.values.values import Value

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree, ResolvedCall
    from scanner.cel.checking.env import Environment
    from scanner.cel.evaluation.frame import Frame

_Part = TypeVar("_Part")
Around: TypeAlias = "Callable[[Node, Evaluate], Evaluate]"


class ExactPlan:
    """The closure of a whole expression, the variables that its frame begins with, and the frame's size in slots."""

    __slots__ = ("evaluate", "roots", "size")

    def __init__(self, evaluate: Evaluate, roots: tuple[str, ...], size: int) -> None:
        self.evaluate = evaluate
        self.roots = roots
        self.size = size


_PARTS: SharedClosures[Evaluate] = SharedClosures(
    constant=lambda value: lambda _frame: value,
    root=selections.root,
    variable=selections.variable,
    check_key=selections.check_key,
    copy_result=operators.copy_result,
    conditional=operators.conditional,
    conjunction=partial(operators.logic, stop=False),
    disjunction=partial(operators.logic, stop=True),
)


def plan(
    root: Node, checked: CheckedTree, folded: FoldedTree, environment: Environment, around: Around | None = None
) -> ExactPlan:
    """Return the closures of a checked tree; `around` may put another closure around that of each node.

    Mirrors `interpreter/planner.go` of cel-go.
    """
    planner = _ExactPlanner(checked, folded, environment, around)
    evaluate = planner.plan(root)
    return ExactPlan(evaluate, planner.roots, planner.size)


class _ExactPlanner(Planner[Evaluate]):
    def __init__(
        self, checked: CheckedTree, folded: FoldedTree, environment: Environment, around: Around | None = None
    ) -> None:
        super().__init__(_PARTS, checked, folded, environment)
        self._around = around

    def plan(self, node: Node) -> Evaluate:
        """Return the closure of a node."""
        evaluate = super().plan(node)
        return evaluate if self._around is None else self._around(node, evaluate)

    # --- names and selections

    def _plan_identifier(self, node: Identifier) -> Evaluate:
        return self._plan_name(node)

    def _plan_select(self, node: Select) -> Evaluate:
        if node.id in self._checked.names:
            return self._plan_name(node)
        if node.test:
            return selections.has(*self._plan_path(node.operand), node.field, self._rewrap)
        return selections.follow(*self._plan_path(node), self._rewrap)

    def _plan_selection(self, node: Call) -> Evaluate:
        return selections.follow(*self._plan_path(node), self._rewrap)

    def _plan_base(self, node: Node) -> Evaluate:
        return self.plan(node)

    def _plan_branch(self, node: Node) -> Evaluate:
        if isinstance(node, Select) and node.test and node.id not in self._checked.names:
            return selections.has(*self._plan_path(node.operand), node.field, self._rewrap, keep=True)
        evaluate = self.plan(node)
        return selections.read_branch(evaluate, self._rewrap) if self._may_be_optional(node) else evaluate

    # --- calls

    def _plan_function(self, node: Call) -> Evaluate:
        call = self._checked.calls[node.id]
        function = call.function
        arguments = tuple(self.plan(argument) for argument in call.arguments)
        pattern = self._folded.patterns.get(node.id)
        if pattern is not None and function.with_pattern is not None:
            return operators.search(function.with_pattern, pattern, arguments)
        members = self._folded.sets.get(node.id)
        if members is not None:
            return operators.membership(arguments[0], members)
        match function.name:
            case "or":
                return operators.either(*arguments, strict=self._keeps_optionals)
            case "orValue":
                return operators.either_value(*arguments, strict=self._keeps_optionals)
            case "@in" if makes_map(call.arguments[1]):
                return operators.apply_to_both(equality.is_key, *arguments)
            case _:
                return self._plan_application(call, arguments)

    def _plan_application(self, call: ResolvedCall, arguments: tuple[Evaluate, ...]) -> Evaluate:
        function, tracker = call.function, tracker_panics.find_tracker(call)
        run = function.find_run(call.overload_ids)
        if function.on_joined is not None and may_be_sum(call.arguments[0], self._checked):
            return operators.compare_sum(run, function.on_joined, *arguments)
        if tracker is not None:
            return operators.apply_tracked(tracker, run, arguments)
        # With `around`, the constant needs a closure too.
        if len(arguments) == 2 and self._around is None:  # noqa: PLR2004 - both operands
            constant = self._get_constant(call.arguments[1])
            if constant is not None:
                return operators.apply_to_constant(run, arguments[0], *constant)
        return operators.apply_in_turn(run, arguments) if evaluates_in_turn(call) else operators.apply(run, arguments)

    # --- literals

    def _plan_literal(self, node: ListLiteral | MapLiteral | StructLiteral) -> Evaluate:
        match node:
            case ListLiteral():
                return self._plan_list(node)
            case MapLiteral():
                return self._plan_map(node)
            case StructLiteral():
                return self._plan_struct(node)
            case _:
                assert_never(node)

    def _plan_list(self, node: ListLiteral) -> Evaluate:
        elements = tuple(self.plan(element) for element in node.elements)
        if not node.optional:
            return lambda frame: [element(frame) for element in elements]
        optional = tuple(position in node.optional for position in range(len(elements)))
        return operators.optional_list(elements, optional)

    def _plan_map(self, node: MapLiteral) -> Evaluate:
        entries = tuple((self._plan_key(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries)
        return operators.map_of(entries)

    def _plan_struct(self, node: StructLiteral) -> Evaluate:
        entries = tuple((entry.name, self.plan(entry.value), entry.optional) for entry in node.entries)
        return operators.struct_of(entries, _require_part(self._environment.maker(self._checked.names[node.id])))

    # --- comprehensions

    def _plan_comprehension(self, node: Comprehension) -> Evaluate:
        if node.fold == "bind":
            return self._plan_bind(node)
        if node.is_open:
            return self._plan_in_full(node)
        over = self.plan(node.range)
        outer, used = self._scope, self._used
        first = self._declare(node.variable)
        second = None if node.second_variable is None else self._declare(node.second_variable)
        predicate = None if node.predicate is None else self.plan(node.predicate)
        body = None if node.body is None else self.plan(node.body)
        self._scope, self._used = outer, used
        walk = comprehensions.walk(over, first, second)
        match node.fold:
            case "all" | "exists":
                return comprehensions.quantify(walk, _require_part(predicate), stop=node.fold == "exists")
            case "exists_one":
                return comprehensions.quantify_exactly_one(walk, _require_part(predicate))
            case "map" | "filter" | "transformList":
                return comprehensions.collect(walk, predicate, _require_part(body))
            case "transformMap":
                return comprehensions.transform_map(walk, predicate, _require_part(body), first)
            case "transformMapEntry":
                insert_all = MAP_INSERT.find_run((MAP_INSERT.overloads[1].id,))
                return comprehensions.transform_entries(walk, predicate, _require_part(body), insert_all)
            case _:
                assert_never(node.fold)

    def _plan_in_full(self, node: Comprehension) -> Evaluate:
        """Plan a fold in its full form, because an argument reads its accumulator."""
        over = self.plan(node.range)
        outer, used = self._scope, self._used
        slot = self._declare(node.accumulator)
        around = self._scope
        first = self._declare(node.variable)
        second = None if node.second_variable is None else self._declare(node.second_variable)
        condition, step = self.plan(node.condition), self.plan(node.step)
        self._scope = around
        result = self.plan(node.result)
        self._scope, self._used = outer, used
        # Entries are inserted in place: each evaluation needs a map of its own.
        start = comprehensions.make_no_entries if node.fold.startswith("transformMap") else self.plan(node.start)
        return comprehensions.fold_in_full(
            comprehensions.walk(over, first, second), (slot, start), condition, step, result
        )

    def _plan_bind(self, node: Comprehension) -> Evaluate:
        value = self.plan(node.start)
        outer, used = self._scope, self._used
        slot = self._declare(node.accumulator)
        result = self.plan(node.result)
        self._scope, self._used = outer, used

        def evaluate(frame: Frame) -> Value:
            try:
                frame[slot] = value(frame)
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                # The error is raised where the variable is read, which may never happen.
                frame[slot] = error
            return result(frame)

        return evaluate


def _require_part(part: _Part | None) -> _Part:
    if part is None:
        message = "a comprehension without its predicate or body, or a literal of no type"
        raise TypeError(message)
    return part
