"""A checked tree to nested closures that evaluate exactly as kube-apiserver does (part J of the admission semantics).

A closure takes the frame, a list: the declared variables first, then a slot per comprehension variable in scope. Errors are
exceptions; only the logical operators, `all` and `exists` hold one back, because another operand may absorb it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, TypeAlias, assert_never

from scanner.cel import runtime, tracked
from scanner.cel.checker import is_optional
from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.functions import regex
from scanner.cel.functions.comprehensions import MAP_INSERT, insert
from scanner.cel.runtime import no_overload
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
from scanner.cel.values import NONE, KeyedMap, Optional, UInt, Value, make_map, unhashable, without

if TYPE_CHECKING:
    from scanner.cel.checker import Checked, Resolution
    from scanner.cel.env import Environment
    from scanner.cel.folding import Folded, Key

Frame: TypeAlias = "list[Value]"
Evaluate: TypeAlias = "Callable[[Frame], Value]"
OPTIONALS_KEPT_SINCE = (1, 37)
Rewrap: TypeAlias = "Callable[[Value], Value]"
Around: TypeAlias = "Callable[[Node, Evaluate], Evaluate]"
_Step: TypeAlias = "tuple[Evaluate | None, Value, bool]"
"""One selection: a computed key or a constant one, and whether it is optional."""


class _Missing:
    """Stands in the frame for a declared variable that the activation does not have."""

    __slots__ = ()


MISSING = _Missing()
_NATIVE = frozenset({"object", "oldObject", "params", "request", "namespaceObject"})
_NATIVE_TYPES: dict[type, str] = {type(None): "<nil>", dict: "map[string]interface {}", list: "[]interface {}"}


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
        self._again = as_it_is if environment.version >= OPTIONALS_KEPT_SINCE else runtime.rewrapped
        self._strict = environment.version >= OPTIONALS_KEPT_SINCE
        self._structs = environment.structs
        names = sorted(set(checked.names.values()) & {name for name, _ in environment.variables})
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
            return _variable(slot, self._again)
        return _root(self._slots[name], name)

    def _select(self, node: Select) -> Evaluate:
        if node.id in self._checked.names:
            return self._name(node)
        if node.test:
            base, steps = self._path(node.operand)
            return _has(base, steps, node.field, self._again)
        return _follow(*self._path(node), self._again)

    def _path(self, node: Node) -> tuple[Evaluate, tuple[_Step, ...]]:
        """Return what a chain of selections and indexes begins with, and its steps."""
        steps: list[_Step] = []
        base = node
        while is_selection(base, self._checked):
            operand, step = self._step(base)
            steps.append(step)
            base = operand
        steps.reverse()
        return self.plan(base), tuple(steps)

    def _step(self, node: Node) -> tuple[Node, _Step]:
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
            return _conditional(self.plan(condition), self._index(yes), self._index(no))
        evaluate = self.plan(node)
        return _native_key(evaluate) if self._is_native(node) else evaluate

    def _is_native(self, node: Node) -> bool:
        """Return whether a node reads a part of an object, which upstream leaves a Go value until something is done with it."""
        while is_selection(node, self._checked):
            match node:
                case Select(operand=operand):
                    node = operand
                case Call(function="_[_]", arguments=(operand, key)) if not self._makes_value(key):
                    node = operand
                case _:
                    return False
        name = self._checked.names.get(node.id)
        return name in _NATIVE and name not in self._scope

    def _makes_value(self, key: Node) -> bool:
        """Return whether upstream looks up a key in a way that makes a CEL value of what it finds."""
        return isinstance(self._folded.constants.get(key.id), bool | UInt | float)

    # --- calls

    def _call(self, node: Call) -> Evaluate:
        match node.function:
            case "_&&_":
                return _conjunction(self._terms(node))
            case "_||_":
                return _disjunction(self._terms(node))
            case "_?_:_":
                condition, yes, no = node.arguments
                return _conditional(self.plan(condition), self._branch(yes), self._branch(no))
            case "_==_":
                return _equal(*(self.plan(argument) for argument in node.arguments))
            case "_!=_":
                return _unequal(*(self.plan(argument) for argument in node.arguments))
            case "_[_]" | "_[?_]" | "_?._":
                return _follow(*self._path(node), self._again)
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
            return _has(*self._path(node.operand), node.field, self._again, keep=True)
        evaluate = self.plan(node)
        is_read = isinstance(node, Identifier) or is_selection(node, self._checked)
        if is_read or (isinstance(node, Call) and node.function == "_?_:_") or not self._may_be_optional(node):
            return evaluate
        return _reading(evaluate, self._again)

    def _may_be_optional(self, node: Node) -> bool:
        type_ = self._checked.types[node.id]
        return type_.family == "dyn" or is_optional(type_)

    def _function(self, node: Call) -> Evaluate:
        resolution = self._checked.calls[node.id]
        arguments = tuple(self.plan(argument) for argument in resolution.arguments)
        pattern = self._folded.patterns.get(node.id)
        if pattern is not None:
            return _search(resolution.function.name, pattern, arguments)
        members = self._folded.sets.get(node.id)
        if members is not None:
            return _is_member(arguments[0], members)
        match resolution.function.name:
            case "or":
                return _either(*arguments, strict=self._strict)
            case "orValue":
                return _either_value(*arguments, strict=self._strict)
        if resolution.function.name == "@in" and makes_map(resolution.arguments[1]):
            return _apply_to_both(runtime.is_key, *arguments)
        run = resolution.function.runner(resolution.overload_ids)
        if tracked.is_tracked(resolution.overload_ids):
            return _apply_tracked(resolution.overload_ids[0], run, arguments)
        return _apply_in_turn(run, arguments) if evaluates_in_turn(resolution) else _apply(run, arguments)

    # --- literals

    def _list(self, node: ListLiteral) -> Evaluate:
        elements = tuple(self.plan(element) for element in node.elements)
        if not node.optional:
            return lambda frame: [element(frame) for element in elements]
        optional = tuple(position in node.optional for position in range(len(elements)))
        return _optional_list(elements, optional)

    def _map(self, node: MapLiteral) -> Evaluate:
        entries = tuple((self._key(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries)
        return _map_of(entries)

    def _key(self, node: Node) -> Evaluate:
        """Plan the key of a map's entry; of what is in an object upstream makes another list or map each time it is read."""
        evaluate = self.plan(node)
        while isinstance(node, Call) and node.function == "dyn":
            node = node.arguments[0]
        return _copied(evaluate) if self._is_native(node) else evaluate

    def _struct(self, node: StructLiteral) -> Evaluate:
        entries = tuple((entry.name, self.plan(entry.value), entry.optional) for entry in node.entries)
        made = self._checked.types[node.id]
        if self._structs is None or self._structs.type_named(made.name) is None:
            return _struct_of(entries, lambda _fields: _unknown_type(made.name))
        make = self._structs.make
        return _struct_of(entries, lambda fields: make(made, fields))

    # --- comprehensions

    def _comprehension(self, node: Comprehension) -> Evaluate:
        if node.fold == "bind":
            return self._bind(node)
        over = self.plan(node.range)
        outer, used = self._scope, self._used
        first = self._declare(node.variable)
        second = None if node.second_variable is None else self._declare(node.second_variable)
        predicate = None if node.predicate is None else self.plan(node.predicate)
        body = None if node.body is None else self.plan(node.body)
        self._scope, self._used = outer, used
        walk = _walk(over, first, second)
        match node.fold:
            case "all" | "exists":
                return _quantify(walk, _required(predicate), stop=node.fold == "exists")
            case "exists_one":
                return _exactly_one(walk, _required(predicate))
            case "map" | "filter" | "transformList":
                return _collect(walk, predicate, _required(body))
            case "transformMap":
                return _transform_map(walk, predicate, _required(body), first)
            case "transformMapEntry":
                insert_all = MAP_INSERT.runner((MAP_INSERT.overloads[1].id,))
                return _transform_entries(walk, predicate, _required(body), insert_all)
            case _:
                assert_never(node.fold)

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


