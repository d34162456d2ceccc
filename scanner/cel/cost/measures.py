"""Counting closures of reads: names, paths and presence tests; `metered` combines these closures.

Mirrors the interpretables of cel-go with `CostTracker.Observe` around them. A closure returns a value or an error, and spends from
the meter what upstream charges, in the same order: what is spent decides where an evaluation ends.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.analysis.go_values import explain_refused_key
from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation.frame import MISSING
from scanner.cel.functions.pricing import WRAP
from scanner.cel.values import access
from scanner.cel.values.values import NONE, KeyedMap, Optional, Value

if TYPE_CHECKING:
    from scanner.cel.cost.meter import Meter
    from scanner.cel.evaluation.selections import Rewrap
    from scanner.cel.functions.pricing import Outcome

Frame: TypeAlias = "list[Outcome]"
Measure: TypeAlias = "Callable[[Frame, Meter], Outcome]"
Step: TypeAlias = "tuple[Measure | None, Value, bool]"
"""One selection: a computed key or a constant one, and whether it is optional."""
_MINUS_ONE = WRAP - 1
"""The refund of a presence test for the reading; on a conditional, whose reading was free, too."""


class Unset:
    """An accumulator that has not been read: its first value is computed and charged at the first read."""

    __slots__ = ("_grows", "_start")

    def __init__(self, start: Measure, *, grows: bool) -> None:
        self._start = start
        self._grows = grows

    def first(self, frame: Frame, meter: Meter) -> Outcome:
        """Return the first value, charged; where the fold adds to it, a copy that no other expression reads."""
        value = self._start(frame, meter)
        if not self._grows or value:
            return value
        if type(value) is list:
            return []
        return KeyedMap(()) if type(value) is dict else value


def constant(value: Value) -> Measure:
    """Return the closure of a constant, which is free."""
    return lambda _frame, _meter: value


def charge_read(raw: Measure) -> Measure:
    """Return a closure that charges 1 for reading a value."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = raw(frame, meter)
        meter.spend(1)
        return value

    return measure


def refund_read(presence: Measure) -> Measure:
    """Return the closure of a presence test that takes 1 back: the cost of the reading."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = presence(frame, meter)
        meter.spend(_MINUS_ONE)
        return value

    return measure


def root(slot: int, name: str) -> Measure:
    """Return a closure that reads a declared variable, free of charge; an absent one is an error."""

    def measure(frame: Frame, _meter: Meter) -> Outcome:
        value = frame[slot]
        return EvaluationError(f"no such attribute(s): {name}") if value is MISSING else value

    return measure


def variable(slot: int, rewrap: Rewrap) -> Measure:
    """Return a closure that reads a variable of a comprehension, free of charge."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = frame[slot]
        if type(value) is Unset:
            value = frame[slot] = value.first(frame, meter)
        return _rewrap_optional(value, rewrap) if type(value) is Optional else value

    return measure


def read_branch(operand: Measure, rewrap: Rewrap) -> Measure:
    """Return a closure that reads a branch of a conditional that is no selection."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = operand(frame, meter)
        return _rewrap_optional(value, rewrap) if type(value) is Optional else value

    return measure


def check_key(key: Measure) -> Measure:
    """Return the closure of a key or an index; the error of an invalid value names its Go type."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = key(frame, meter)
        refusal = "" if isinstance(value, EvaluationError) else explain_refused_key(value)
        return EvaluationError(refusal) if refusal else value

    return measure


def copy_result(key: Measure) -> Measure:
    """Return a closure whose list or map is a new one at each evaluation."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = key(frame, meter)
        return copy(value) if type(value) is dict or type(value) is list else value

    return measure


def _rewrap_optional(optional: Optional, rewrap: Rewrap) -> Optional:
    return Optional(rewrap(optional.value)) if optional.present else optional


def follow(base: Measure, steps: tuple[Step, ...], rewrap: Rewrap, *, step_cost: int) -> Measure:
    """Return the closure of a path, which charges `step_cost` a step; an absent optional step is free."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        start = base(frame, meter)
        if isinstance(start, EvaluationError):
            return start
        reached, is_optional = _reach(start, steps, (frame, meter, step_cost), rewrap)
        if reached is None:
            return NONE
        is_value = is_optional and not isinstance(reached[0], EvaluationError)
        return Optional(reached[0]) if is_value else reached[0]

    return measure


_Reached: TypeAlias = "tuple[tuple[Outcome] | None, bool]"


def _reach(value: Value, steps: tuple[Step, ...], place: tuple[Frame, Meter, int], rewrap: Rewrap) -> _Reached:
    """Return the value at the path or the first error, wrapped, None if absent; and whether the path has an optional step."""
    frame, meter, step_cost = place
    is_optional = type(value) is Optional
    if type(value) is Optional:
        if not value.present:
            return None, True
        value = rewrap(value.value)
    for closure, key, optional in steps:
        is_optional = is_optional or optional
        at = key if closure is None else closure(frame, meter)
        reached = _try_index(value, at) if is_optional else (_index(value, at),)
        if reached is None or (is_optional and isinstance(reached[0], EvaluationError)):
            return reached, True
        meter.spend(step_cost)
        value = reached[0]
        if isinstance(value, EvaluationError):
            return (value,), False
    return (value,), is_optional


def _index(container: Value, key: Outcome) -> Outcome:
    if isinstance(key, EvaluationError):
        return key
    try:
        return access.index(container, key)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _try_index(container: Value, key: Outcome) -> tuple[Outcome] | None:
    if isinstance(key, EvaluationError):
        return (key,)
    try:
        return access.probe(container, key)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return (error,)


def has(base: Measure, steps: tuple[Step, ...], field: str, rewrap: Rewrap, *, keep: bool, step_cost: int) -> Measure:
    """Return the closure of a presence test, which charges `step_cost` for each step and for the tested field.

    `keep`: in a branch, the value at an optional path stays an optional.
    """

    def measure(frame: Frame, meter: Meter) -> Outcome:
        start = base(frame, meter)
        if isinstance(start, EvaluationError):
            return start
        reached, is_optional = _reach(start, steps, (frame, meter, step_cost), rewrap)
        if reached is None:
            return NONE if keep else False
        container = reached[0]
        if isinstance(container, EvaluationError):
            return container
        item = _try_index(container, field)
        failed = item is not None and isinstance(item[0], EvaluationError)
        if not is_optional or (item is not None and not failed):
            meter.spend(step_cost)
        if item is None:
            return NONE if keep and is_optional else False
        if failed:
            return item[0]
        return Optional(item[0]) if keep and is_optional else True

    return measure
