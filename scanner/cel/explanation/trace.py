"""Notes of one evaluation: what each part of an expression came to, as a tree.

The closures of the exact evaluator are planned once more, each inside another that notes. Nobody pays for that until somebody
asks, and then once for each expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation import exact
from scanner.cel.evaluation.frame import MISSING
from scanner.cel.stack import with_room
from scanner.cel.syntax.tree import Literal, Node

if TYPE_CHECKING:
    from scanner.cel.analysis.analysis import Analysis
    from scanner.cel.evaluation.frame import Evaluate, Frame
    from scanner.cel.values.values import Value

MOST_NOTES = 20_000
_MOST_STEPS = 1_000_000
"""Evaluations of parts, noted or not, after which nobody waits for an explanation any longer."""


@dataclass(slots=True, eq=False)
class Note:
    """What a part came to, once; a loop evaluates its parts many times. `complete`: so were all notes of what it did."""

    node: Node
    outcome: Value | EvaluationError = None
    parts: list[Note] = field(default_factory=list)
    complete: bool = True


class TookTooLong(EvaluationStopped):
    """The evaluation has more steps than an explanation is worth."""

    def __init__(self) -> None:
        super().__init__("too long to explain")


class _Recorder:
    """Notes as a tree: the parts of a note are what was evaluated for it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        self._open = [Note(Literal(0, 0, None))]
        self._notes = self._steps = 0

    @property
    def first(self) -> Note | None:
        """The note of the whole expression."""
        return next(iter(self._open[0].parts), None)

    def around(self, node: Node, evaluate: Evaluate) -> Evaluate:
        """Note what a node comes to."""

        def noting(frame: Frame) -> Value:
            if self._notes >= MOST_NOTES:
                return self._unnoted(evaluate, frame)
            self._notes += 1
            note = Note(node)
            self._open[-1].parts.append(note)
            self._open.append(note)
            try:
                note.outcome = evaluate(frame)
            except EvaluationError as error:
                note.outcome = error
                raise
            finally:
                self._open.pop()
            return note.outcome

        return noting

    def _unnoted(self, evaluate: Evaluate, frame: Frame) -> Value:
        """Evaluate only; what is open now will not be complete."""
        if not self._steps:
            for note in self._open:
                note.complete = False
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TookTooLong
        return evaluate(frame)


class Noting:
    """The closures of an expression that note. `chains` is for those who read notes: the paths of an expression, by node."""

    __slots__ = ("_planned", "_recorder", "analysis", "chains")

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.chains: dict[int, tuple[Node, list[Node | str]]] = {}
        self._recorder = _Recorder()
        around = self._recorder.around
        self._planned = with_room(
            lambda: exact.plan(analysis.root, analysis.checked, analysis.folded, analysis.environment, around)
        )

    def take(self, activation: Mapping[str, object]) -> Note:
        """Evaluate, and return the note of the whole expression."""
        planned, recorder = self._planned, self._recorder
        roots = [activation.get(name, MISSING) for name in planned.roots]

        def evaluate() -> None:
            recorder.begin()
            with suppress(EvaluationError):
                planned.evaluate([*roots, *[None] * (planned.size - len(roots))])

        with_room(evaluate)
        first = recorder.first or Note(self.analysis.root, TookTooLong(), complete=False)
        recorder.begin()
        return first


@lru_cache(maxsize=4096)
def noting(analysis: Analysis) -> Noting:
    """Return the closures of an expression that note; they are planned once, when an explanation first needs them."""
    return Noting(analysis)
