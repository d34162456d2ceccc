"""Closures of operators, calls and literals.

Errors are exceptions; only the logical operators hold one back, because another operand may absorb it.

Rules: `docs/semantics/cel-evaluation.md#errors`, `docs/semantics/cel-evaluation.md#logic`.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation import tracker_panics
from scanner.cel.values import list_kinds, runtime
from scanner.cel.values.runtime import make_no_overload
from scanner.cel.values.values import Optional, UInt, Value, drop_key, make_map, make_unhashable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scanner.cel.analysis.constants import Key
    from scanner.cel.evaluation.frame import Evaluate, Frame
    from scanner.cel.functions import regex
    from scanner.cel.functions.declaration import Tracker


def copy_result(evaluate: Evaluate) -> Evaluate:
    """Return a closure whose list or map is a new one at each evaluation."""

    def copied(frame: Frame) -> Value:
        value = evaluate(frame)
        return copy(value) if type(value) is dict or type(value) is list else value

    return copied


def search(run: Callable[..., Value], pattern: regex.Pattern, arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Return the closure of a search with a pattern that was compiled beforehand."""
    return lambda frame: run(pattern, *[argument(frame) for argument in arguments])


def membership(element: Evaluate, members: frozenset[Key]) -> Evaluate:
    """Return the closure of `in` a constant list."""
    return lambda frame: is_member(element(frame), members)


def is_member(value: Value, members: frozenset[Key]) -> bool:
    """Return whether a value is in a constant list of plain values.

    Raises EvaluationStopped for bytes, which Go cannot look up.
    """
    if type(value) is bytes:
        raise make_unhashable("types.Bytes")
    return type(value) in _PLAIN and (type(value), value) in members


_PLAIN = frozenset({bool, int, UInt, float, str})


def logic(terms: tuple[Evaluate, ...], *, stop: bool) -> Evaluate:
    """Return the closure of `&&` (stop at False) or `||` (stop at True): the first operand that is `stop` decides.

    Where none does, the leftmost error is raised.
    """
    return decide_in_turn(lambda _frame: terms, stop=stop)


def decide_in_turn(operands: Callable[[Frame], Iterable[Evaluate]], *, stop: bool) -> Evaluate:
    """Return a closure whose value is `stop` as soon as an operand is that, else the opposite.

    Where no operand decides, the first error is raised.
    """
    passing = not stop

    def evaluate(frame: Frame) -> Value:
        first_error: EvaluationError | None = None
        for operand in operands(frame):
            try:
                value = operand(frame)
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                first_error = first_error or error
                continue
            if value is stop:
                return stop
            if value is not passing and first_error is None:
                first_error = make_no_overload()
        if first_error is not None:
            raise first_error
        return passing

    return evaluate


