"""The translation of a checked tree to nested closures that count the cost of an evaluation.

Mirrors cel-go's planner and what its `CostTracker` observes, step by step, because the cost is part of the semantics: it ends
evaluations. An error is a value here, as upstream: most calls evaluate all their operands and are paid for whether they fail or
not. Folds run as their macros spell them out, because their bookkeeping has a price too.

What an evaluation gives is the business of `exact`; here its values only lead to the right steps.

A closure takes the frame and the meter. The frame is a list: the declared variables first, then a slot per variable of a comprehension.

Rules: `docs/semantics/cost.md#language`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, assert_never

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.cost import calls, measures
from scanner.cel.cost.measures import Frame, Measure, Unset
from scanner.cel.cost.meter import Meter
from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation.planner import Planner, SharedClosures, evaluates_in_turn, makes_map, may_be_sum
from scanner.cel.functions.pricing import LIST_COST, MAP_COST, STRUCT_COST
from scanner.cel.protobuf.messages import MESSAGES
from scanner.cel.releases import PASSED_BY
from scanner.cel.syntax.tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    children,
)
from scanner.cel.values import access, equality, runtime
from scanner.cel.values.values import KeyedMap, Optional, Value, drop_key, make_map

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.checking.env import Environment
    from scanner.cel.functions.pricing import Outcome


class CountingPlan:
    """The closure of a whole expression, the variables that its frame begins with, and the frame's size in slots."""

    __slots__ = ("measure", "roots", "size")

    def __init__(self, measure: Measure, roots: tuple[str, ...], size: int) -> None:
        self.measure = measure
        self.roots = roots
        self.size = size


def plan(root: Node, checked: CheckedTree, folded: FoldedTree, environment: Environment) -> CountingPlan:
    """Return the counting closures of a checked tree. Mirrors `interpreter/planner.go` of cel-go."""
    planner = _CountingPlanner(checked, folded, environment)
    return CountingPlan(planner.plan(root), planner.roots, planner.size)


def count(planned: CountingPlan, roots: list[Outcome], limit: int) -> Meter:
    """Return a meter that has counted an evaluation, to its end or until something stopped it.

    `roots` are the values of `planned.roots`, `MISSING` for an absent one; `limit` is in cost units.
    """
    meter = Meter(limit)
    try:
        meter.outcome = planned.measure(roots + [None] * (planned.size - len(roots)), meter)
    except EvaluationStopped as stopped:
        meter.outcome = meter.stopped = stopped
    return meter


_PARTS: SharedClosures[Measure] = SharedClosures(
    constant=measures.constant,
    root=measures.root,
    variable=measures.variable,
    check_key=measures.check_key,
    copy_result=measures.copy_result,
    conditional=calls.conditional,
    conjunction=partial(calls.logic, stop=False),
    disjunction=partial(calls.logic, stop=True),
)


