"""A checked tree to nested closures that evaluate exactly as kube-apiserver does (part J of the admission semantics).

A closure takes the frame, a list: the declared variables first, then a slot per comprehension variable in scope. Errors are
exceptions; only the logical operators, `all` and `exists` hold one back, because another operand may absorb it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar, assert_never

from scanner.cel.analysis.go_values import is_go_key, is_go_value, is_selection
from scanner.cel.checking.checker import is_optional
from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation import comprehensions, operators, selections, tracker_panics
from scanner.cel.functions.comprehensions import MAP_INSERT
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
    from scanner.cel.analysis.constants import Folded
    from scanner.cel.checking.checker import Checked, Resolution
    from scanner.cel.checking.env import Environment
    from scanner.cel.evaluation.frame import Evaluate, Frame
    from scanner.cel.evaluation.selections import Step


_Part = TypeVar("_Part")
Around: TypeAlias = "Callable[[Node, Evaluate], Evaluate]"


class Planned:
    """The closure of a whole expression, the variables its frame begins with, and the frame's size."""

    __slots__ = ("evaluate", "roots", "size")

    def __init__(self, evaluate: Evaluate, roots: tuple[str, ...], size: int) -> None:
        self.evaluate = evaluate
        self.roots = roots
        self.size = size


def plan(
    root: Node, checked: Checked, folded: Folded, environment: Environment, around: Around | None = None
) -> Planned:
    """Return the closures of a checked tree; `around` may put another around that of each node."""
    planner = _Planner(checked, folded, environment, around)
    evaluate = planner.plan(root)
    return Planned(evaluate, planner.roots, planner.size)


