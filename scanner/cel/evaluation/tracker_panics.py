"""What upstream's cost tracker insists on when it looks at a call (`ext/lists.go`, `track…`).

The trackers of the list functions look at every call, failed ones too, and take an argument for a list or for an int without
asking. Go panics where it is something else, an error for instance, and the recovered panic is the outcome of the evaluation.
A tracker is found by overload, so only calls that the checker has resolved to a single one are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.values.runtime import go_type
from scanner.cel.values.values import Duration, Timestamp, UInt, Value

RepeatDetector: TypeAlias = "Value | EvaluationError"
"""An argument as the tracker sees it: an error is a value like any other."""

_ELEMENT_TYPES = (
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "string",
    "uint",
)
_LISTS = {
    "list_distinct": 0,
    **{f"list_{name}_sort": 0 for name in _ELEMENT_TYPES},
    **{f"list_{name}_sortByAssociatedKeys": 1 for name in _ELEMENT_TYPES},
}
"""The argument that has to be a list, by overload."""
_INTS = {"list_flatten_int": 1}
"""The argument that has to be an int."""
_CAN_ADD = frozenset({int, UInt, float, str, bytes, Timestamp, Duration})


def is_tracked(overload_ids: tuple[str, ...]) -> bool:
    """Return whether a call with these candidate overloads can end in a panic of its tracker."""
    return len(overload_ids) == 1 and (overload_ids[0] in _LISTS or overload_ids[0] in _INTS)


def watched(overload_id: str, run: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function with its tracker looking at the calls that succeed."""

    def call(*arguments: Value) -> Value:
        outcome = run(*arguments)
        look_at(overload_id, arguments)
        return outcome

    return call


def look_at(overload_id: str, arguments: tuple[RepeatDetector, ...]) -> None:
    """Raise `EvaluationStopped` where upstream's tracker panics."""
    if overload_id in _LISTS:
        _require_list(arguments[_LISTS[overload_id]])
    else:
        _require_int(arguments[_INTS[overload_id]])


def _require_list(argument: RepeatDetector) -> None:
    if type(argument) is list:
        return
    missing = "Contains" if type(argument) in _CAN_ADD else "Add"
    raise _panic(f"{_go_type(argument)} is not traits.Lister: missing method {missing}")


def _require_int(argument: RepeatDetector) -> None:
    if type(argument) is int:
        return
    raise _panic(f"ref.Val is {_go_type(argument)}, not types.Int")


def _go_type(argument: RepeatDetector) -> str:
    return "*types.Err" if isinstance(argument, EvaluationError) else go_type(argument)


def _panic(conversion: str) -> EvaluationStopped:
    return EvaluationStopped(f"internal error: interface conversion: {conversion}")
