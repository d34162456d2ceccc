"""The panics of upstream's cost tracker on wrong arguments (`ext/lists.go` of cel-go, `track…`).

The trackers of the list functions run on every call, failed ones too, and assert that an argument is a list or an int.
Go panics where it is of another type, an error for instance, and the recovered panic is the outcome of the evaluation.
A tracker is found by overload (`Overload.tracker`), so only calls that the checker has resolved to a single one are tracked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.values.runtime import go_type
from scanner.cel.values.values import Duration, Timestamp, UInt, Value

if TYPE_CHECKING:
    from scanner.cel.checking.checker import ResolvedCall
    from scanner.cel.functions.declaration import Tracker

Tracked: TypeAlias = "Value | EvaluationError"
"""An argument as the tracker sees it: an error is a value like any other."""

_CAN_ADD = frozenset({int, UInt, float, str, bytes, Timestamp, Duration})


def find_tracker(call: ResolvedCall) -> Tracker | None:
    """Return the tracker that can end a call in a panic; None for any other call."""
    overload = call.function.find_overload(call.overload_ids)
    return None if overload is None else overload.tracker


def watch_calls(tracker: Tracker, run: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function whose successful calls are tracked: it raises `EvaluationStopped` where the tracker panics."""

    def call(*arguments: Value) -> Value:
        outcome = run(*arguments)
        track(tracker, arguments)
        return outcome

    return call


def track(tracker: Tracker, arguments: tuple[Tracked, ...]) -> None:
    """Raise `EvaluationStopped` where upstream's tracker panics."""
    argument = arguments[tracker.argument]
    if type(argument) is not tracker.type:
        raise EvaluationStopped(f"internal error: interface conversion: {_find_refusal(argument, tracker)}")


def _find_refusal(argument: Tracked, tracker: Tracker) -> str:
    if tracker.type is int:
        return f"ref.Val is {_name_go_type(argument)}, not types.Int"
    missing = "Contains" if type(argument) in _CAN_ADD else "Add"
    return f"{_name_go_type(argument)} is not traits.Lister: missing method {missing}"


def _name_go_type(argument: Tracked) -> str:
    return "*types.Err" if isinstance(argument, EvaluationError) else go_type(argument)