class _CountingPlanner(Planner[Measure]):
    def __init__(self, checked: CheckedTree, folded: FoldedTree, environment: Environment) -> None:
        super().__init__(_PARTS, checked, folded, environment)
        self._version = environment.version
        self._growing = ""

    # --- names and selections

    def _plan_base(self, node: Node) -> Measure:
        """Plan a read that upstream does not charge: a key, the base of a path, a branch."""
        if node.id in self._folded.constants:
            return self.plan(node)
        if isinstance(node, Identifier) or (node.id in self._checked.names and isinstance(node, Select)):
            return self._plan_name(node)
        if is_selection(node, self._checked):
            base, steps = self._plan_path(node)
            return measures.follow(base, steps, self._rewrap, step_cost=self._find_step_cost(node))
        if isinstance(node, Select):
            return self._plan_presence(node)
        if isinstance(node, Call) and node.function == "_?_:_":
            return self._plan_conditional(node)
        return self.plan(node)

    def _is_read(self, node: Node) -> bool:
        """Return whether reading a node is charged for: names and paths are, but not a path on a conditional."""
        while is_selection(node, self._checked):
            node = node.operand if isinstance(node, Select) else node.arguments[0]  # type: ignore[union-attr]
        return not (isinstance(node, Call) and node.function == "_?_:_")

    def _plan_identifier(self, node: Identifier) -> Measure:
        return measures.charge_read(self._plan_base(node))

    def _plan_selection(self, node: Call) -> Measure:
        value = self._plan_base(node)
        return measures.charge_read(value) if self._is_read(node) else value

    def _plan_select(self, node: Select) -> Measure:
        if node.test and node.id not in self._checked.names:
            presence = self._plan_presence(node)
            return presence if self._is_read(node.operand) else measures.refund_read(presence)
        value = self._plan_base(node)
        return measures.charge_read(value) if self._is_read(node) else value

    def _plan_presence(self, node: Select, *, keep: bool = False) -> Measure:
        base, steps = self._plan_path(node.operand)
        return measures.has(
            base, steps, node.field, self._rewrap, keep=keep, step_cost=self._find_step_cost(node.operand)
        )

    def _find_step_cost(self, node: Node) -> int:
        """Return the cost of a path's step: none, from 1.37 on, where a leading dot skips a local variable."""
        while is_selection(node, self._checked):
            node = next(children(node))
        passes_by = node.id in self._checked.globals and self._checked.names[node.id] in self._scope
        return 0 if passes_by and PASSED_BY.holds(self._version) else 1

    def _plan_branch(self, node: Node) -> Measure:
        """Plan a branch of a conditional: a branch that is not a selection is read like one."""
        if isinstance(node, Select) and node.test and node.id not in self._checked.names:
            return self._plan_presence(node, keep=True)
        value = self._plan_base(node)
        return measures.read_branch(value, self._rewrap) if self._may_be_optional(node) else value

    # --- calls

    def _plan_function(self, node: Call) -> Measure:
        call = self._checked.calls[node.id]
        name = call.function.name
        arguments = tuple(self.plan(argument) for argument in call.arguments)
        members = self._folded.sets.get(node.id)
        if members is not None:
            return calls.membership(arguments[0], members)
        if name in ("or", "orValue"):
            return calls.alternative(*arguments, value=name == "orValue", strict=self._keeps_optionals)
        if name == "@not_strictly_false":
            return calls.not_strictly_false(*arguments)
        return self._plan_application(node, arguments)

    def _plan_application(self, node: Call, arguments: tuple[Measure, ...]) -> Measure:
        call = self._checked.calls[node.id]
        function = call.function
        pattern = self._folded.patterns.get(node.id)
        applying = partial(calls.AppliedFunction, call, self._version)
        applied = applying(self._find_run(node))
        if function.on_joined is not None and may_be_sum(call.arguments[0], self._checked):
            return calls.compare_sum(applied, applying(function.on_joined), *arguments)
        if pattern is not None or evaluates_in_turn(call):
            return calls.apply_in_turn(applied, arguments)
        return calls.apply_to_all(applied, arguments)

    def _find_run(self, node: Call) -> Callable[..., Value]:
        call = self._checked.calls[node.id]
        pattern = self._folded.patterns.get(node.id)
        if pattern is not None and call.function.with_pattern is not None:
            return partial(call.function.with_pattern, pattern)
        match call.function.name:
            case "@in" if makes_map(call.arguments[1]):
                return equality.is_key
            case "_+_" if isinstance(call.arguments[0], Identifier) and call.arguments[0].name == self._growing:
                return calls.grow
            case _:
                return call.function.find_run(call.overload_ids)

    # --- literals

    def _plan_literal(self, node: ListLiteral | MapLiteral | StructLiteral) -> Measure:
        match node:
            case ListLiteral(elements=elements, optional=optional):
                entries = tuple((self.plan(element), index in optional) for index, element in enumerate(elements))
                return plan_list(entries)
            case MapLiteral():
                return plan_map(tuple((self._plan_key(e.key), self.plan(e.value), e.optional) for e in node.entries))
            case StructLiteral():
                fields = tuple((e.name, self.plan(e.value), e.optional) for e in node.entries)
                name = self._checked.names[node.id]
                make = self._environment.maker(name)
                return plan_struct(fields, make or (lambda values: values), converts=name in MESSAGES)
            case _:
                assert_never(node)

    # --- comprehensions

    def _plan_comprehension(self, node: Comprehension) -> Measure:
        over, start = self.plan(node.range), self.plan(node.start)
        outer, used = self._scope, self._used
        if node.start.id not in self._folded.constants:
            # It is evaluated when its value is first read, while the slots of what stands around that are in use.
            self._used = self.size
        accumulator = self._declare(node.accumulator)
        around = self._scope
        first = self._declare(node.variable)
        second = None if node.second_variable is None else self._declare(node.second_variable)
        growing = self._growing
        if node.fold != "bind":
            self._growing = node.accumulator if self._can_grow(node) else ""
        is_endless = self._folded.constants.get(node.condition.id) is True
        condition, step = None if is_endless else self.plan(node.condition), self.plan(node.step)
        self._scope, self._growing = around, growing
        result = self.plan(node.result)
        self._scope, self._used = outer, used
        walk = walk_one_by_one(first) if second is None else walk_in_pairs(first, second)
        grows = node.fold.startswith("transformMap") or self._can_grow(node)
        return plan_fold(over, walk, (accumulator, measures.Unset(start, grows=grows)), condition, step, result)

    def _can_grow(self, node: Comprehension) -> bool:
        """Return whether only the fold itself reads its accumulator."""
        return node.fold != "bind" and not node.is_open


# Counting closures of comprehensions, which run in the full form of their macros.
#
# A closure returns a value or an error, and spends upstream's charges from the meter, in the same order.
#
# Rules: `docs/semantics/cost.md#language`. Mirrors `evalFold` of cel-go's `interpreter/interpretable.go`.

