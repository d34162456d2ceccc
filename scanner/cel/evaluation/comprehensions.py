"""Closures of comprehensions. Of errors, only `all` and `exists` hold one back, because another element may decide.

Rules: `docs/semantics/cel-evaluation.md#logic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation.operators import attempt, decide_in_turn
from scanner.cel.functions.comprehensions import insert
from scanner.cel.values import access
from scanner.cel.values.runtime import make_no_overload
from scanner.cel.values.values import KeyedMap, Value

if TYPE_CHECKING:
    from scanner.cel.evaluation.frame import Evaluate, Frame

_Gathered = TypeVar("_Gathered", "list[Value]", KeyedMap)
_Part = TypeVar("_Part")


class Walk(Protocol):
    """Puts the elements of a range in their slots of the frame."""

    def __call__(self, frame: Frame, part: _Part, /) -> Iterator[_Part]:
        """Yield, for each element, the part that is to be evaluated on it."""
        ...


def walk(over: Evaluate, first: int, second: int | None) -> Walk:
    """Return a walk that puts each element in its slots, in turn; the range is evaluated before the first.

    `first` and `second` are slots of a frame; with two, they get index and element, or key and value.
    """

    def one_by_one(frame: Frame, part: _Part, /) -> Iterator[_Part]:
        elements = access.list_elements(over(frame))
        for frame[first] in elements:
            yield part

    def in_pairs(frame: Frame, part: _Part, /) -> Iterator[_Part]:
        pairs = access.pairs(over(frame))
        for frame[first], frame[position] in pairs:
            yield part

    if second is None:
        return one_by_one
    position = second
    return in_pairs


def quantify(walk: Walk, predicate: Evaluate, *, stop: bool) -> Evaluate:
    """Return the closure of `all` (stop at False) or `exists` (stop at True)."""
    return decide_in_turn(lambda frame: walk(frame, predicate), stop=stop)


def quantify_exactly_one(walk: Walk, predicate: Evaluate) -> Evaluate:
    """Return the closure of `exists_one`: all elements are evaluated, and of several errors the last one counts."""

    def evaluate(frame: Frame) -> Value:
        count = 0
        last_error: EvaluationError | None = None
        for decide in walk(frame, predicate):
            try:
                count += _require_bool(decide(frame))
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                last_error = error
        if last_error is not None:
            raise last_error
        return count == 1

    return evaluate


def _require_bool(value: Value) -> bool:
    if type(value) is bool:
        return value
    raise make_no_overload()


def collect(walk: Walk, predicate: Evaluate | None, body: Evaluate) -> Evaluate:
    """Return the closure of `map`, `filter` and `transformList`."""

    def add(frame: Frame, gathered: list[Value]) -> None:
        gathered.append(body(frame))

    return _fold(walk, predicate, list, add)


def transform_map(walk: Walk, predicate: Evaluate | None, body: Evaluate, key: int) -> Evaluate:
    """Return the closure of `transformMap`; `key` is the slot of the key."""

    def add(frame: Frame, gathered: KeyedMap) -> None:
        insert(gathered, frame[key], body(frame))

    return _simplify_map(_fold(walk, predicate, lambda: KeyedMap(()), add))


def transform_entries(
    walk: Walk, predicate: Evaluate | None, body: Evaluate, insert_all: Callable[..., Value]
) -> Evaluate:
    """Return the closure of `transformMapEntry`; `insert_all` adds the entries of a map to another."""

    def add(frame: Frame, gathered: KeyedMap) -> None:
        insert_all(gathered, body(frame))

    return _simplify_map(_fold(walk, predicate, lambda: KeyedMap(()), add))


def make_no_entries(_frame: Frame) -> Value:
    """Return a new map that entries can be inserted into."""
    return KeyedMap(())


def fold_in_full(
    walk: Walk, accumulator: tuple[int, Evaluate], condition: Evaluate, step: Evaluate, result: Evaluate
) -> Evaluate:
    """Return the closure of a fold in its full form; an error becomes the accumulator, and is raised at its next read.

    `accumulator` is a slot of the frame and the closure of the first value.
    """
    slot, start = accumulator

    def evaluate(frame: Frame) -> Value:
        frame[slot] = start(frame)
        for holds in walk(frame, condition):
            if attempt(holds, frame) is False:
                break
            frame[slot] = attempt(step, frame)
        return result(frame)

    return _simplify_map(evaluate)


def _simplify_map(fold: Evaluate) -> Evaluate:
    """Return the closure of a fold whose map becomes a dict where all keys are strings."""

    def evaluate(frame: Frame) -> Value:
        gathered = fold(frame)
        return gathered.simplify() if type(gathered) is KeyedMap else gathered

    return evaluate


def _fold(
    walk: Walk, predicate: Evaluate | None, empty: Callable[[], _Gathered], add: Callable[[Frame, _Gathered], None]
) -> Evaluate:
    """Return the closure of a loop with an accumulator.

    After an error only predicates are evaluated, and their errors replace it.
    """

    def evaluate(frame: Frame) -> Value:
        gathered = empty()
        failure: EvaluationError | None = None
        for gather in walk(frame, add):
            try:
                if predicate is not None and not _require_bool(predicate(frame)):
                    continue
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                failure = error
                continue
            if failure is not None:
                continue
            try:
                gather(frame, gathered)
            except EvaluationStopped:
                raise
            except EvaluationError as error:
                failure = error
        if failure is not None:
            raise failure
        return gathered

    return evaluate
