"""Why an expression came to what it did: the values that decided it, and where in the object each of them is.

The expression is evaluated once more by the closures, with every node noting its outcome. What decided follows from the
operators: of a conjunction that is false the operand that is false, of `all` the element that failed, of a comparison what was
compared. Nobody pays for this until somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scanner.cel import exact
from scanner.cel.depth import with_room
from scanner.cel.errors import EvaluationError
from scanner.cel.exact import MISSING, is_selection
from scanner.cel.tree import Call, Comprehension, Identifier, Literal, Node, Select
from scanner.cel.unparse import unparse

if TYPE_CHECKING:
    from scanner.cel.exact import Evaluate, Frame
    from scanner.cel.program import Analysis
    from scanner.cel.values import Value

MOST_REASONS = 20
_MOST_NOTES = 20_000
_MOST_ELEMENTS = 3
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ROOT = {"object": ""}


@dataclass(frozen=True, slots=True)
class Reason:
    """A part of an expression, what it came to, and the path of that in the object (`spec.containers[2].image`).

    The path of what is in another document begins with its name (`params.data.limit`); it is empty for what was computed.
    """

    text: str
    outcome: Value | EvaluationError
    path: str = ""


@dataclass(slots=True)
class _Note:
    """What a node came to, once; a loop evaluates its parts many times."""

    node: Node
    outcome: Value | EvaluationError = None
    parts: list[_Note] = field(default_factory=list)


def reasons(
    analysis: Analysis, activation: Mapping[str, object], sources: Mapping[str, str] | None = None
) -> tuple[Reason, ...]:
    """Return what decided, at most `MOST_REASONS`, in order of evaluation; `sources` are paths of the policy's variables."""
    notes = _Notes()
    planned = exact.plan(analysis.root, analysis.checked, analysis.folded, analysis.environment, notes.around)
    frame: Frame = [activation.get(name, MISSING) for name in planned.roots]
    frame += [None] * (planned.size - len(planned.roots))
    with suppress(EvaluationError):
        with_room(lambda: planned.evaluate(frame))
    found = _Reader(analysis, dict(sources or {})).why(notes.first)
    unique = dict.fromkeys((reason.text, reason.path) for reason in found)
    known = {(reason.text, reason.path): reason for reason in found}
    return tuple(known[key] for key in unique)[:MOST_REASONS]


class _Notes:
    """Notes as a tree: the parts of a node are what was evaluated for it."""

    def __init__(self) -> None:
        self._open = [_Note(Literal(0, 0, None))]
        self._number = 0

    @property
    def first(self) -> _Note:
        """The note of the whole expression."""
        return self._open[0].parts[0]

    def around(self, node: Node, evaluate: Evaluate) -> Evaluate:
        """Note what a node comes to."""

        def noting(frame: Frame) -> Value:
            if self._number >= _MOST_NOTES:
                return evaluate(frame)
            self._number += 1
            note = _Note(node)
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


