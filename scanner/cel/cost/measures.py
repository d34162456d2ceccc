"""What each construct does and pays, as closures: the parts that `metered` puts together.

Mirrors the interpretables of cel-go with `CostTracker.Observe` around them. A closure returns a value or an error, and spends from
the meter what upstream charges, in the same order: what is spent decides where an evaluation ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.analysis.go_values import refusal
from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation import tracker_panics
from scanner.cel.evaluation.frame import MISSING
from scanner.cel.evaluation.operators import is_member
from scanner.cel.functions.pricing import LIST_COST, MAP_COST, NO_WORK, STRUCT_COST, UNIT, WRAP, size
from scanner.cel.values import access, arithmetic, list_kinds, runtime
from scanner.cel.values.values import NONE, KeyedMap, Optional, Value, make_map, without

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import Key
    from scanner.cel.checking.checker import Resolution
    from scanner.cel.cost.meter import Meter
    from scanner.cel.evaluation.selections import Rewrap
    from scanner.cel.functions.pricing import Outcome
    from scanner.cel.releases import Version

Frame: TypeAlias = "list[Outcome]"
Measure: TypeAlias = "Callable[[Frame, Meter], Outcome]"
Step: TypeAlias = "tuple[Measure | None, Value, bool]"
"""One selection: a computed key or a constant one, and whether it is optional."""
_MINUS_ONE = WRAP - 1
"""What a presence test gives back for the reading; on a conditional, whose reading has cost nothing, too."""


class Unset:
    """An accumulator that nothing has read: its first value is computed, and paid for, when something does."""

    __slots__ = ("_grows", "_start")

    def __init__(self, start: Measure, *, grows: bool) -> None:
        self._start = start
        self._grows = grows

    def first(self, frame: Frame, meter: Meter) -> Outcome:
        """Return the first value; where the fold adds to it, one that nothing else can see."""
        value = self._start(frame, meter)
        if not self._grows or value:
            return value
        if type(value) is list:
            return []
        return KeyedMap(()) if type(value) is dict else value


# --- names and selections


def constant(value: Value) -> Measure:
    """Measure a constant, which is free."""
    return lambda _frame, _meter: value


def charged(raw: Measure) -> Measure:
    """Charge for reading what is read."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = raw(frame, meter)
        meter.spend(1)
        return value

    return measure


def refunded(presence: Measure) -> Measure:
    """Take back what reading would have cost."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = presence(frame, meter)
        meter.spend(_MINUS_ONE)
        return value

    return measure


def root(slot: int, name: str) -> Measure:
    """Read a declared variable."""

    def measure(frame: Frame, _meter: Meter) -> Outcome:
        value = frame[slot]
        return EvaluationError(f"no such attribute(s): {name}") if value is MISSING else value

    return measure


def variable(slot: int, rewrap: Rewrap) -> Measure:
    """Read a variable of a comprehension."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = frame[slot]
        if type(value) is Unset:
            value = frame[slot] = value.first(frame, meter)
        return _reread(value, rewrap) if type(value) is Optional else value

    return measure


def reading(operand: Measure, rewrap: Rewrap) -> Measure:
    """Read a branch of a conditional that is no selection."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = operand(frame, meter)
        return _reread(value, rewrap) if type(value) is Optional else value

    return measure


def native_key(key: Measure) -> Measure:
    """Name what cannot be a key or an index as Go does."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = key(frame, meter)
        why = "" if isinstance(value, EvaluationError) else refusal(value)
        return EvaluationError(why) if why else value

    return measure


def copied(key: Measure) -> Measure:
    """Make a list or map of its own."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = key(frame, meter)
        return copy(value) if type(value) is dict or type(value) is list else value

    return measure


def _reread(optional: Optional, rewrap: Rewrap) -> Optional:
    return Optional(rewrap(optional.value)) if optional.present else optional


def follow(base: Measure, steps: tuple[Step, ...], rewrap: Rewrap, *, step_cost: int) -> Measure:
    """Follow a path, and pay the toll for each step."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        start = base(frame, meter)
        if isinstance(start, EvaluationError):
            return start
        found, is_optional = _reach(start, steps, (frame, meter, step_cost), rewrap)
        if found is None:
            return NONE
        is_value = is_optional and not isinstance(found[0], EvaluationError)
        return Optional(found[0]) if is_value else found[0]

    return measure


_Reached: TypeAlias = "tuple[tuple[Outcome] | None, bool]"