class _Planner:
    def __init__(
        self, checked: Checked, folded: Folded, environment: Environment, around: Around | None = None
    ) -> None:
        self._around = around
        self._checked = checked
        self._folded = folded
        self._again = selections.as_it_is if OPTIONALS_KEPT.holds(environment.version) else runtime.rewrapped
        self._strict = OPTIONALS_KEPT.holds(environment.version)
        self._environment = environment
        names = sorted(environment.roots & set(checked.names.values()))
        self.roots = tuple(names)
        self._scope: dict[str, int] = {}
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._used = len(names)
        self.size = len(names)

    def plan(self, node: Node) -> Evaluate:
        """Return the closure of a node."""
        evaluate = self._planned(node)
        return evaluate if self._around is None else self._around(node, evaluate)

    def _planned(self, node: Node) -> Evaluate:
        if node.id in self._folded.constants:
            value = self._folded.constants[node.id]
            return lambda _frame: value
        match node:
            case Literal(value=value):
                return lambda _frame: value
            case Identifier():
                return self._name(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
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

    # --- names and selections

    def _name(self, node: Node) -> Evaluate:
        name = self._checked.names[node.id]
        slot = None if node.id in self._checked.globals else self._scope.get(name)
        if slot is not None:
            return selections.variable(slot, self._again)
        return selections.root(self._slots[name], name)

    def _select(self, node: Select) -> Evaluate:
        if node.id in self._checked.names:
            return self._name(node)
        if node.test:
            base, steps = self._path(node.operand)
            return selections.has(base, steps, node.field, self._again)
        return selections.follow(*self._path(node), self._again)

    def _path(self, node: Node) -> tuple[Evaluate, tuple[Step, ...]]:
        """Return what a chain of selections and indexes begins with, and its steps."""
        steps: list[Step] = []
        base = node
        while is_selection(base, self._checked):
            operand, step = self._step(base)
            steps.append(step)
            base = operand
        steps.reverse()
        return self.plan(base), tuple(steps)

    def _step(self, node: Node) -> tuple[Node, Step]:
        """Return what a selection selects from, and the step: a closure or a constant, and whether it is optional."""
        if isinstance(node, Select):
            return node.operand, (None, node.field, False)
        if not isinstance(node, Call):
            raise TypeError(node)
        operand, key = node.arguments
        optional = node.function != "_[_]"
        if key.id in self._folded.constants:
            return operand, (None, self._folded.constants[key.id], optional)
        return operand, (self._index(key), None, optional)

    def _index(self, node: Node) -> Evaluate:
        """Plan a computed key or index; what cannot be one is named as Go does, and that depends on where it is from."""
        if isinstance(node, Call) and node.function == "_?_:_":
            condition, yes, no = node.arguments
            return operators.conditional(self.plan(condition), self._index(yes), self._index(no))
        evaluate = self.plan(node)
        return selections.native_key(evaluate) if self._is_native(node) else evaluate

    def _is_native(self, node: Node) -> bool:
        return is_go_value(node, self._checked, self._folded, self._scope)

    # --- calls

    def _call(self, node: Call) -> Evaluate:
        match node.function:
            case "_&&_":
                return operators.conjunction(self._terms(node))
            case "_||_":
                return operators.disjunction(self._terms(node))
            case "_?_:_":
                condition, yes, no = node.arguments
                return operators.conditional(self.plan(condition), self._branch(yes), self._branch(no))
            case "_==_" | "_!=_" as name if may_be_sum(node.arguments[0], self._checked):
                run = runtime.equal if name == "_==_" else runtime.unequal
                return operators.compare_sum(name, run, *(self.plan(argument) for argument in node.arguments))
            case "_==_":
                return operators.equal(*(self.plan(argument) for argument in node.arguments))
            case "_!=_":
                return operators.unequal(*(self.plan(argument) for argument in node.arguments))
            case "_[_]" | "_[?_]" | "_?._":
                return selections.follow(*self._path(node), self._again)
            case _:
                return self._function(node)

    def _terms(self, node: Call) -> tuple[Evaluate, ...]:
        """Return the closures of a chain of one logical operator, left to right."""
        terms: list[Evaluate] = []
        waiting: list[Node] = [node]
        while waiting:
            term = waiting.pop()
            if isinstance(term, Call) and term.function == node.function:
                waiting.extend(reversed(term.arguments))
            else:
                terms.append(self.plan(term))
        return tuple(terms)

    def _branch(self, node: Node) -> Evaluate:
        """Plan a branch of a conditional: what is no selection itself is read as one, see `reread`."""
        if isinstance(node, Select) and node.test and node.id not in self._checked.names:
            return selections.has(*self._path(node.operand), node.field, self._again, keep=True)
        evaluate = self.plan(node)
        is_read = isinstance(node, Identifier) or is_selection(node, self._checked)
        if is_read or (isinstance(node, Call) and node.function == "_?_:_") or not self._may_be_optional(node):
            return evaluate
        return selections.reading(evaluate, self._again)

    def _may_be_optional(self, node: Node) -> bool:
        type_ = self._checked.types[node.id]
        return type_.family == "dyn" or is_optional(type_)

    def _function(self, node: Call) -> Evaluate:
        resolution = self._checked.calls[node.id]
        arguments = tuple(self.plan(argument) for argument in resolution.arguments)
        pattern = self._folded.patterns.get(node.id)
        if pattern is not None:
            return operators.search(resolution.function.name, pattern, arguments)
        members = self._folded.sets.get(node.id)
        if members is not None:
            return operators.membership(arguments[0], members)
        match resolution.function.name:
            case "or":
                return operators.either(*arguments, strict=self._strict)
            case "orValue":
                return operators.either_value(*arguments, strict=self._strict)
        if resolution.function.name == "@in" and makes_map(resolution.arguments[1]):
            return operators.apply_to_both(runtime.is_key, *arguments)
        run = resolution.function.runner(resolution.overload_ids)
        if resolution.function.name == "@in" and may_be_sum(resolution.arguments[0], self._checked):
            return operators.compare_sum("@in", run, *arguments)
        if tracker_panics.is_tracked(resolution.overload_ids):
            return operators.apply_tracked(resolution.overload_ids[0], run, arguments)
        return (
            operators.apply_in_turn(run, arguments)
            if evaluates_in_turn(resolution)
            else operators.apply(run, arguments)
        )

    # --- literals

    def _list(self, node: ListLiteral) -> Evaluate:
        elements = tuple(self.plan(element) for element in node.elements)
        if not node.optional:
            return lambda frame: [element(frame) for element in elements]
        optional = tuple(position in node.optional for position in range(len(elements)))
        return operators.optional_list(elements, optional)

    def _map(self, node: MapLiteral) -> Evaluate:
        entries = tuple((self._key(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries)
        return operators.map_of(entries)

    def _key(self, node: Node) -> Evaluate:
        """Plan the key of a map's entry; of what is in an object upstream makes another list or map each time it is read."""
        evaluate = self.plan(node)
        is_native = is_go_key(node, self._checked, self._folded, self._scope)
        return operators.copied(evaluate) if is_native else evaluate

    def _struct(self, node: StructLiteral) -> Evaluate:
        entries = tuple((entry.name, self.plan(entry.value), entry.optional) for entry in node.entries)
        return operators.struct_of(entries, _required(self._environment.maker(self._checked.names[node.id])))

    # --- comprehensions

    def _comprehension(self, node: Comprehension) -> Evaluate:
        if node.fold == "bind":
            return self._bind(node)
        if node.is_open:
            return self._spelled(node)
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
                return comprehensions.quantify(walk, _required(predicate), stop=node.fold == "exists")
            case "exists_one":
                return comprehensions.exactly_one(walk, _required(predicate))
            case "map" | "filter" | "transformList":
                return comprehensions.collect(walk, predicate, _required(body))
            case "transformMap":
                return comprehensions.transform_map(walk, predicate, _required(body), first)
            case "transformMapEntry":
                insert_all = MAP_INSERT.runner((MAP_INSERT.overloads[1].id,))
                return comprehensions.transform_entries(walk, predicate, _required(body), insert_all)
            case _:
                assert_never(node.fold)

    def _spelled(self, node: Comprehension) -> Evaluate:
        """Plan a fold as it is spelled out, because what is written in it sees what it gathers."""
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
        start = comprehensions.no_entries if node.fold.startswith("transformMap") else self.plan(node.start)
        return comprehensions.spelled(comprehensions.walk(over, first, second), (slot, start), condition, step, result)

    def _bind(self, node: Comprehension) -> Evaluate:
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
                frame[slot] = error
            return result(frame)

        return evaluate

    def _declare(self, name: str) -> int:
        slot = self._used
        self._used += 1
        self.size = max(self.size, self._used)
        self._scope = {**self._scope, name: slot}
        return slot


def _required(part: _Part | None) -> _Part:
    if part is None:
        message = "a comprehension without its predicate or body, or a literal of no type"
        raise TypeError(message)
    return part


def may_be_sum(node: Node, checked: Checked) -> bool:
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
    """Return whether a map comes from the expression itself: Go hashes what is looked up in it."""
    return isinstance(node, MapLiteral) or (isinstance(node, Comprehension) and node.fold.startswith("transformMap"))


def evaluates_in_turn(call: Resolution) -> bool:
    """Return whether upstream evaluates no argument after one that fails: in calls of more than two, and dispatched ones."""
    function, ids = call.function, call.overload_ids
    if len(call.arguments) > 2 or ids == ("string_format",):  # noqa: PLR2004
        return True
    bound = sum(overload.run is not None for overload in function.overloads)
    return function.shared is None and len(ids) != 1 and bound > 1
