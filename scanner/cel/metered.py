"""A checked tree to nested closures that count what an evaluation costs (F3 of the admission semantics).

Mirrors cel-go's planner and what its `CostTracker` observes, step by step, because the cost is part of the semantics: it ends
evaluations. An error is a value here, as upstream: most calls evaluate all their operands and are paid for whether they fail or
not. Folds run as their macros spell them out, because their bookkeeping has a price too.

What an evaluation gives is the business of `exact`; here its values only lead to the right steps.

A closure takes the frame and the meter. The frame is a list: the declared variables first, then a slot per variable of a comprehension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, TypeAlias, assert_never

from scanner.cel import cost, runtime, tracked
from scanner.cel.checker import is_optional
from scanner.cel.cost import LIST_COST, MAP_COST, STRUCT_COST, WRAP
from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.exact import MISSING, OPTIONALS_KEPT_SINCE, as_it_is, evaluates_in_turn, is_member, is_selection
from scanner.cel.functions import regex
from scanner.cel.macros import ACCUMULATOR
from scanner.cel.meter import Meter
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
)
from scanner.cel.values import NONE, KeyedMap, Optional, Value, make_map

if TYPE_CHECKING:
    from scanner.cel.checker import Checked
    from scanner.cel.cost import Price, Seen
    from scanner.cel.env import Environment
    from scanner.cel.exact import Rewrap
    from scanner.cel.folding import Folded, Key

Frame: TypeAlias = "list[Seen]"
Measure: TypeAlias = "Callable[[Frame, Meter], Seen]"
_Step: TypeAlias = "tuple[Measure | None, Value, bool]"
"""One selection: a computed key or a constant one, and whether it is optional."""
_MINUS_ONE = WRAP - 1
"""What a presence test gives back for the reading; on a conditional, whose reading has cost nothing, too."""
_DEEP = frozenset(
    [
        "_==_",
        "_!=_",
        "@in",
        "format",
        "indexOf",
        "lastIndexOf",
        "distinct",
        "sets.contains",
        "sets.equivalent",
        "sets.intersects",
    ]
)
"""Functions that may look at everything inside their arguments."""
_PRINTING = 4
"""How much slower than comparing a value it is to print it."""


class _Unset:
    """An accumulator that nothing has read: its first value is computed, and paid for, when something does."""

    __slots__ = ("_grows", "_start")

    def __init__(self, start: Measure, *, grows: bool) -> None:
        self._start = start
        self._grows = grows

    def first(self, frame: Frame, meter: Meter) -> Seen:
        """Return the first value; where the fold adds to it, one that nothing else can see."""
        value = self._start(frame, meter)
        if not self._grows or value:
            return value
        if type(value) is list:
            return []
        return KeyedMap(()) if type(value) is dict else value


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
        self._kept = environment.version >= OPTIONALS_KEPT_SINCE
        self._again = as_it_is if self._kept else runtime.rewrapped
        self._structs = environment.structs
        names = sorted(set(checked.names.values()) & {name for name, _ in environment.variables})
        self.roots = tuple(names)
        self._scope: dict[str, int] = {}
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._used = len(names)
        self.size = len(names)

    def plan(self, node: Node) -> Measure:
        """Return the closure of a node; it pays for what it does."""
        if node.id in self._folded.constants:
            return _constant(self._folded.constants[node.id])
        match node:
            case Literal(value=value):
                return _constant(value)
            case Identifier():
                return _charged(self._raw(node))
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
            return _follow(base, steps, self._again)
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
            return _variable(slot, self._again)
        return _root(self._slots[name], name)

    def _select(self, node: Select) -> Measure:
        if node.test and node.id not in self._checked.names:
            presence = self._presence(node)
            return presence if self._is_read(node.operand) else _refunded(presence)
        raw = self._raw(node)
        return _charged(raw) if self._is_read(node) else raw

    def _presence(self, node: Select, *, keep: bool = False) -> Measure:
        base, steps = self._path(node.operand)
        return _has(base, steps, node.field, self._again, keep=keep)

    def _path(self, node: Node) -> tuple[Measure, tuple[_Step, ...]]:
        """Return what a chain of selections and indexes begins with, and its steps."""
        steps: list[_Step] = []
        base = node
        while base.id not in self._folded.constants and is_selection(base, self._checked):
            base, step = self._step(base)
            steps.append(step)
        steps.reverse()
        return self._raw(base), tuple(steps)

    def _step(self, node: Node) -> tuple[Node, _Step]:
        if isinstance(node, Select):
            return node.operand, (None, node.field, False)
        if not isinstance(node, Call):
            raise TypeError(node)
        operand, key = node.arguments
        optional = node.function != "_[_]"
        if key.id in self._folded.constants:
            return operand, (None, self._folded.constants[key.id], optional)
        return operand, (self._raw(key), None, optional)

    # --- calls

    def _call(self, node: Call) -> Measure:
        match node.function:
            case "_&&_":
                return _logic(self._terms(node), stop=False)
            case "_||_":
                return _logic(self._terms(node), stop=True)
            case "_?_:_":
                return self._conditional(node)
            case "_[_]" | "_[?_]" | "_?._":
                raw = self._raw(node)
                return _charged(raw) if self._is_read(node) else raw
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
        return _choice(self.plan(condition), self._branch(yes), self._branch(no))

    def _branch(self, node: Node) -> Measure:
        """Plan a branch of a conditional: what is no selection itself is read as one."""
        if isinstance(node, Select) and node.test and node.id not in self._checked.names:
            return self._presence(node, keep=True)
        raw = self._raw(node)
        return _reading(raw, self._again) if self._may_be_optional(node) else raw

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
            return _membership(arguments[0], members)
        if name in ("or", "orValue"):
            return _alternative(*arguments, value=name == "orValue", strict=self._kept)
        if name == "@not_strictly_false":
            return _not_strictly_false(*arguments)
        return self._applied(node, arguments)

    def _applied(self, node: Call, arguments: tuple[Measure, ...]) -> Measure:
        call = self._checked.calls[node.id]
        name, ids = call.function.name, call.overload_ids
        pattern = self._folded.patterns.get(node.id)
        overload_id = ids[0] if len(ids) == 1 else ""
        applied = _Applied(
            name=name,
            run=self._run(node) if pattern is None else lambda *values: regex.searching(name, pattern, values),
            tracked_overload=overload_id if tracked.is_tracked(ids) else "",
            price=cost.price(name, overload_id, self._version),
        )
        if pattern is not None or evaluates_in_turn(call):
            return _apply_in_turn(applied, arguments)
        return _apply_to_all(applied, arguments)

    def _run(self, node: Call) -> Callable[..., Value]:
        call = self._checked.calls[node.id]
        match call.function.name:
            case "_==_":
                return runtime.equal
            case "_!=_":
                return _unequal
            case "_+_" if isinstance(call.arguments[0], Identifier) and call.arguments[0].name == ACCUMULATOR:
                return _grown
            case _:
                return call.function.runner(call.overload_ids)

    # --- literals

    def _literal(self, node: ListLiteral | MapLiteral | StructLiteral) -> Measure:
        match node:
            case ListLiteral(elements=elements, optional=optional):
                entries = tuple((self.plan(element), index in optional) for index, element in enumerate(elements))
                return _list_of(entries)
            case MapLiteral():
                return _map_of(tuple((self.plan(e.key), self.plan(e.value), e.optional) for e in node.entries))
            case StructLiteral():
                fields = tuple((e.name, self.plan(e.value), e.optional) for e in node.entries)
                if self._structs is None:
                    return _struct_of(fields, lambda found: found)
                made, make = self._checked.types[node.id], self._structs.make
                return _struct_of(fields, lambda found: make(made, found))

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
        condition, step = self._condition(node.condition), self.plan(node.step)
        self._scope = around
        result = self.plan(node.result)
        self._scope, self._used = outer, used
        walk = _one_by_one(first) if second is None else _in_pairs(first, second)
        grows = node.accumulator == ACCUMULATOR
        return _fold(over, walk, (accumulator, _Unset(start, grows=grows)), condition, step, result)

    def _condition(self, node: Node) -> Measure | None:
        return None if self._folded.constants.get(node.id) is True else self.plan(node)

    def _declare(self, name: str) -> int:
        slot = self._used
        self._used += 1
        self.size = max(self.size, self._used)
        self._scope = {**self._scope, name: slot}
        return slot


# --- names and selections


def _constant(value: Value) -> Measure:
    return lambda _frame, _meter: value


def _charged(raw: Measure) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = raw(frame, meter)
        meter.spend(1)
        return value

    return measure


def _refunded(presence: Measure) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = presence(frame, meter)
        meter.spend(_MINUS_ONE)
        return value

    return measure


def _root(slot: int, name: str) -> Measure:
    def measure(frame: Frame, _meter: Meter) -> Seen:
        value = frame[slot]
        return EvaluationError(f"no such attribute(s): {name}") if value is MISSING else value

    return measure


def _variable(slot: int, again: Rewrap) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = frame[slot]
        if type(value) is _Unset:
            value = frame[slot] = value.first(frame, meter)
        return _reread(value, again) if type(value) is Optional else value

    return measure


def _reading(operand: Measure, again: Rewrap) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = operand(frame, meter)
        return _reread(value, again) if type(value) is Optional else value

    return measure


def _reread(optional: Optional, again: Rewrap) -> Optional:
    return Optional(again(optional.value)) if optional.present else optional


def _follow(base: Measure, steps: tuple[_Step, ...], again: Rewrap) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        start = base(frame, meter)
        if isinstance(start, EvaluationError):
            return start
        found, is_optional = _reach(start, steps, (frame, meter), again)
        if found is None:
            return NONE
        is_value = is_optional and not isinstance(found[0], EvaluationError)
        return Optional(found[0]) if is_value else found[0]

    return measure


_Reached: TypeAlias = "tuple[tuple[Seen] | None, bool]"


def _reach(value: Value, steps: tuple[_Step, ...], place: tuple[Frame, Meter], again: Rewrap) -> _Reached:
    """Return where the steps lead or the error on the way, wrapped, None where there is nothing; and whether the way was optional."""
    is_optional = type(value) is Optional
    if type(value) is Optional:
        if not value.present:
            return None, True
        value = again(value.value)
    for closure, key, optional in steps:
        is_optional = is_optional or optional
        at = key if closure is None else closure(*place)
        found = _tried(value, at) if is_optional else (_indexed(value, at),)
        if found is None or (is_optional and isinstance(found[0], EvaluationError)):
            return found, True
        place[1].spend(1)
        value = found[0]
        if isinstance(value, EvaluationError):
            return (value,), False
    return (value,), is_optional


def _indexed(container: Value, key: Seen) -> Seen:
    if isinstance(key, EvaluationError):
        return key
    try:
        return runtime.index(container, key)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _tried(container: Value, key: Seen) -> tuple[Seen] | None:
    if isinstance(key, EvaluationError):
        return (key,)
    try:
        return runtime.look_up(container, key)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return (error,)


def _has(base: Measure, steps: tuple[_Step, ...], field: str, again: Rewrap, *, keep: bool) -> Measure:
    """Measure a presence test; `keep`: in a branch, what an optional path leads to stays an optional."""

    def measure(frame: Frame, meter: Meter) -> Seen:
        start = base(frame, meter)
        if isinstance(start, EvaluationError):
            return start
        found, is_optional = _reach(start, steps, (frame, meter), again)
        if found is None:
            return NONE if keep else False
        container = found[0]
        if isinstance(container, EvaluationError):
            return container
        entry = _tried(container, field)
        failed = entry is not None and isinstance(entry[0], EvaluationError)
        if not is_optional or (entry is not None and not failed):
            meter.spend(1)
        if entry is None:
            return NONE if keep and is_optional else False
        if failed:
            return entry[0]
        return Optional(entry[0]) if keep and is_optional else True

    return measure


# --- logic


def _logic(terms: tuple[Measure, ...], *, stop: bool) -> Measure:
    """Evaluate until an operand decides; the leftmost error is the result when none does."""
    passing = not stop

    def measure(frame: Frame, meter: Meter) -> Seen:
        failure: EvaluationError | None = None
        for term in terms:
            value = term(frame, meter)
            if value is stop:
                return stop
            if value is not passing and failure is None:
                failure = value if isinstance(value, EvaluationError) else runtime.no_overload()
        return passing if failure is None else failure

    return measure


def _choice(condition: Measure, yes: Measure, no: Measure) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = condition(frame, meter)
        if value is True:
            return yes(frame, meter)
        if value is False:
            return no(frame, meter)
        return value if isinstance(value, EvaluationError) else runtime.no_overload()

    return measure


def _not_strictly_false(operand: Measure) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = operand(frame, meter)
        meter.spend(1)
        return value if type(value) is bool else True

    return measure


def _alternative(optional: Measure, other: Measure, *, value: bool, strict: bool) -> Measure:
    """Evaluate `or` and `orValue`; what is no optional passes until 1.36."""

    def measure(frame: Frame, meter: Meter) -> Seen:
        found = optional(frame, meter)
        if type(found) is not Optional:
            return runtime.no_overload() if strict and not isinstance(found, EvaluationError) else found
        if not found.present:
            return other(frame, meter)
        return found.value if value else found

    return measure


# --- calls


class _Applied:
    """A function as one call applies it, and what that costs."""

    __slots__ = ("_is_deep", "_late", "_name", "_rule", "_run", "_tracked")

    def __init__(self, name: str, run: Callable[..., Value], tracked_overload: str, price: Price) -> None:
        self._name = name
        self._run = run
        self._tracked = tracked_overload
        self._rule = price.rule
        self._late = price.late
        self._is_deep = name in _DEEP

    def to(self, seen: tuple[Seen, ...], meter: Meter) -> Seen:
        """Return the result for arguments that are all evaluated; the call is paid for whatever they are.

        What can be charged before the work is done is: then nothing is done that the limit forbids.
        """
        failure = next((one for one in seen if isinstance(one, EvaluationError)), None)
        if self._tracked:
            tracked.look_at(self._tracked, seen)
        if self._late:
            result = self._called(seen, meter) if failure is None else failure
            meter.spend(self._rule(seen, result))
            return result
        meter.spend(self._rule(seen, None))
        return self._called(seen, meter) if failure is None else failure

    def _called(self, values: tuple[Value, ...], meter: Meter) -> Seen:
        if self._is_deep:
            compares = self._name in ("_==_", "_!=_")
            meter.walk(_shortest(values) if compares else values, _PRINTING if self._name == "format" else 1)
        meter.foresee(self._name, values)
        try:
            value = self._run(*values)
            return value if self._run is _grown else meter.hold(value)
        except EvaluationStopped:
            raise
        except EvaluationError as error:
            return error


def _shortest(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operand of a comparison that ends it first."""
    return (min(values, key=cost.size),)