def _reach(value: Value, steps: tuple[Step, ...], place: tuple[Frame, Meter, int], rewrap: Rewrap) -> _Reached:
    """Return where the steps lead or the error on the way, wrapped, None where there is nothing; and whether the way was optional."""
    frame, meter, step_cost = place
    is_optional = type(value) is Optional
    if type(value) is Optional:
        if not value.present:
            return None, True
        value = rewrap(value.value)
    for closure, key, optional in steps:
        is_optional = is_optional or optional
        at = key if closure is None else closure(frame, meter)
        found = _tried(value, at) if is_optional else (_indexed(value, at),)
        if found is None or (is_optional and isinstance(found[0], EvaluationError)):
            return found, True
        meter.spend(step_cost)
        value = found[0]
        if isinstance(value, EvaluationError):
            return (value,), False
    return (value,), is_optional


def _indexed(container: Value, key: Outcome) -> Outcome:
    if isinstance(key, EvaluationError):
        return key
    try:
        return access.index(container, key)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _tried(container: Value, key: Outcome) -> tuple[Outcome] | None:
    if isinstance(key, EvaluationError):
        return (key,)
    try:
        return access.probe(container, key)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return (error,)


def has(base: Measure, steps: tuple[Step, ...], field: str, rewrap: Rewrap, *, keep: bool, step_cost: int) -> Measure:
    """Measure a presence test; `keep`: in a branch, what an optional path leads to stays an optional."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        start = base(frame, meter)
        if isinstance(start, EvaluationError):
            return start
        found, is_optional = _reach(start, steps, (frame, meter, step_cost), rewrap)
        if found is None:
            return NONE if keep else False
        container = found[0]
        if isinstance(container, EvaluationError):
            return container
        entry = _tried(container, field)
        failed = entry is not None and isinstance(entry[0], EvaluationError)
        if not is_optional or (entry is not None and not failed):
            meter.spend(step_cost)
        if entry is None:
            return NONE if keep and is_optional else False
        if failed:
            return entry[0]
        return Optional(entry[0]) if keep and is_optional else True

    return measure


# --- logic


def logic(terms: tuple[Measure, ...], *, stop: bool) -> Measure:
    """Evaluate until an operand decides; the leftmost error is the result when none does."""
    passing = not stop

    def measure(frame: Frame, meter: Meter) -> Outcome:
        failure: EvaluationError | None = None
        for term in terms:
            value = term(frame, meter)
            if value is stop:
                return stop
            if value is not passing and failure is None:
                failure = value if isinstance(value, EvaluationError) else runtime.no_overload()
        return passing if failure is None else failure

    return measure


def conditional(condition: Measure, yes: Measure, no: Measure) -> Measure:
    """Measure a conditional, which is free itself."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = condition(frame, meter)
        if value is True:
            return yes(frame, meter)
        if value is False:
            return no(frame, meter)
        return value if isinstance(value, EvaluationError) else runtime.no_overload()

    return measure


def not_strictly_false(operand: Measure) -> Measure:
    """Measure what keeps a loop going."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = operand(frame, meter)
        meter.spend(1)
        return value if type(value) is bool else True

    return measure


def alternative(optional: Measure, other: Measure, *, value: bool, strict: bool) -> Measure:
    """Evaluate `or` and `orValue`; what is no optional passes until 1.36."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        found = optional(frame, meter)
        if type(found) is not Optional:
            return runtime.no_overload() if strict and not isinstance(found, EvaluationError) else found
        if not found.present:
            return other(frame, meter)
        return found.value if value else found

    return measure


# --- calls


class Applied:
    """A function as one call applies it, and what that costs."""

    __slots__ = ("_late", "_rule", "_run", "_tracker", "_work")

    def __init__(self, call: Resolution, version: Version, run: Callable[..., Value]) -> None:
        price = call.function.price(call.overload_ids, version) or UNIT
        self._run = run
        self._tracker = tracker_panics.tracker_of(call)
        self._rule = price.rule
        self._late = price.late
        self._work = NO_WORK if call.function.cost is None else call.function.cost.work

    def to(self, arguments: tuple[Outcome, ...], meter: Meter) -> Outcome:
        """Return the result for arguments that are all evaluated; the call is paid for whatever they are.

        What can be charged before the work is done is: then nothing is done that the limit forbids.
        """
        failure = next((argument for argument in arguments if isinstance(argument, EvaluationError)), None)
        if self._tracker is not None:
            tracker_panics.track(self._tracker, arguments)
        if self._late:
            result = self._called(arguments, meter) if failure is None else failure
            meter.spend(self._rule(arguments, result))
            return result
        meter.spend(self._rule(arguments, None))
        return self._called(arguments, meter) if failure is None else failure

    def _called(self, values: tuple[Value, ...], meter: Meter) -> Outcome:
        work = self._work
        if work.weight:
            meter.walk(_shortest(values) if work.shortest else values, work.weight)
        if work.characters is not None:
            meter.make_text(work.characters(values))
        try:
            value = self._run(*values)
            return value if self._run is grown else meter.limit_size(value)
        except EvaluationStopped:
            raise
        except EvaluationError as error:
            return error


