"""Closures that read: variables, and chains of fields, indexes and optional steps from them.

Rules: `docs/semantics/cel-evaluation.md#selection`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.analysis.go_values import explain_refused_key
from scanner.cel.errors import EvaluationError
from scanner.cel.evaluation.frame import MISSING
from scanner.cel.values import access
from scanner.cel.values.values import NONE, Optional, Value

if TYPE_CHECKING:
    from scanner.cel.evaluation.frame import Evaluate, Frame

Rewrap: TypeAlias = "Callable[[Value], Value]"

Step: TypeAlias = "tuple[Evaluate | None, Value, bool]"
"""One selection: a computed key or a constant one, and whether it is optional."""


def keep_value(value: Value) -> Value:
    """Return a value untouched, as upstream does from 1.37 on."""
    return value


def variable(slot: int, rewrap: Rewrap) -> Evaluate:
    """Return a closure that reads a variable of a macro."""

    def evaluate(frame: Frame) -> Value:
        value = frame[slot]
        if isinstance(value, EvaluationError):
            raise value
        return rewrap_optional(value, rewrap) if type(value) is Optional else value

    return evaluate


def read_branch(operand: Evaluate, rewrap: Rewrap) -> Evaluate:
    """Return a closure that reads the value of a branch as upstream reads a selection."""

    def evaluate(frame: Frame) -> Value:
        value = operand(frame)
        return rewrap_optional(value, rewrap) if type(value) is Optional else value

    return evaluate


def rewrap_optional(optional: Optional, rewrap: Rewrap) -> Optional:
    """Return an optional as it is after upstream, until 1.36, has unwrapped it to a Go value and wrapped it again."""
    return Optional(rewrap(optional.value)) if optional.present else optional


def check_key(evaluate: Evaluate) -> Evaluate:
    """Return the closure of a key or an index; the error of an invalid value names its Go type."""

    def native(frame: Frame) -> Value:
        value = evaluate(frame)
        if refusal := explain_refused_key(value):
            raise EvaluationError(refusal)
        return value

    return native


def root(slot: int, name: str) -> Evaluate:
    """Return a closure that reads a declared variable; an absent one is an error."""

    def evaluate(frame: Frame) -> Value:
        value = frame[slot]
        if value is MISSING:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return evaluate


def follow(base: Evaluate, steps: tuple[Step, ...], rewrap: Rewrap) -> Evaluate:
    """Return the closure of a chain of steps from a base."""
    if all(closure is None and type(key) is str and not optional for closure, key, optional in steps):
        return _follow_fields(base, tuple(str(key) for _, key, _ in steps), rewrap)

    def evaluate(frame: Frame) -> Value:
        return _walk_path(_reach(base(frame), steps, frame, rewrap))

    return evaluate


def _follow_fields(base: Evaluate, fields: tuple[str, ...], rewrap: Rewrap) -> Evaluate:
    """Return the closure of a chain of constant strings only, by far the commonest chain."""
    steps: tuple[Step, ...] = tuple((None, field, False) for field in fields)

    def evaluate(frame: Frame) -> Value:
        value = base(frame)
        if type(value) is Optional:
            return _walk_path(_reach(value, steps, frame, rewrap))
        for field in fields:
            if type(value) is not dict:
                value = access.index(value, field)
                continue
            value = value.get(field, MISSING)
            if value is MISSING:
                raise access.make_no_such_key(field)
        return value

    return evaluate


def _walk_path(reached: _Reached) -> Value:
    """Return the value at the steps; from an optional root or step on, an absent value gives an absent optional."""
    item, is_optional = reached
    if item is None:
        return NONE
    return Optional(item[0]) if is_optional else item[0]


_Reached: TypeAlias = tuple[tuple[Value] | None, bool]


def _reach(value: Value, steps: tuple[Step, ...], frame: Frame, rewrap: Rewrap) -> _Reached:
    """Return the value at the path, wrapped, None if absent, and whether the path has an optional step."""
    is_optional = type(value) is Optional
    if type(value) is Optional:
        if not value.present:
            return None, True
        value = rewrap(value.value)
    for closure, key, optional in steps:
        at = key if closure is None else closure(frame)
        is_optional = is_optional or optional
        if not is_optional:
            value = access.index(value, at)
            continue
        item = access.probe(value, at)
        if item is None:
            return None, True
        value = item[0]
    return (value,), is_optional


def has(base: Evaluate, steps: tuple[Step, ...], field: str, rewrap: Rewrap, *, keep: bool = False) -> Evaluate:
    """Return the closure of a presence test.

    `keep`: in a branch, upstream does not convert the value at an optional path to a bool.
    """

    def evaluate(frame: Frame) -> Value:
        reached, is_optional = _reach(base(frame), steps, frame, rewrap)
        if keep and is_optional:
            item = None if reached is None else access.probe(reached[0], field)
            return NONE if item is None else Optional(item[0])
        return reached is not None and access.has(reached[0], field)

    return evaluate