def _apply_to_all(applied: _Applied, arguments: tuple[Measure, ...]) -> Measure:
    match arguments:
        case (only,):
            return lambda frame, meter: applied.to((only(frame, meter),), meter)
        case (left, right):
            return lambda frame, meter: applied.to((left(frame, meter), right(frame, meter)), meter)
        case _:
            return lambda _frame, meter: applied.to((), meter)


def _apply_in_turn(applied: _Applied, arguments: tuple[Measure, ...]) -> Measure:
    """Apply a function whose arguments are not evaluated any more after an error; then the call is not paid for."""
    *others, last = arguments

    def measure(frame: Frame, meter: Meter) -> Seen:
        seen: list[Seen] = []
        for argument in others:
            value = argument(frame, meter)
            if isinstance(value, EvaluationError):
                return value
            seen.append(value)
        return applied.to((*seen, last(frame, meter)), meter)

    return measure


def _unequal(left: Value, right: Value) -> bool:
    """Negate equality; what cannot be compared is unequal."""
    try:
        return not runtime.equal(left, right)
    except EvaluationError:
        return True


def _grown(accumulated: Value, more: Value) -> Value:
    """Add to an accumulator, which nothing else can see: a list grows in place."""
    if type(accumulated) is not list or type(more) is not list:
        return runtime.add(accumulated, more)
    accumulated.extend(more)
    return accumulated