def _shortest(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operand of a comparison that ends it first."""
    return (min(values, key=size),)


def apply_to_all(applied: Applied, arguments: tuple[Measure, ...]) -> Measure:
    """Apply a function whose operands are all evaluated, whatever becomes of the first."""
    match arguments:
        case (only,):
            return lambda frame, meter: applied.to((only(frame, meter),), meter)
        case (left, right):
            return lambda frame, meter: applied.to((left(frame, meter), right(frame, meter)), meter)
        case _:
            return lambda _frame, meter: applied.to((), meter)


def compare_sum(usual: Applied, joined: Applied, left: Measure, right: Measure) -> Measure:
    """Compare what may be a list that `+` has joined, whose comparison is another one."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        with list_kinds.recorded() as kinds:
            first = left(frame, meter)
        second = right(frame, meter)
        is_joined = kinds.of(first) is list_kinds.ListKind.JOINED
        return (joined if is_joined else usual).to((first, second), meter)

    return measure


def apply_in_turn(applied: Applied, arguments: tuple[Measure, ...]) -> Measure:
    """Apply a function whose arguments are not evaluated any more after an error; then the call is not paid for."""
    *others, last = arguments

    def measure(frame: Frame, meter: Meter) -> Outcome:
        values: list[Outcome] = []
        for argument in others:
            value = argument(frame, meter)
            if isinstance(value, EvaluationError):
                return value
            values.append(value)
        return applied.to((*values, last(frame, meter)), meter)

    return measure


def grown(accumulated: Value, more: Value) -> Value:
    """Add to an accumulator, which nothing else can see: a list grows in place."""
    if type(accumulated) is not list or type(more) is not list:
        return arithmetic.add(accumulated, more)
    accumulated.extend(more)
    return accumulated


def membership(element: Measure, members: frozenset[Key]) -> Measure:
    """Look a value up in a constant list, free of charge."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = element(frame, meter)
        return value if isinstance(value, EvaluationError) else is_member(value, members)

    return measure


# --- literals


def list_of(entries: tuple[tuple[Measure, bool], ...]) -> Measure:
    """Make a list."""

    def build(frame: Frame, meter: Meter) -> Outcome:
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


def map_of(entries: tuple[tuple[Measure, Measure, bool], ...]) -> Measure:
    """Make a map."""

    def build(frame: Frame, meter: Meter) -> Outcome:
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
            found = [*found, *((key, one) for one in value)] if value else without(found, key)
        return make_map(found)

    return _built(build, MAP_COST)


def struct_of(
    fields: tuple[tuple[str, Measure, bool], ...], make: Callable[[dict[str, Value]], Value], *, converts: bool
) -> Measure:
    """Make an object; `converts`: all that is in its fields is looked at."""

    def build(frame: Frame, meter: Meter) -> Outcome:
        found: dict[str, Value] = {}
        for name, value_of, optional in fields:
            value = _entry(name, value_of(frame, meter), optional=optional)
            if isinstance(value, EvaluationError):
                return value
            found.pop(name, None)
            for one in value:
                found[name] = one
        if converts:
            meter.walk(tuple(found.values()))
        return _made(make, found)

    return _built(build, STRUCT_COST)


def _made(make: Callable[[dict[str, Value]], Value], fields: dict[str, Value]) -> Outcome:
    try:
        return make(fields)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _built(build: Measure, price: int) -> Measure:
    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = build(frame, meter)
        meter.spend(price)
        return value

    return measure


def _entry(key: Value, value: Outcome, *, optional: bool) -> EvaluationError | tuple[Value, ...]:
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

Walk: TypeAlias = "Callable[[Frame, Value], Iterator[None]]"


def one_by_one(slot: int) -> Walk:
    """Walk over elements, or over the keys of a map."""

    def walk(frame: Frame, container: Value) -> Iterator[None]:
        for frame[slot] in access.elements(container):
            yield

    return walk


def in_pairs(first: int, second: int) -> Walk:
    """Walk over indexes and elements, or over keys and values."""

    def walk(frame: Frame, container: Value) -> Iterator[None]:
        for frame[first], frame[second] in access.pairs(container):
            yield

    return walk


def fold(
    over: Measure,
    walk: Walk,
    accumulator: tuple[int, Unset],
    condition: Measure | None,
    step: Measure,
    result: Measure,
) -> Measure:
    """Measure a comprehension as it is spelled out; no condition goes on to the end."""
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
        found = result(frame, meter)
        return found.simplest() if type(found) is KeyedMap else found

    return measure