def _required(evaluate: Evaluate | None) -> Evaluate:
    if evaluate is None:
        message = "a comprehension without its predicate or body"
        raise TypeError(message)
    return evaluate


def makes_map(node: Node) -> bool:
    """Return whether a map comes from the expression itself: Go hashes what is looked up in it."""
    return isinstance(node, MapLiteral) or (isinstance(node, Comprehension) and node.fold.startswith("transformMap"))


def is_selection(node: Node, checked: Checked) -> bool:
    """Return whether a node selects a field or an index of its operand."""
    if isinstance(node, Select):
        return not node.test and node.id not in checked.names
    return isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._")


def as_it_is(value: Value) -> Value:
    """Return a value untouched, as upstream does from 1.37 on."""
    return value


def _variable(slot: int, again: Rewrap) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        value = frame[slot]
        if isinstance(value, EvaluationError):
            raise value
        return reread(value, again) if type(value) is Optional else value

    return evaluate


def _reading(operand: Evaluate, again: Rewrap) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        value = operand(frame)
        return reread(value, again) if type(value) is Optional else value

    return evaluate


def reread(optional: Optional, again: Rewrap) -> Optional:
    """Return an optional as it is after upstream, until 1.36, has unwrapped it to a Go value and wrapped it again."""
    return Optional(again(optional.value)) if optional.present else optional