def _membership(element: Measure, members: frozenset[Key]) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = element(frame, meter)
        return value if isinstance(value, EvaluationError) else is_member(value, members)

    return measure


# --- literals


def _list_of(entries: tuple[tuple[Measure, bool], ...]) -> Measure:
    def build(frame: Frame, meter: Meter) -> Seen:
        found: list[Value] = []
        for element, optional in entries:
            value = element(frame, meter)
            if isinstance(value, EvaluationError):
                return value
            if not optional:
                found.append(value)
            elif type(value) is not Optional:
                text = runtime.printed(value)
                return EvaluationError(f"cannot initialize optional list element from non-optional value {text}")
            elif value.present:
                found.append(value.value)
        return found

    return _built(build, LIST_COST)


def _map_of(entries: tuple[tuple[Measure, Measure, bool], ...]) -> Measure:
    def build(frame: Frame, meter: Meter) -> Seen:
        found: list[tuple[Value, Value]] = []
        for key_of, value_of, optional in entries:
            key = key_of(frame, meter)
            if isinstance(key, EvaluationError):
                return key
            if type(key) is dict or type(key) is list:
                # Upstream makes another list or map each time it reads one in an object, and tells keys apart by identity.
                key = copy(key)
            value = _entry(key, value_of(frame, meter), optional=optional)
            if isinstance(value, EvaluationError):
                return value
            found.extend((key, one) for one in value)
        return make_map(found)

    return _built(build, MAP_COST)


