"""A checked tree to nested closures that count what an evaluation costs (F3 of the admission semantics).

Mirrors cel-go's planner and what its `CostTracker` observes, step by step, because the cost is part of the semantics: it ends
evaluations. An error is a value here, as upstream: most calls evaluate all their operands and are paid for whether they fail or
not. Folds run as their macros spell them out, because their bookkeeping has a price too.

What an evaluation gives is the business of `exact`; here its values only lead to the right steps.

A closure takes the frame and the meter. The frame is a list: the declared variables first, then a slot per variable of a comprehension.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, assert_never

from scanner.cel.analysis.go_values import is_go_key, is_go_value, is_selection
from scanner.cel.checking.checker import is_optional
from scanner.cel.cost import measures, prices
from scanner.cel.cost.meter import Meter
from scanner.cel.errors import EvaluationStopped
from scanner.cel.evaluation import tracker_panics
from scanner.cel.evaluation.exact import evaluates_in_turn, makes_map, may_be_sum
from scanner.cel.evaluation.selections import as_it_is
from scanner.cel.functions import regex
from scanner.cel.protobuf.messages import MESSAGES
from scanner.cel.releases import OPTIONALS_KEPT, PASSED_BY
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
)
from scanner.cel.values import runtime

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import Folded
    from scanner.cel.checking.checker import Checked
    from scanner.cel.checking.env import Environment
    from scanner.cel.cost.measures import Measure, Step
    from scanner.cel.cost.prices import Seen
    from scanner.cel.values.values import Value


class Planned:
    """The closure of a whole expression, the variables its frame begins with, and the frame's size."""

    __slots__ = ("measure", "roots", "size")

    def __init__(self, measure: Measure, roots: tuple[str, ...], size: int) -> None:
        self.measure = measure
        self.roots = roots
        self.size = size


def plan(root: Node, checked: Checked, folded: Folded, environment: Environment) -> Planned:
    """Return the counting closures of a checked tree."""
    planner = _Planner(checked, folded, environment)
    return Planned(planner.plan(root), planner.roots, planner.size)


def count(planned: Planned, roots: list[Seen], limit: int) -> Meter:
    """Return a meter that has counted an evaluation, to its end or until something stopped it."""
    meter = Meter(limit)
    try:
        meter.outcome = planned.measure(roots + [None] * (planned.size - len(roots)), meter)
    except EvaluationStopped as stopped:
        meter.outcome = meter.stopped = stopped
    return meter


