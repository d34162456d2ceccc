"""What an engine is to somebody who compares two of them: it is shown documents, and asked expressions."""

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
    """What became of an expression. `value` is tagged, see `opinion.values`.

    `refused`: it was not compiled; `crash`: it ended in an exception that is no error of CEL; `silent`: there was no answer in
    time, or none at all; `unsayable`: a value in it has a type that only Kubernetes knows.
    """

    kind: Kind
    text: str = ""
    value: tuple[object, ...] = ()


class Engine(Protocol):
    """Somebody who evaluates CEL."""

    def show(self, activation: Mapping[str, object], variables: frozenset[str]) -> None:
        """Set what the next expressions see, and which of the policy's variables they will ask for."""
        ...

    def ask(self, expression: Expression) -> Answer:
        """What an expression that compiles comes to. Raises nothing."""
        ...


class Ours:
    """The engine that decides."""

    def __init__(self) -> None:
        """See nothing."""
        self._activation: Mapping[str, object] = {}

    def show(self, activation: Mapping[str, object], variables: frozenset[str]) -> None:
        """See Engine."""
        del variables
        self._activation = activation

    def ask(self, expression: Expression) -> Answer:
        """See Engine. What would cost more than a server allows ends in an error."""
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