def _native_key(evaluate: Evaluate) -> Evaluate:
    """Name what cannot be a key or an index as Go does."""

    def native(frame: Frame) -> Value:
        value = evaluate(frame)
        if value is None or type(value) is dict or type(value) is list:
            raise EvaluationError(f"invalid qualifier type: {_NATIVE_TYPES[type(value)]}")
        return value

    return native


def _copied(evaluate: Evaluate) -> Evaluate:
    def copied(frame: Frame) -> Value:
        value = evaluate(frame)
        return copy(value) if type(value) is dict or type(value) is list else value

    return copied


def _search(name: str, pattern: regex.Pattern, arguments: tuple[Evaluate, ...]) -> Evaluate:
    return lambda frame: regex.searching(name, pattern, tuple(argument(frame) for argument in arguments))


def _is_member(element: Evaluate, members: frozenset[Key]) -> Evaluate:
    return lambda frame: is_member(element(frame), members)


def is_member(value: Value, members: frozenset[Key]) -> bool:
    """Return whether a value is in a constant list of plain values; bytes cannot be looked up."""
    if type(value) is bytes:
        raise unhashable("types.Bytes")
    return type(value) in _PLAIN and (type(value), value) in members


_PLAIN = frozenset({bool, int, UInt, float, str})


def _root(slot: int, name: str) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        value = frame[slot]
        if value is MISSING:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return evaluate


def _follow(base: Evaluate, steps: tuple[_Step, ...], again: Rewrap) -> Evaluate:
    if all(closure is None and type(key) is str and not optional for closure, key, optional in steps):
        return _follow_fields(base, tuple(str(key) for _, key, _ in steps), again)

    def evaluate(frame: Frame) -> Value:
        return _walk_path(_reach(base(frame), steps, frame, again))

    return evaluate


def _follow_fields(base: Evaluate, fields: tuple[str, ...], again: Rewrap) -> Evaluate:
    """Follow constant strings only, by far the commonest chain."""
    steps: tuple[_Step, ...] = tuple((None, field, False) for field in fields)

    def evaluate(frame: Frame) -> Value:
        start = value = base(frame)
        if type(value) is Optional:
            return _walk_path(_reach(start, steps, frame, again))
        for field in fields:
            value = runtime.select(value, field)
        return value

    return evaluate


def _walk_path(reached: _Reached) -> Value:
    """Return what steps lead to; from an optional root or step on, what is not there gives an absent optional."""
    found, is_optional = reached
    if found is None:
        return NONE
    return Optional(found[0]) if is_optional else found[0]


_Reached: TypeAlias = tuple[tuple[Value] | None, bool]


def _reach(value: Value, steps: tuple[_Step, ...], frame: Frame, again: Rewrap) -> _Reached:
    """Return where the steps lead, wrapped, None where there is nothing, and whether the way was optional."""
    is_optional = type(value) is Optional
    if type(value) is Optional:
        if not value.present:
            return None, True
        value = again(value.value)
    for closure, key, optional in steps:
        at = key if closure is None else closure(frame)
        is_optional = is_optional or optional
        if not is_optional:
            value = runtime.index(value, at)
            continue
        found = runtime.look_up(value, at)
        if found is None:
            return None, True
        value = found[0]
    return (value,), is_optional


def _has(base: Evaluate, steps: tuple[_Step, ...], field: str, again: Rewrap, *, keep: bool = False) -> Evaluate:
    """Evaluate a presence test; `keep`: in a branch, upstream forgets to make a bool of what an optional path leads to."""

    def evaluate(frame: Frame) -> Value:
        found, is_optional = _reach(base(frame), steps, frame, again)
        if keep and is_optional:
            entry = None if found is None else runtime.look_up(found[0], field)
            return NONE if entry is None else Optional(entry[0])
        return found is not None and runtime.has(found[0], field)

    return evaluate


def _conjunction(terms: tuple[Evaluate, ...]) -> Evaluate:
    return _logic(terms, stop=False)


def _disjunction(terms: tuple[Evaluate, ...]) -> Evaluate:
    return _logic(terms, stop=True)