class _Planner:
    def __init__(self, checked: Checked, folded: Folded, environment: Environment) -> None:
        self._checked = checked
        self._folded = folded
        self._version = environment.version
        self._kept = OPTIONALS_KEPT.holds(environment.version)
        self._again = as_it_is if self._kept else runtime.rewrapped
        self._environment = environment
        names = sorted(environment.roots & set(checked.names.values()))
        self.roots = tuple(names)
        self._scope: dict[str, int] = {}
        self._growing = ""
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._used = len(names)
        self.size = len(names)

    def plan(self, node: Node) -> Measure:
        """Return the closure of a node; it pays for what it does."""
        if node.id in self._folded.constants:
            return measures.constant(self._folded.constants[node.id])
        match node:
            case Literal(value=value):
                return measures.constant(value)
            case Identifier():
                return measures.charged(self._raw(node))
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral() | MapLiteral() | StructLiteral():
                return self._literal(node)
            case Comprehension():
                return self._comprehension(node)
            case _:
                assert_never(node)

    # --- names and selections

    def _raw(self, node: Node) -> Measure:
        """Plan what upstream reads without charging for the reading: a key, the base of a path, a branch."""
        if node.id in self._folded.constants:
            return self.plan(node)
        if isinstance(node, Identifier) or (node.id in self._checked.names and isinstance(node, Select)):
            return self._name(node)
        if is_selection(node, self._checked):
            base, steps = self._path(node)
            return measures.follow(base, steps, self._again, step_cost=self._toll(node))
        if isinstance(node, Select):
            return self._presence(node)
        if isinstance(node, Call) and node.function == "_?_:_":
            return self._conditional(node)
        return self.plan(node)

    def _is_read(self, node: Node) -> bool:
        """Return whether reading a node is charged for: names and paths are, but not a path on a conditional."""
        while is_selection(node, self._checked):
            node = node.operand if isinstance(node, Select) else node.arguments[0]  # type: ignore[union-attr]
        return not (isinstance(node, Call) and node.function == "_?_:_")

    def _name(self, node: Node) -> Measure:
        name = self._checked.names[node.id]
        slot = None if node.id in self._checked.globals else self._scope.get(name)
        if slot is not None:
            return measures.variable(slot, self._again)
        return measures.root(self._slots[name], name)

    def _select(self, node: Select) -> Measure:
        if node.test and node.id not in self._checked.names:
            presence = self._presence(node)
            return presence if self._is_read(node.operand) else measures.refunded(presence)
        raw = self._raw(node)
        return measures.charged(raw) if self._is_read(node) else raw

    def _presence(self, node: Select, *, keep: bool = False) -> Measure:
        base, steps = self._path(node.operand)
        return measures.has(base, steps, node.field, self._again, keep=keep, step_cost=self._toll(node.operand))

    def _toll(self, node: Node) -> int:
        """Return what a step of a path costs: nothing, from 1.37 on, where a leading dot passes by a local variable."""
        while is_selection(node, self._checked):
            node = next(children(node))
        passes_by = node.id in self._checked.globals and self._checked.names[node.id] in self._scope
        return 0 if passes_by and PASSED_BY.holds(self._version) else 1

    def _path(self, node: Node) -> tuple[Measure, tuple[Step, ...]]:
        """Return what a chain of selections and indexes begins with, and its steps."""
        steps: list[Step] = []
        base = node
        while base.id not in self._folded.constants and is_selection(base, self._checked):
            base, step = self._step(base)
            steps.append(step)
        steps.reverse()
        return self._raw(base), tuple(steps)

    def _step(self, node: Node) -> tuple[Node, Step]:
        if isinstance(node, Select):
            return node.operand, (None, node.field, False)
        if not isinstance(node, Call):
            raise TypeError(node)
        operand, key = node.arguments
        optional = node.function != "_[_]"
        if key.id in self._folded.constants:
            return operand, (None, self._folded.constants[key.id], optional)
        return operand, (self._index(key), None, optional)

    def _index(self, node: Node) -> Measure:
        """Plan a computed key or index; what cannot be one is named as Go does, and that depends on where it is from."""
        if isinstance(node, Call) and node.function == "_?_:_":
            condition, yes, no = node.arguments
            return measures.choice(self.plan(condition), self._index(yes), self._index(no))
        raw = self._raw(node)
        return measures.native_key(raw) if is_go_value(node, self._checked, self._folded, self._scope) else raw

    # --- calls

    def _call(self, node: Call) -> Measure:
        match node.function:
            case "_&&_":
                return measures.logic(self._terms(node), stop=False)
            case "_||_":
                return measures.logic(self._terms(node), stop=True)
            case "_?_:_":
                return self._conditional(node)
            case "_[_]" | "_[?_]" | "_?._":
                raw = self._raw(node)
                return measures.charged(raw) if self._is_read(node) else raw
            case _:
                return self._function(node)

    def _terms(self, node: Call) -> tuple[Measure, ...]:
        """Return the closures of a chain of one logical operator, left to right."""
        terms: list[Measure] = []
        waiting: list[Node] = [node]
        while waiting:
            term = waiting.pop()
            if isinstance(term, Call) and term.function == node.function:
                waiting.extend(reversed(term.arguments))
            else:
                terms.append(self.plan(term))
        return tuple(terms)

    def _conditional(self, node: Call) -> Measure:
        condition, yes, no = node.arguments
        return measures.choice(self.plan(condition), self._branch(yes), self._branch(no))

    def _branch(self, node: Node) -> Measure:
        """Plan a branch of a conditional: what is no selection itself is read as one."""
        if isinstance(node, Select) and node.test and node.id not in self._checked.names:
            return self._presence(node, keep=True)
        raw = self._raw(node)
        return measures.reading(raw, self._again) if self._may_be_optional(node) else raw

    def _may_be_optional(self, node: Node) -> bool:
        type_ = self._checked.types[node.id]
        is_read = isinstance(node, Identifier) or is_selection(node, self._checked)
        if is_read or (isinstance(node, Call) and node.function == "_?_:_"):
            return False
        return type_.family == "dyn" or is_optional(type_)

    def _function(self, node: Call) -> Measure:
        call = self._checked.calls[node.id]
        name = call.function.name
        arguments = tuple(self.plan(argument) for argument in call.arguments)
        members = self._folded.sets.get(node.id)
        if members is not None:
            return measures.membership(arguments[0], members)
        if name in ("or", "orValue"):
            return measures.alternative(*arguments, value=name == "orValue", strict=self._kept)
        if name == "@not_strictly_false":
            return measures.not_strictly_false(*arguments)
        return self._applied(node, arguments)

    def _applied(self, node: Call, arguments: tuple[Measure, ...]) -> Measure:
        call = self._checked.calls[node.id]
        name, ids = call.function.name, call.overload_ids
        pattern = self._folded.patterns.get(node.id)
        overload_id = ids[0] if len(ids) == 1 else ""
        applying = partial(
            measures.Applied,
            name,
            tracked_overload=overload_id if tracker_panics.is_tracked(ids) else "",
            price=prices.price(name, overload_id, self._version),
        )
        applied = applying(
            self._run(node) if pattern is None else lambda *values: regex.searching(name, pattern, values)
        )
        if name in runtime.SUMS and may_be_sum(call.arguments[0], self._checked):
            return measures.compare_sum(applied, applying(runtime.SUMS[name]), *arguments)
        if pattern is not None or evaluates_in_turn(call):
            return measures.apply_in_turn(applied, arguments)
        return measures.apply_to_all(applied, arguments)

    def _run(self, node: Call) -> Callable[..., Value]:
        call = self._checked.calls[node.id]
        match call.function.name:
            case "_==_":
                return runtime.equal
            case "_!=_":
                return measures.unequal
            case "@in" if makes_map(call.arguments[1]):
                return runtime.is_key
            case "_+_" if isinstance(call.arguments[0], Identifier) and call.arguments[0].name == self._growing:
                return measures.grown
            case _:
                return call.function.runner(call.overload_ids)

    # --- literals

    def _literal(self, node: ListLiteral | MapLiteral | StructLiteral) -> Measure:
        match node:
            case ListLiteral(elements=elements, optional=optional):
                entries = tuple((self.plan(element), index in optional) for index, element in enumerate(elements))
                return measures.list_of(entries)
            case MapLiteral():
                return measures.map_of(tuple((self._key(e.key), self.plan(e.value), e.optional) for e in node.entries))
            case StructLiteral():
                fields = tuple((e.name, self.plan(e.value), e.optional) for e in node.entries)
                name = self._checked.names[node.id]
                make = self._environment.maker(name)
                return measures.struct_of(fields, make or (lambda found: found), converts=name in MESSAGES)

    def _key(self, node: Node) -> Measure:
        """Plan the key of a map's entry; of what is in an object upstream makes another list or map each time it is read."""
        measure = self.plan(node)
        is_native = is_go_key(node, self._checked, self._folded, self._scope)
        return measures.copied(measure) if is_native else measure

    # --- comprehensions

    def _comprehension(self, node: Comprehension) -> Measure:
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
            self._growing = node.accumulator if self._grows(node) else ""
        condition, step = self._condition(node.condition), self.plan(node.step)
        self._scope, self._growing = around, growing
        result = self.plan(node.result)
        self._scope, self._used = outer, used
        walk = measures.one_by_one(first) if second is None else measures.in_pairs(first, second)
        grows = node.fold.startswith("transformMap") or self._grows(node)
        return measures.fold(over, walk, (accumulator, measures.Unset(start, grows=grows)), condition, step, result)

    def _grows(self, node: Comprehension) -> bool:
        """Return whether nothing but the fold itself can see what it gathers."""
        return node.fold != "bind" and not node.is_open

    def _condition(self, node: Node) -> Measure | None:
        return None if self._folded.constants.get(node.id) is True else self.plan(node)

    def _declare(self, name: str) -> int:
        slot = self._used
        self._used += 1
        self.size = max(self.size, self._used)
        self._scope = {**self._scope, name: slot}
        return slot
