"""Counting closures of comprehensions, which run in the full form of their macros.

A closure returns a value or an error, and spends upstream's charges from the meter, in the same order.

Rules: `docs/semantics/cost.md#language`. Mirrors `evalFold` of cel-go's `interpreter/interpretable.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.cost.measures import Frame, Measure, Unset
from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.values import access
from scanner.cel.values.values import KeyedMap, Value

if TYPE_CHECKING:
    from scanner.cel.cost.meter import Meter
    from scanner.cel.functions.pricing import Outcome

Walk: TypeAlias = "Callable[[Frame, Value], Iterator[None]]"


def one_by_one(slot: int) -> Walk:
    """Return a walk over elements, or over the keys of a map; `slot` is that of the variable in the frame."""

    def walk(frame: Frame, container: Value) -> Iterator[None]:
        for frame[slot] in access.elements(container):
            yield

    return walk


def in_pairs(first: int, second: int) -> Walk:
    """Return a walk over indexes and elements, or over keys and values; `first` and `second` are slots of the frame."""

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
        return outcome.simplest() if type(outcome) is KeyedMap else outcome

    return measure