def _logic(terms: tuple[Evaluate, ...], *, stop: bool) -> Evaluate:
    """Evaluate until an operand decides; the leftmost error is the result when none does."""
    passing = not stop

    def evaluate(frame: Frame) -> Value:
        first_error: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                first_error = first_error or error
                continue
            if value is stop:
                return stop
            if value is not passing and first_error is None:
                first_error = no_overload()
        if first_error is not None:
            raise first_error
        return passing

    return evaluate


def _conditional(condition: Evaluate, yes: Evaluate, no: Evaluate) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        value = condition(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        raise no_overload()

    return evaluate


def _equal(left: Evaluate, right: Evaluate) -> Evaluate:
    return _apply_to_both(runtime.equal, left, right)


def _unequal(left: Evaluate, right: Evaluate) -> Evaluate:
    return _apply_to_both(runtime.unequal, left, right)


def _either(optional: Evaluate, other: Evaluate, *, strict: bool) -> Evaluate:
    """Evaluate `or`; what is no optional passes until 1.36."""

    def evaluate(frame: Frame) -> Value:
        value = optional(frame)
        if strict and type(value) is not Optional:
            raise no_overload()
        return value if type(value) is not Optional or value.present else other(frame)

    return evaluate


def _either_value(optional: Evaluate, other: Evaluate, *, strict: bool) -> Evaluate:
    """Evaluate `orValue`; what is no optional passes until 1.36."""

    def evaluate(frame: Frame) -> Value:
        value = optional(frame)
        if strict and type(value) is not Optional:
            raise no_overload()
        if type(value) is not Optional:
            return value
        return value.unwrapped() if value.present else other(frame)

    return evaluate


def evaluates_in_turn(call: Resolution) -> bool:
    """Return whether upstream evaluates no argument after one that fails: in calls of more than two, and dispatched ones."""
    function, ids = call.function, call.overload_ids
    if len(call.arguments) > 2 or ids == ("string_format",):  # noqa: PLR2004
        return True
    bound = sum(overload.run is not None for overload in function.overloads)
    return function.shared is None and len(ids) != 1 and bound > 1


def _apply(run: Callable[..., Value], arguments: tuple[Evaluate, ...]) -> Evaluate:
    match arguments:
        case (only,):
            return lambda frame: run(only(frame))
        case (left, right):
            return _apply_to_both(run, left, right)
        case _:
            return _apply_in_turn(run, arguments)


def _apply_in_turn(run: Callable[..., Value], arguments: tuple[Evaluate, ...]) -> Evaluate:
    return lambda frame: run(*[argument(frame) for argument in arguments])


def _apply_to_both(run: Callable[[Value, Value], Value], left: Evaluate, right: Evaluate) -> Evaluate:
    """Evaluate both operands before the error of the first counts: the second may end the evaluation altogether."""

    def evaluate(frame: Frame) -> Value:
        try:
            one = left(frame)
        except EvaluationStopped:
            raise
        except EvaluationError:
            _attempt(right, frame)
            raise
        return run(one, right(frame))

    return evaluate


def _attempt(evaluate: Evaluate, frame: Frame) -> tracked.Seen:
    """Return a value, or the error instead of raising it."""
    try:
        return evaluate(frame)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _apply_tracked(overload_id: str, run: Callable[..., Value], arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Apply a function whose tracker looks at the arguments of every call before its outcome counts."""

    def evaluate(frame: Frame) -> Value:
        seen = tuple([_attempt(argument, frame) for argument in arguments])
        failed = next((one for one in seen if isinstance(one, EvaluationError)), None)
        outcome = failed or _attempt(lambda _frame: run(*seen), frame)
        tracked.look_at(overload_id, seen)
        if isinstance(outcome, EvaluationError):
            raise outcome
        return outcome

    return evaluate


def _optional_list(elements: tuple[Evaluate, ...], optional: tuple[bool, ...]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        found: list[Value] = []
        for element, marked in zip(elements, optional, strict=True):
            value = element(frame)
            if not marked:
                found.append(value)
            elif type(value) is not Optional:
                text = runtime.printed(value)
                raise EvaluationError(f"cannot initialize optional list element from non-optional value {text}")
            elif value.present:
                found.append(value.value)
        return found

    return evaluate


def _map_of(entries: tuple[tuple[Evaluate, Evaluate, bool], ...]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        found: list[tuple[Value, Value]] = []
        for key_of, value_of, optional in entries:
            key, value = key_of(frame), value_of(frame)
            if optional:
                if type(value) is not Optional:
                    raise _not_optional(key, value)
                if not value.present:
                    found = without(found, key)
                    continue
                value = value.value
            found.append((key, value))
        return make_map(found)

    return evaluate


def _not_optional(key: Value, value: Value) -> EvaluationError:
    shown = runtime.printed(key), runtime.printed(value)
    return EvaluationError(f"cannot initialize optional entry '{shown[0]}' from non-optional value {shown[1]}")


def _unknown_type(name: str) -> Value:
    """Raise for a type whose fields are declared but of which no values can be made."""
    raise EvaluationError(f"unknown type '{name}'")


def _struct_of(entries: tuple[tuple[str, Evaluate, bool], ...], make: Callable[[dict[str, Value]], Value]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        found: dict[str, Value] = {}
        for name, value_of, optional in entries:
            value = value_of(frame)
            if optional:
                if type(value) is not Optional:
                    raise _not_optional(name, value)
                if not value.present:
                    continue
                value = value.value
            found[name] = value
        return make(found)

    return evaluate


_Walk: TypeAlias = "Callable[[Frame], Iterator[None]]"


def _walk(over: Evaluate, first: int, second: int | None) -> _Walk:
    """Return what puts each element in its slots, in turn; the range is evaluated before the first."""
    if second is None:
        return lambda frame: _fill_one(frame, runtime.elements(over(frame)), first)
    position = second
    return lambda frame: _fill_two(frame, runtime.pairs(over(frame)), first, position)


def _fill_one(frame: Frame, elements: list[Value], slot: int) -> Iterator[None]:
    for element in elements:
        frame[slot] = element
        yield


def _fill_two(frame: Frame, pairs: list[tuple[Value, Value]], first: int, second: int) -> Iterator[None]:
    for frame[first], frame[second] in pairs:
        yield


def _quantify(walk: _Walk, predicate: Evaluate, *, stop: bool) -> Evaluate:
    """Evaluate `all` (stop at False) or `exists` (stop at True)."""
    passing = not stop

    def evaluate(frame: Frame) -> Value:
        first_error: EvaluationError | None = None
        for _ in walk(frame):
            try:
                value = predicate(frame)
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                first_error = first_error or error
                continue
            if value is stop:
                return stop
            if value is not passing and first_error is None:
                first_error = no_overload()
        if first_error is not None:
            raise first_error
        return passing

    return evaluate


def _exactly_one(walk: _Walk, predicate: Evaluate) -> Evaluate:
    """Evaluate `exists_one`: all elements are looked at, and of several errors the last one counts."""

    def evaluate(frame: Frame) -> Value:
        count = 0
        last_error: EvaluationError | None = None
        for _ in walk(frame):
            try:
                count += _decided(predicate(frame))
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                last_error = error
        if last_error is not None:
            raise last_error
        return count == 1

    return evaluate


def _decided(value: Value) -> bool:
    if type(value) is bool:
        return value
    raise no_overload()


def _collect(walk: _Walk, predicate: Evaluate | None, body: Evaluate) -> Evaluate:
    """Evaluate `map`, `filter` and `transformList`.

    The fold goes on after an error: an error of the body stays, an error of a later predicate replaces it.
    """

    def evaluate(frame: Frame) -> Value:
        found: list[Value] = []
        failure: EvaluationError | None = None
        for _ in walk(frame):
            try:
                if predicate is not None and not _decided(predicate(frame)):
                    continue
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                failure = error
                continue
            if failure is not None:
                continue
            try:
                found.append(body(frame))
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                failure = error
        if failure is not None:
            raise failure
        return found

    return evaluate


def _transform_map(walk: _Walk, predicate: Evaluate | None, body: Evaluate, key: int) -> Evaluate:
    def add(frame: Frame, found: KeyedMap) -> None:
        insert(found, frame[key], body(frame))

    return _build_map(walk, predicate, add)


def _transform_entries(
    walk: _Walk, predicate: Evaluate | None, body: Evaluate, insert_all: Callable[..., Value]
) -> Evaluate:
    def add(frame: Frame, found: KeyedMap) -> None:
        insert_all(found, body(frame))

    return _build_map(walk, predicate, add)


def _build_map(walk: _Walk, predicate: Evaluate | None, add: Callable[[Frame, KeyedMap], None]) -> Evaluate:
    def evaluate(frame: Frame) -> Value:
        found = KeyedMap(())
        failure: EvaluationError | None = None
        for _ in walk(frame):
            try:
                if predicate is not None and not _decided(predicate(frame)):
                    continue
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                failure = error
                continue
            if failure is not None:
                continue
            try:
                add(frame, found)
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                failure = error
        if failure is not None:
            raise failure
        return found.simplest()

    return evaluate
