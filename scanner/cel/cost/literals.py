"""Counting closures of lists, maps and objects that an expression makes.

A closure returns a value or an error, and spends upstream's charges from the meter, in the same order.

Rules: `docs/semantics/cost.md#language`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.functions.pricing import LIST_COST, MAP_COST, STRUCT_COST
from scanner.cel.values import runtime
from scanner.cel.values.values import Optional, Value, make_map, without

if TYPE_CHECKING:
    from scanner.cel.cost.measures import Frame, Measure
    from scanner.cel.cost.meter import Meter
    from scanner.cel.functions.pricing import Outcome


def list_of(entries: tuple[tuple[Measure, bool], ...]) -> Measure:
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
                text = runtime.printed(value)
                return EvaluationError(f"cannot initialize optional list element from non-optional value {text}")
            elif value.present:
                elements.append(value.value)
        return elements

    return _built(build, LIST_COST)


def map_of(entries: tuple[tuple[Measure, Measure, bool], ...]) -> Measure:
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
            value = _entry(key, value_of(frame, meter), optional=optional)
            if isinstance(value, EvaluationError):
                return value
            pairs = [*pairs, *((key, part) for part in value)] if value else without(pairs, key)
        return make_map(pairs)

    return _built(build, MAP_COST)


def struct_of(
    fields: tuple[tuple[str, Measure, bool], ...], make: Callable[[dict[str, Value]], Value], *, converts: bool
) -> Measure:
    """Return the closure of an object literal, which costs `STRUCT_COST` after its fields.

    `converts`: the whole content of its fields is converted, which is work.
    """

    def build(frame: Frame, meter: Meter) -> Outcome:
        values: dict[str, Value] = {}
        for name, value_of, optional in fields:
            value = _entry(name, value_of(frame, meter), optional=optional)
            if isinstance(value, EvaluationError):
                return value
            values.pop(name, None)
            for part in value:
                values[name] = part
        if converts:
            meter.walk(tuple(values.values()))
        return _made(make, values)

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
    """Return a tuple of an entry's value, an empty tuple where an optional entry is absent, or an error."""
    if isinstance(value, EvaluationError):
        return value
    if not optional:
        return (value,)
    if type(value) is not Optional:
        shown = runtime.printed(key), runtime.printed(value)
        return EvaluationError(f"cannot initialize optional entry '{shown[0]}' from non-optional value {shown[1]}")
    return (value.value,) if value.present else ()
