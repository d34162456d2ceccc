"""Closures of comprehensions. Of errors, only `all` and `exists` hold one back, because another element may decide.

Rules: `docs/semantics/cel-evaluation.md#logic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.functions.comprehensions import insert
from scanner.cel.values import runtime
from scanner.cel.values.runtime import no_overload
from scanner.cel.values.values import KeyedMap, Value

if TYPE_CHECKING:
    from scanner.cel.evaluation.frame import Evaluate, Frame

_Walk: TypeAlias = "Callable[[Frame], Iterator[None]]"
_Found = TypeVar("_Found", "list[Value]", KeyedMap)


def walk(over: Evaluate, first: int, second: int | None) -> _Walk:
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


def quantify(walk: _Walk, predicate: Evaluate, *, stop: bool) -> Evaluate:
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


def exactly_one(walk: _Walk, predicate: Evaluate) -> Evaluate:
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


def collect(walk: _Walk, predicate: Evaluate | None, body: Evaluate) -> Evaluate:
    """Evaluate `map`, `filter` and `transformList`."""

    def add(frame: Frame, found: list[Value]) -> None:
        found.append(body(frame))

    return _fold(walk, predicate, list, add)


def transform_map(walk: _Walk, predicate: Evaluate | None, body: Evaluate, key: int) -> Evaluate:
    """Evaluate `transformMap`."""

    def add(frame: Frame, found: KeyedMap) -> None:
        insert(found, frame[key], body(frame))

    return _map_of(_fold(walk, predicate, lambda: KeyedMap(()), add))


def transform_entries(
    walk: _Walk, predicate: Evaluate | None, body: Evaluate, insert_all: Callable[..., Value]
) -> Evaluate:
    """Evaluate `transformMapEntry`."""

    def add(frame: Frame, found: KeyedMap) -> None:
        insert_all(found, body(frame))

    return _map_of(_fold(walk, predicate, lambda: KeyedMap(()), add))


def no_entries(_frame: Frame) -> Value:
    """Return a new map that entries can be inserted into."""
    return KeyedMap(())


def spelled(
    walk: _Walk, accumulator: tuple[int, Evaluate], condition: Evaluate, step: Evaluate, result: Evaluate
) -> Evaluate:
    """Evaluate a fold as it is spelled out; an error becomes what is gathered, and is raised when that is read."""
    slot, start = accumulator

    def evaluate(frame: Frame) -> Value:
        frame[slot] = start(frame)
        for _ in walk(frame):
            if _attempt(condition, frame) is False:
                break
            frame[slot] = _attempt(step, frame)
        return result(frame)

    return _map_of(evaluate)


def _attempt(evaluate: Evaluate, frame: Frame) -> Value | EvaluationError:
    try:
        return evaluate(frame)
    except EvaluationStopped:
        raise
    except EvaluationError as error:
        return error


def _map_of(fold: Evaluate) -> Evaluate:
    """Evaluate to a plain map where all keys are strings."""

    def evaluate(frame: Frame) -> Value:
        found = fold(frame)
        return found.simplest() if type(found) is KeyedMap else found

    return evaluate


def _fold(
    walk: _Walk, predicate: Evaluate | None, empty: Callable[[], _Found], add: Callable[[Frame, _Found], None]
) -> Evaluate:
    """Evaluate a loop that gathers. It goes on after an error: one of a body stays, one of a later predicate replaces it."""

    def evaluate(frame: Frame) -> Value:
        found = empty()
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
        return found

    return evaluate
