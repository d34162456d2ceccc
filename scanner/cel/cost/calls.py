"""Counting closures of logical operators, conditionals and calls.

A closure returns a value or an error, and spends upstream's charges from the meter, in the same order.

Rules: `docs/semantics/cost.md#language`, `docs/semantics/cost.md#functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation import tracker_panics
from scanner.cel.evaluation.operators import is_member
from scanner.cel.functions.pricing import NO_WORK, UNIT, measure_size
from scanner.cel.values import arithmetic, list_kinds, runtime
from scanner.cel.values.values import Optional, Value

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import Key
    from scanner.cel.checking.checker import ResolvedCall
    from scanner.cel.cost.measures import Frame, Measure
    from scanner.cel.cost.meter import Meter
    from scanner.cel.functions.pricing import Outcome
    from scanner.cel.releases import Version


# --- logic


def logic(terms: tuple[Measure, ...], *, stop: bool) -> Measure:
    """Return the closure of `&&` (stop at False) or `||` (stop at True), which is free itself.

    Operands after the one that decides are neither evaluated nor charged; where none decides, the leftmost error is the result.
    """
    passing = not stop

    def measure(frame: Frame, meter: Meter) -> Outcome:
        failure: EvaluationError | None = None
        for term in terms:
            value = term(frame, meter)
            if value is stop:
                return stop
            if value is not passing and failure is None:
                failure = value if isinstance(value, EvaluationError) else runtime.make_no_overload()
        return passing if failure is None else failure

    return measure


def conditional(condition: Measure, yes: Measure, no: Measure) -> Measure:
    """Return the closure of a conditional, which is free itself; the other branch is not charged."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = condition(frame, meter)
        if value is True:
            return yes(frame, meter)
        if value is False:
            return no(frame, meter)
        return value if isinstance(value, EvaluationError) else runtime.make_no_overload()

    return measure


def not_strictly_false(operand: Measure) -> Measure:
    """Return the closure of a loop's condition, which costs 1 a round."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = operand(frame, meter)
        meter.spend(1)
        return value if type(value) is bool else True

    return measure


def alternative(optional: Measure, other: Measure, *, value: bool, strict: bool) -> Measure:
    """Return the closure of `or` and, with `value`, of `orValue`; both are free.

    Until 1.36 (not `strict`), an operand that is not an optional is returned.
    """

    def measure(frame: Frame, meter: Meter) -> Outcome:
        outcome = optional(frame, meter)
        if type(outcome) is not Optional:
            return runtime.make_no_overload() if strict and not isinstance(outcome, EvaluationError) else outcome
        if not outcome.present:
            return other(frame, meter)
        return outcome.value if value else outcome

    return measure


# --- calls


class AppliedFunction:
    """A function as a call applies it, with the price and the work of that call."""

    __slots__ = ("_late", "_rule", "_run", "_tracker", "_work")

    def __init__(self, call: ResolvedCall, version: Version, run: Callable[..., Value]) -> None:
        price = call.function.price(call.overload_ids, version) or UNIT
        self._run = run
        self._tracker = tracker_panics.find_tracker(call)
        self._rule = price.rule
        self._late = price.late
        self._work = NO_WORK if call.function.cost is None else call.function.cost.work

    def run_metered(self, arguments: tuple[Outcome, ...], meter: Meter) -> Outcome:
        """Return the result for arguments that are all evaluated; the call is charged even if one of them is an error.

        The cost is charged before the work where possible: then the limit prevents the work. Raises CostExceeded and Interrupted.
        """
        failure = next((argument for argument in arguments if isinstance(argument, EvaluationError)), None)
        if self._tracker is not None:
            tracker_panics.track(self._tracker, arguments)
        if self._late:
            result = self._apply(arguments, meter) if failure is None else failure
            meter.spend(self._rule(arguments, result))
            return result
        meter.spend(self._rule(arguments, None))
        return self._apply(arguments, meter) if failure is None else failure

    def _apply(self, values: tuple[Value, ...], meter: Meter) -> Outcome:
        work = self._work
        if work.weight:
            meter.walk(_take_shortest(values) if work.shortest else values, work.weight)
        if work.characters is not None:
            meter.make_text(work.characters(values))
        try:
            value = self._run(*values)
            return value if self._run is grow else meter.limit_size(value)
        except EvaluationStopped:
            raise
        except EvaluationError as error:
            return error


def _take_shortest(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operand of a comparison that ends it first."""
    return (min(values, key=measure_size),)


def apply_to_all(applied: AppliedFunction, arguments: tuple[Measure, ...]) -> Measure:
    """Return the closure of a call whose operands are all evaluated, even after the first fails."""
    match arguments:
        case (only,):
            return lambda frame, meter: applied.run_metered((only(frame, meter),), meter)
        case (left, right):
            return lambda frame, meter: applied.run_metered((left(frame, meter), right(frame, meter)), meter)
        case _:
            return lambda _frame, meter: applied.run_metered((), meter)


def compare_sum(usual: AppliedFunction, joined: AppliedFunction, left: Measure, right: Measure) -> Measure:
    """Return the closure of a comparison with a list that `+` may have joined: `joined` compares those, `usual` all others."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        with list_kinds.record_lists() as kinds:
            first = left(frame, meter)
        second = right(frame, meter)
        is_joined = kinds.of(first) is list_kinds.ListKind.JOINED
        return (joined if is_joined else usual).run_metered((first, second), meter)

    return measure


def apply_in_turn(applied: AppliedFunction, arguments: tuple[Measure, ...]) -> Measure:
    """Return the closure of a call whose arguments are not evaluated after an error; then the call is not charged."""
    *others, last = arguments

    def measure(frame: Frame, meter: Meter) -> Outcome:
        values: list[Outcome] = []
        for argument in others:
            value = argument(frame, meter)
            if isinstance(value, EvaluationError):
                return value
            values.append(value)
        return applied.run_metered((*values, last(frame, meter)), meter)

    return measure


def grow(accumulated: Value, more: Value) -> Value:
    """Return an accumulator with another part; a list that no other expression reads grows in place."""
    if type(accumulated) is not list or type(more) is not list:
        return arithmetic.add(accumulated, more)
    accumulated.extend(more)
    return accumulated


def membership(element: Measure, members: frozenset[Key]) -> Measure:
    """Return the closure of `in` a constant list, which is free."""

    def measure(frame: Frame, meter: Meter) -> Outcome:
        value = element(frame, meter)
        return value if isinstance(value, EvaluationError) else is_member(value, members)

    return measure
