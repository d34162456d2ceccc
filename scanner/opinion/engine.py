"""The interface of an engine in a comparison: it receives documents, and evaluates expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from scanner.admission.compiled import Expression
from scanner.cel import EvaluationError
from scanner.opinion.values import Inexpressible, tagged

Kind = Literal["value", "error", "refused", "crash", "silent", "unsayable"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an expression. `value` is tagged, see `opinion.values`.

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

    def ask(self, expression: Expression) -> Answer:
        """The answer for an expression that compiles; every failure of the engine is an answer. Raises nothing."""
        ...


class Ours:
    """Assay's engine, which decides the verdicts."""

    def __init__(self) -> None:
        """Begin without values."""
        self._activation: Mapping[str, object] = {}

    def show(self, activation: Mapping[str, object], variables: frozenset[str]) -> None:
        """See Engine."""
        del variables
        self._activation = activation

    def ask(self, expression: Expression) -> Answer:
        """See Engine. An expression above a server's cost limit ends in an error."""
        if expression.program is None:
            return Answer("refused", expression.fault)
        outcome = expression.program.measure(self._activation).outcome
        if isinstance(outcome, EvaluationError):
            return Answer("error", str(outcome))
        try:
            kind, value = tagged(outcome)
        except Inexpressible as inexpressible:
            return Answer("unsayable", str(inexpressible))
        return Answer("value", value=(kind, value))