class _Reader:
    """Follows the notes from the whole expression to what decided it."""

    def __init__(self, analysis: Analysis, sources: dict[str, str]) -> None:
        self._checked = analysis.checked
        self._folded = analysis.folded
        self._sources = sources
        self._scope: dict[str, str] = {}

    def why(self, note: _Note) -> list[Reason]:
        """Return what decided a note."""
        node = note.node
        if node.id in self._folded.constants:
            return []
        match node:
            case Call(function="_&&_" | "_||_" | "!_"):
                return [reason for part in _deciding(note) for reason in self.why(part)]
            case Call(function="_?_:_"):
                return [reason for part in note.parts for reason in self.why(part)]
            case Comprehension(fold="all" | "exists") if note.parts:
                return self._elements(node, note)
            case _:
                return self._compared(note)

    def _elements(self, node: Comprehension, note: _Note) -> list[Reason]:
        """Return why the elements that decided a quantifier did so; of an empty range, the range."""
        over, *rounds = note.parts
        if not rounds:
            return self._read(over)
        decided = [(at, part) for at, part in enumerate(rounds) if part.outcome is note.outcome] or [
            (at, part) for at, part in enumerate(rounds) if isinstance(part.outcome, EvaluationError)
        ]
        found: list[Reason] = []
        for at, part in decided[:_MOST_ELEMENTS]:
            with_element = self._scope
            self._scope = {**with_element, **self._variables(node, over, at)}
            found += self.why(part)
            self._scope = with_element
        return found

    def _variables(self, node: Comprehension, over: _Note, at: int) -> dict[str, str]:
        """Return where the variables of one round of a loop come from."""
        place = self._path(over.node, over)
        if not place:
            return {}
        if isinstance(over.outcome, list):
            element = f"{place}[{at}]"
        elif isinstance(over.outcome, dict):
            element = _below(place, list(over.outcome)[at])
        else:
            return {}
        return {node.variable if node.second_variable is None else node.second_variable: element}

    def _compared(self, note: _Note) -> list[Reason]:
        """Return what an operation looked at; what failed is the last of its parts that did."""
        node = note.node
        if isinstance(note.outcome, EvaluationError):
            failed = next((part for part in note.parts if isinstance(part.outcome, EvaluationError)), None)
            if failed is not None:
                return self.why(failed)
            looked_at = [] if is_selection(node, self._checked) else self._operands(note)
            return [*looked_at, Reason(unparse(node), note.outcome, self._path(node, note))]
        if not isinstance(node, Call) or is_selection(node, self._checked):
            return self._read(note)
        return self._operands(note)

    def _operands(self, note: _Note) -> list[Reason]:
        found: list[Reason] = []
        for part in note.parts:
            if isinstance(part.node, Call) and not is_selection(part.node, self._checked):
                found += self._operands(part)
            else:
                found += self._read(part)
        return found

    def _read(self, note: _Note) -> list[Reason]:
        """Return the value of a part, unless it stands in the expression itself."""
        node = note.node
        if isinstance(node, Literal) or node.id in self._folded.constants:
            return []
        return [Reason(unparse(node), note.outcome, self._path(node, note))]

    def _path(self, node: Node, note: _Note) -> str:
        """Return where in a document a selection points; nothing for what is not read from one as it stands."""
        keys = iter([part.outcome for part in note.parts if part.node is not node][1:])
        return self._place(node, keys) or ""

    def _place(self, node: Node, keys: Iterator[Value | EvaluationError]) -> str | None:
        if node.id in self._checked.names:
            return self._root(node)
        match node:
            case Select(operand=Identifier(id=id_), field=name) if self._checked.names.get(id_) == "variables":
                return self._sources.get(name)
            case Select(operand=operand, field=name):
                return _joined(self._place(operand, keys), name)
            case Call(function="_[_]" | "_[?_]" | "_?._", arguments=(operand, key)):
                place = self._place(operand, keys)
                return _joined(place, self._folded.constants.get(key.id, next(keys, None)))
            case _:
                return None

    def _root(self, node: Node) -> str | None:
        name = self._checked.names[node.id]
        if isinstance(node, Identifier) and name in self._scope:
            return self._scope[name]
        return None if name in ("variables", "authorizer") else _ROOT.get(name, name)


def _deciding(note: _Note) -> list[_Note]:
    """Return the operands that decided a logical operation."""
    if isinstance(note.node, Call) and note.node.function == "!_":
        return note.parts
    if isinstance(note.outcome, EvaluationError):
        return [part for part in note.parts if isinstance(part.outcome, EvaluationError)]
    return [part for part in note.parts if part.outcome is note.outcome]


def _joined(place: str | None, key: Value | EvaluationError) -> str | None:
    if place is None or isinstance(key, bool):
        return None
    if isinstance(key, int):
        return f"{place}[{key}]"
    return _below(place, key) if isinstance(key, str) else None


def _below(place: str, key: str) -> str:
    if _PLAIN.fullmatch(key) is None:
        escaped = key.replace("\\", "\\\\").replace("'", "\\'")
        return f"{place}['{escaped}']"
    return f"{place}.{key}" if place else key
