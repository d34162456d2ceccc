"""Notes of one evaluation: the value of each part of an expression, as a tree.

The closures of the exact evaluator are planned once more, each inside another that takes notes. This costs nothing until a caller
requests an explanation, and then once for each expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct, field

from scanner.cel.errors import EvaluationError, EvaluationStopped
from scanner.cel.evaluation import exact
from scanner.cel.evaluation.frame import MISSING
from scanner.cel.stack import run_with_room
from scanner.cel.syntax.tree import Literal, Node

if TYPE_CHECKING:
    from scanner.cel.analysis.analysis import Analysis
    from scanner.cel.evaluation.frame import Evaluate, Frame
    from scanner.cel.values.values import Value

MOST_NOTES = 20_000
_MOST_STEPS = 1_000_000
"""The limit of evaluated parts, noted or not, after which an explanation takes too long."""


class Note(Struct, eq=False):
    """One evaluation of a part; a loop evaluates its parts many times.

    `outcome` is its value or its error, `parts` the evaluations inside it. `complete`: all of them have notes.
    """

    node: Node
    outcome: Value | EvaluationError = None
    parts: list[Note] = field(default_factory=list)
    complete: bool = True


class TookTooLong(EvaluationStopped):
    """The evaluation has more steps than an explanation is worth."""

    def __init__(self) -> None:
        super().__init__("too long to explain")


class _Recorder:
    """A recorder of notes as a tree: the parts of a note are the evaluations inside it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Discard all notes."""
        self._open = [Note(Literal(0, 0, None))]
        self._notes = self._steps = 0

    @property
    def first(self) -> Note | None:
        """The note of the whole expression; None before its evaluation."""
        return next(iter(self._open[0].parts), None)

    def take_notes(self, node: Node, evaluate: Evaluate) -> Evaluate:
        """Return a closure that evaluates a node and notes the value, at most `MOST_NOTES` times in all."""

        def noting(frame: Frame) -> Value:
            if self._notes >= MOST_NOTES:
                return self._evaluate_only(evaluate, frame)
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

    def _evaluate_only(self, evaluate: Evaluate, frame: Frame) -> Value:
        """Evaluate only; the open notes become incomplete."""
        if not self._steps:
            for note in self._open:
                note.complete = False
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TookTooLong
        return evaluate(frame)


class Noting:
    """The closures of an expression that take notes.

    `chains` and `texts` serve readers of notes: the paths and the texts of an expression's parts, by node.
    """

    __slots__ = ("_planned", "_recorder", "analysis", "chains", "texts")

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.chains: dict[int, tuple[Node, list[Node | str]]] = {}
        self.texts: dict[int, str] = {}
        self._recorder = _Recorder()
        around = self._recorder.take_notes
        self._planned = run_with_room(
            lambda: exact.plan(analysis.root, analysis.checked, analysis.folded, analysis.environment, around)
        )

    def take(self, activation: Mapping[str, object]) -> Note:
        """Evaluate, and return the note of the whole expression; an error is the note's outcome.

        An evaluation of more than `_MOST_STEPS` steps ends with `TookTooLong` as its outcome.
        """
        planned, recorder = self._planned, self._recorder
        roots = [activation.get(name, MISSING) for name in planned.roots]

        def evaluate() -> None:
            recorder.begin()
            with suppress(EvaluationError):
                planned.evaluate([*roots, *[None] * (planned.size - len(roots))])

        run_with_room(evaluate)
        first = recorder.first or Note(self.analysis.root, TookTooLong(), complete=False)
        recorder.begin()
        return first


@lru_cache(maxsize=4096)
def plan_notes(analysis: Analysis) -> Noting:
    """Return the closures of an expression that take notes, from a cache: they are planned at the first explanation."""
    return Noting(analysis)