def _struct_of(fields: tuple[tuple[str, Measure, bool], ...], make: Callable[[dict[str, Value]], Value]) -> Measure:
    def build(frame: Frame, meter: Meter) -> Seen:
        found: dict[str, Value] = {}
        for name, value_of, optional in fields:
            value = _entry(name, value_of(frame, meter), optional=optional)
            if isinstance(value, EvaluationError):
                return value
            for one in value:
                found[name] = one
        return _made(make, found)

    return _built(build, STRUCT_COST)


def _made(make: Callable[[dict[str, Value]], Value], fields: dict[str, Value]) -> Seen:
    try:
        return make(fields)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _built(build: Measure, price: int) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Seen:
        value = build(frame, meter)
        meter.spend(price)
        return value

    return measure


def _entry(key: Value, value: Seen, *, optional: bool) -> EvaluationError | tuple[Value, ...]:
    """Return the value of an entry, or nothing where an optional one is absent."""
    if isinstance(value, EvaluationError):
        return value
    if not optional:
        return (value,)
    if type(value) is not Optional:
        shown = runtime.printed(key), runtime.printed(value)
        return EvaluationError(f"cannot initialize optional entry '{shown[0]}' from non-optional value {shown[1]}")
    return (value.value,) if value.present else ()


# --- comprehensions

_Walk: TypeAlias = "Callable[[Frame, Value], Iterator[None]]"


def _one_by_one(slot: int) -> _Walk:
    def walk(frame: Frame, container: Value) -> Iterator[None]:
        for frame[slot] in runtime.elements(container):
            yield

    return walk


def _in_pairs(first: int, second: int) -> _Walk:
    def walk(frame: Frame, container: Value) -> Iterator[None]:
        for frame[first], frame[second] in runtime.pairs(container):
            yield

    return walk


def _fold(
    over: Measure,
    walk: _Walk,
    accumulator: tuple[int, _Unset],
    condition: Measure | None,
    step: Measure,
    result: Measure,
) -> Measure:
    slot, unset = accumulator

    def measure(frame: Frame, meter: Meter) -> Seen:
        container = over(frame, meter)
        if isinstance(container, EvaluationError):
            return container
        frame[slot] = unset
        try:
            for _ in walk(frame, container):
                meter.labour(1)
                if condition is not None and condition(frame, meter) is False:
                    break
                frame[slot] = step(frame, meter)
        except EvaluationStopped:
            raise
        except EvaluationError as error:
            return error
        found = result(frame, meter)
        return found.simplest() if type(found) is KeyedMap else found

    return measure
