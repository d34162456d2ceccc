"""The interface of an engine in a comparison: it receives documents, and evaluates expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from scanner import cel
from scanner.admission.compiled import Expression
from scanner.cel import EvaluationError

Kind = Literal["value", "error", "refused", "crash", "silent", "unsayable"]


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """The result of an expression. `value` is tagged, see `opinion.engine`.

    `refused`: the engine did not compile the expression; `crash`: it ended in an exception that is no CEL error; `silent`: it
    returned no answer, or none in time; `unsayable`: a value in the expression has a type that only Kubernetes has.
    """

    kind: Kind
    text: str = ""
    value: tuple[object, ...] = ()


class Engine(Protocol):
    """An engine that evaluates CEL."""

    def show(self, activation: Mapping[str, object], variables: frozenset[str]) -> None:
        """Set the values for the next expressions, and the policy variables that they will read."""
        ...

    def ask(self, expression: Expression) -> EngineAnswer:
        """The answer for an expression that compiles; every failure of the engine is an answer. Raises nothing."""
        ...


class AssayEngine:
    """Assay's engine, which decides the verdicts."""

    def __init__(self) -> None:
        """Begin without values."""
        self._activation: Mapping[str, object] = {}

    def show(self, activation: Mapping[str, object], variables: frozenset[str]) -> None:
        """See Engine."""
        del variables
        self._activation = activation

    def ask(self, expression: Expression) -> EngineAnswer:
        """See Engine. An expression above a server's cost limit ends in an error."""
        if expression.program is None:
            return EngineAnswer("refused", expression.fault)
        outcome = expression.program.measure(self._activation).outcome
        if isinstance(outcome, EvaluationError):
            return EngineAnswer("error", str(outcome))
        try:
            kind, value = tag_value(outcome)
        except Inexpressible as inexpressible:
            return EngineAnswer("unsayable", str(inexpressible))
        return EngineAnswer("value", value=(kind, value))


# CEL values for another process and back: JSON that keeps the types apart.

Tagged: TypeAlias = "list[object]"
"""The name of a type, and the parts of the value."""


class Inexpressible(Exception):
    """A value of a type that only Kubernetes has; the message is the type's name."""


def tag_value(value: cel.Value) -> Tagged:
    """A value as a list of its type's name and its JSON, such as `["int", "1"]`. Raises Inexpressible."""
    match value:
        case list():
            return ["list", [tag_value(item) for item in value]]
        case dict() | cel.KeyedMap():
            return ["map", [[tag_value(key), tag_value(item)] for key, item in value.items()]]
        case cel.Timestamp() | cel.Duration():
            return ["timestamp" if isinstance(value, cel.Timestamp) else "duration", str(value.nanoseconds)]
        case _:
            return _tag_scalar(value)


def _tag_scalar(value: cel.Value) -> Tagged:
    match value:
        case None:
            return ["null", None]
        case bool():
            return ["bool", value]
        case cel.UInt():
            return ["uint", str(int(value))]
        case int():
            return ["int", str(value)]
        case float():
            return ["double", repr(value)]
        case str():
            return ["string", value]
        case bytes():
            return ["bytes", value.hex()]
        case cel.Type():
            return ["type", value.name]
        case _:
            raise Inexpressible(cel.type_name(value))


def is_same_value(left: Tagged, right: Tagged) -> bool:
    """Return whether two values are equal, types included; the order of a map's entries does not count."""
    if left[0] != right[0]:
        return False
    if left[0] == "double":
        return _are_same_doubles(float(str(left[1])), float(str(right[1])))
    if left[0] == "list":
        return _are_same_lists(left[1], right[1])
    if left[0] == "map":
        return _are_same_lists(_sort_entries(left[1]), _sort_entries(right[1]))
    return left[1] == right[1]


def _are_same_doubles(left: float, right: float) -> bool:
    return left == right or (math.isnan(left) and math.isnan(right))


def _are_same_lists(left: object, right: object) -> bool:
    if not isinstance(left, list) or not isinstance(right, list) or len(left) != len(right):
        return False
    return all(is_same_value(*pair) for pair in zip(left, right, strict=True))


def _sort_entries(entries: object) -> object:
    if not isinstance(entries, list):
        return entries
    return [["list", pair] for pair in sorted(entries, key=lambda pair: repr(pair[0]))]