Walk: TypeAlias = "Callable[[Frame, Value], Iterator[None]]"


def walk_one_by_one(slot: int) -> Walk:
    """Return a walk over elements, or over the keys of a map; `slot` is that of the variable in the frame."""

    def walk(frame: Frame, container: Value) -> Iterator[None]:
        for frame[slot] in access.list_elements(container):
            yield

    return walk


def walk_in_pairs(first: int, second: int) -> Walk:
    """Return a walk over indexes and elements, or over keys and values; `first` and `second` are slots of the frame."""

    def walk(frame: Frame, container: Value) -> Iterator[None]:
        for frame[first], frame[second] in access.pairs(container):
            yield

    return walk


def plan_fold(
    over: Measure,
    walk: Walk,
    accumulator: tuple[int, Unset],
    condition: Measure | None,
    step: Measure,
    result: Measure,
) -> Measure:
    """Return the closure of a comprehension in its full form; without a condition it runs to the end.

    A round adds 1 to the work of the meter.
    """
    slot, unset = accumulator

    def measure(frame: Frame, meter: Meter) -> Outcome:
        container = over(frame, meter)
        if isinstance(container, EvaluationError):
            return container
        frame[slot] = unset
        try:
            for _ in walk(frame, container):
                meter.add_work(1)
                if condition is not None and condition(frame, meter) is False:
                    break
                frame[slot] = step(frame, meter)
        except EvaluationStopped:
            raise
        except EvaluationError as error:
            return error
        outcome = result(frame, meter)
        return outcome.simplify() if type(outcome) is KeyedMap else outcome

    return measure


# Counting closures of lists, maps and objects that an expression makes.
#
# A closure returns a value or an error, and spends upstream's charges from the meter, in the same order.
#
# Rules: `docs/semantics/cost.md#language`.


def plan_list(entries: tuple[tuple[Measure, bool], ...]) -> Measure:
    """Return the closure of a list literal, which costs `LIST_COST` after its elements."""

    def build(frame: Frame, meter: Meter) -> Outcome:
        elements: list[Value] = []
        for element_of, optional in entries:
            value = element_of(frame, meter)
            if isinstance(value, EvaluationError):
                return value
            if not optional:
                elements.append(value)
            elif type(value) is not Optional:
                text = runtime.print_value(value)
                return EvaluationError(f"cannot initialize optional list element from non-optional value {text}")
            elif value.present:
                elements.append(value.value)
        return elements

    return _charge_build(build, LIST_COST)


def plan_map(entries: tuple[tuple[Measure, Measure, bool], ...]) -> Measure:
    """Return the closure of a map literal, which costs `MAP_COST` after its entries."""

    def build(frame: Frame, meter: Meter) -> Outcome:
        pairs: list[tuple[Value, Value]] = []
        for key_of, value_of, optional in entries:
            key = key_of(frame, meter)
            if isinstance(key, EvaluationError):
                return key
            if type(key) is dict or type(key) is list:
                # Upstream makes a new list or map at each read of one in an object, and compares keys by identity.
                key = copy(key)
            value = _make_entry(key, value_of(frame, meter), optional=optional)
            if isinstance(value, EvaluationError):
                return value
            pairs = [*pairs, *((key, part) for part in value)] if value else drop_key(pairs, key)
        return make_map(pairs)

    return _charge_build(build, MAP_COST)


def plan_struct(
    fields: tuple[tuple[str, Measure, bool], ...], make: Callable[[dict[str, Value]], Value], *, converts: bool
) -> Measure:
    """Return the closure of an object literal, which costs `STRUCT_COST` after its fields.

    `converts`: the whole content of its fields is converted, which is work.
    """

    def build(frame: Frame, meter: Meter) -> Outcome:
        values: dict[str, Value] = {}
        for name, value_of, optional in fields:
            value = _make_entry(name, value_of(frame, meter), optional=optional)
            if isinstance(value, EvaluationError):
                return value
            values.pop(name, None)
            for part in value:
                values[name] = part
        if converts:
            meter.walk(tuple(values.values()))
        return _make(make, values)

    return _charge_build(build, STRUCT_COST)


def _make(make: Callable[[dict[str, Value]], Value], fields: dict[str, Value]) -> Outcome:
    try:
        return make(fields)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _charge_build(build: Measure, price: int) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = build(frame, meter)
        meter.spend(price)
        return value

    return measure


def _make_entry(key: Value, value: Outcome, *, optional: bool) -> EvaluationError | tuple[Value, ...]:
    """Return a tuple of an entry's value, an empty tuple where an optional entry is absent, or an error."""
    if isinstance(value, EvaluationError):
        return value
    if not optional:
        return (value,)
    if type(value) is not Optional:
        shown = runtime.print_value(key), runtime.print_value(value)
        return EvaluationError(f"cannot initialize optional entry '{shown[0]}' from non-optional value {shown[1]}")
    return (value.value,) if value.present else ()