def conditional(condition: Evaluate, yes: Evaluate, no: Evaluate) -> Evaluate:
    """Return the closure of the branch that the condition selects."""

    def evaluate(frame: Frame) -> Value:
        value = condition(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        raise make_no_overload()

    return evaluate


def either(optional: Evaluate, other: Evaluate, *, strict: bool) -> Evaluate:
    """Return the closure of `or`; until 1.36 (not `strict`), an operand that is not an optional is returned."""

    def evaluate(frame: Frame) -> Value:
        value = optional(frame)
        if strict and type(value) is not Optional:
            raise make_no_overload()
        return value if type(value) is not Optional or value.present else other(frame)

    return evaluate


def either_value(optional: Evaluate, other: Evaluate, *, strict: bool) -> Evaluate:
    """Return the closure of `orValue`; until 1.36 (not `strict`), an operand that is not an optional is returned."""

    def evaluate(frame: Frame) -> Value:
        value = optional(frame)
        if strict and type(value) is not Optional:
            raise make_no_overload()
        if type(value) is not Optional:
            return value
        return value.unwrapped() if value.present else other(frame)

    return evaluate


def compare_sum(
    run: Callable[..., Value], on_joined: Callable[..., Value], left: Evaluate, right: Evaluate
) -> Evaluate:
    """Return the closure of a comparison with a list that `+` may have joined: `on_joined` compares those, `run` all others."""

    def evaluate(frame: Frame) -> Value:
        with list_kinds.record_lists() as kinds:
            first = attempt(left, frame)
        second = attempt(right, frame)
        for operand in (first, second):
            if isinstance(operand, EvaluationError):
                raise operand
        is_joined = kinds.of(first) is list_kinds.ListKind.JOINED
        return on_joined(first, second) if is_joined else run(first, second)

    return evaluate


def apply(run: Callable[..., Value], arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Return the closure of a function's call on the values of its arguments."""
    match arguments:
        case (only,):
            return lambda frame: run(only(frame))
        case (left, right):
            return apply_to_both(run, left, right)
        case _:
            return apply_in_turn(run, arguments)


def apply_to_constant(run: Callable[[Value, Value], Value], left: Evaluate, right: Value) -> Evaluate:
    """Return the closure of a call whose second argument is a constant, which cannot fail."""
    return lambda frame: run(left(frame), right)


def apply_in_turn(run: Callable[..., Value], arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Return the closure of a call; no argument is evaluated after one that fails."""
    return lambda frame: run(*[argument(frame) for argument in arguments])


def apply_to_both(run: Callable[[Value, Value], Value], left: Evaluate, right: Evaluate) -> Evaluate:
    """Return the closure of a call of two arguments.

    Both are evaluated before an error of the first counts: the second may end the evaluation altogether.
    """

    def evaluate(frame: Frame) -> Value:
        try:
            first = left(frame)
        except EvaluationStopped:
            raise
        except EvaluationError:
            attempt(right, frame)
            raise
        return run(first, right(frame))

    return evaluate


def attempt(evaluate: Evaluate, frame: Frame) -> tracker_panics.Tracked:
    """Return a value, or its error instead of raising it. Raises EvaluationStopped."""
    try:
        return evaluate(frame)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def apply_tracked(tracker: Tracker, run: Callable[..., Value], arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Return the closure of a call whose tracker checks all arguments, errors included, before the result counts."""

    def evaluate(frame: Frame) -> Value:
        tracked = tuple([attempt(argument, frame) for argument in arguments])
        failure = next((argument for argument in tracked if isinstance(argument, EvaluationError)), None)
        outcome = failure or attempt(lambda _frame: run(*tracked), frame)
        tracker_panics.track(tracker, tracked)
        if isinstance(outcome, EvaluationError):
            raise outcome
        return outcome

    return evaluate


def optional_list(elements: tuple[Evaluate, ...], optional: tuple[bool, ...]) -> Evaluate:
    """Return the closure of a list literal, which leaves out absent optional elements."""

    def evaluate(frame: Frame) -> Value:
        values: list[Value] = []
        for element, marked in zip(elements, optional, strict=True):
            value = element(frame)
            if not marked:
                values.append(value)
            elif type(value) is not Optional:
                text = runtime.print_value(value)
                raise EvaluationError(f"cannot initialize optional list element from non-optional value {text}")
            elif value.present:
                values.append(value.value)
        return values

    return evaluate


def map_of(entries: tuple[tuple[Evaluate, Evaluate, bool], ...]) -> Evaluate:
    """Return the closure of a map literal; an entry is a key, a value and whether it is optional."""

    def evaluate(frame: Frame) -> Value:
        pairs: list[tuple[Value, Value]] = []
        for key_of, value_of, optional in entries:
            key, value = key_of(frame), value_of(frame)
            if optional:
                if type(value) is not Optional:
                    raise _make_not_optional(key, value)
                if not value.present:
                    pairs = drop_key(pairs, key)
                    continue
                value = value.value
            pairs.append((key, value))
        return make_map(pairs)

    return evaluate


def _make_not_optional(key: Value, value: Value) -> EvaluationError:
    shown = runtime.print_value(key), runtime.print_value(value)
    return EvaluationError(f"cannot initialize optional entry '{shown[0]}' from non-optional value {shown[1]}")


def struct_of(entries: tuple[tuple[str, Evaluate, bool], ...], make: Callable[[dict[str, Value]], Value]) -> Evaluate:
    """Return the closure of an object literal; a field is a name, a value and whether it is optional."""

    def evaluate(frame: Frame) -> Value:
        values: dict[str, Value] = {}
        for name, value_of, optional in entries:
            value = value_of(frame)
            if optional:
                if type(value) is not Optional:
                    raise _make_not_optional(name, value)
                if not value.present:
                    values.pop(name, None)
                    continue
                value = value.value
            values[name] = value
        return make(values)

    return evaluate
