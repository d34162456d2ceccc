"""The reasons for an expression's value: the values that decided it, and their places in the object.

The expression is evaluated once more by closures that note the value of each part. The operators determine the deciding parts: of
a false conjunction the false operand, of `all` the element that failed, of a comparison its operands, of a policy variable the
parts that decided its value. This costs nothing until a caller requests an explanation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError
from scanner.cel.explanation.direct import explain_directly
from scanner.cel.explanation.explained import DecidingPart, Explanation
from scanner.cel.explanation.places import Origin, Place, Scope
from scanner.cel.explanation.provenance import Origins, Tracer
from scanner.cel.explanation.trace import plan_notes
from scanner.cel.syntax.tree import Call, Comprehension, Literal
from scanner.cel.values.values import Opaque

if TYPE_CHECKING:
    from scanner.cel.explanation.trace import Note
    from scanner.cel.program import Program

MOST_REASONS = 20
_MOST_ELEMENTS = 3
_LOGIC = frozenset({"_&&_", "_||_", "!_"})


def explain(
    program: Program, activation: Mapping[str, object], variables: Mapping[str, Program] = MappingProxyType({})
) -> Explanation:
    """Return the values that decided an evaluation, at most `MOST_REASONS`; an error of the evaluation is its outcome.

    `activation` has the documents by name, `variables` the programs of the policy's variables.
    """
    return explain_directly(program, activation) or explain_by_notes(program, activation, variables)


def explain_by_notes(
    program: Program, activation: Mapping[str, object], variables: Mapping[str, Program] = MappingProxyType({})
) -> Explanation:
    """Return what `explain` does, from the notes of one more evaluation: for every expression, and slower."""
    origins = Tracer(activation, variables).trace_origins(plan_notes(program.analysis), program)
    reader = _NoteReader(origins)
    reasons: dict[tuple[str, Place, str], DecidingPart] = {}
    for reason in reader.explain(origins.first, {}):
        reasons.setdefault((reason.text, reason.place, reason.variable), reason)
    shown = tuple(islice(reasons.values(), MOST_REASONS))
    return Explanation(origins.first.outcome, shown, len(reasons) - len(shown) + reader.left_out[0])


class _NoteReader:
    """A reader of the notes of one evaluation, from the whole expression to the parts that decided it."""

    def __init__(
        self,
        origins: Origins,
        variable: str = "",
        explained_variables: set[str] | None = None,
        left_out: list[int] | None = None,
    ) -> None:
        self._origins = origins
        self._variable = variable
        self._explained_variables = set() if explained_variables is None else explained_variables
        self.left_out = [0] if left_out is None else left_out
        """The number of elements without reasons, in a list that the readers of all variables share."""

    def explain(self, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        """Yield the parts that decided a note."""
        node = note.node
        if node.id in self._origins.constants:
            return
        match node:
            case Call(function="_&&_" | "_||_" | "!_"):
                for part in _list_deciding(note):
                    yield from self.explain(part, scope)
            case Call(function="_?_:_"):
                for part in note.parts:
                    yield from self.explain(part, scope)
            case Comprehension(fold="bind", accumulator=name) if note.parts:
                yield from self.explain(note.parts[-1], {**scope, name: self._origins.of(note.parts[0], scope)})
            case Comprehension(fold="all" | "exists" | "exists_one") if note.parts:
                yield from self._explain_elements(node, note, scope)
            case _:
                yield from self._explain_operands(note, scope)

    # --- loops

    def _explain_elements(self, node: Comprehension, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        """Yield the reasons for the elements that decided a quantifier; of an empty range, the range."""
        rounds = self._list_rounds(node, note)
        decided = [(at, part) for at, part in rounds if _is_decisive(node, note, part)]
        decided = decided or [(at, part) for at, part in rounds if isinstance(part.outcome, EvaluationError)]
        if not decided:
            decided = rounds if node.fold == "exists_one" else []
        if not decided:
            yield from self._explain_read(note.parts[0], scope)
        yield from self._explain_first(decided, node, note, scope)

    def _list_rounds(self, node: Comprehension, note: Note) -> list[tuple[int, Note]]:
        """Return the number of each round, and the note of its body."""
        return [(at, parts[0]) for at, parts in enumerate(self._origins.list_rounds(node, note))]

    def _explain_first(
        self, rounds: list[tuple[int, Note]], node: Comprehension, note: Note, scope: Scope
    ) -> Iterator[DecidingPart]:
        """Yield the reasons for the results of the first few rounds."""
        self.left_out[0] += max(0, len(rounds) - _MOST_ELEMENTS)
        for at, part in rounds[:_MOST_ELEMENTS]:
            yield from self.explain(part, self._origins.enter_round(node, note, at, scope))

    def _explain_kept(self, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        """Yield the reasons that elements are in a filtered list, or that none is; mapped or not."""
        node = note.node
        while isinstance(node, Comprehension) and node.fold == "map" and node.predicate is None and note.parts:
            note, node = note.parts[0], note.parts[0].node
        if not isinstance(node, Comprehension) or node.predicate is None or not note.parts:
            return
        rounds = self._list_rounds(node, note)
        kept_rounds = [(at, part) for at, part in rounds if part.outcome is True]
        yield from self._explain_first(kept_rounds or rounds, node, note, scope)

    # --- operations

    def _explain_operands(self, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        """Yield the operands of an operation; of a failed operation, the first part that failed."""
        node = note.node
        if isinstance(note.outcome, EvaluationError):
            failed = next((part for part in note.parts if isinstance(part.outcome, EvaluationError)), None)
            if failed is not None:
                yield from self.explain(failed, self._get_scope(failed, note, scope))
                return
            if not self._origins.is_path(node):
                yield from self._list_operands(note, scope)
            yield from self._explain_read(note, scope)
            return
        yield from self._list_operand_values(note, scope)

    def _get_scope(self, part: Note, note: Note, scope: Scope) -> Scope:
        """Return the scope of a part: within a loop it has that of its round."""
        node = note.node
        if not isinstance(node, Comprehension) or node.fold == "bind" or part is note.parts[0]:
            return scope
        at = next(at for at, parts in enumerate(self._origins.list_rounds(node, note)) if part in parts)
        return self._origins.enter_round(node, note, at, scope)

    def _list_operand_values(self, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        """Yield the value of a part, or for an operation those of its operands."""
        node = note.node
        match node:
            case Comprehension(fold="all" | "exists" | "exists_one" | "bind"):
                yield from self.explain(note, scope)
            case Call(function=function) if function in _LOGIC:
                yield from self.explain(note, scope)
            case Comprehension(fold="filter" | "map") if note.parts:
                yield from self._explain_read(note, scope)
                yield from self._explain_kept(note, scope)
            case Call(function="size") if note.parts:
                yield from self._explain_size(note, scope)
            case Call() if not self._origins.is_path(node) and not _asks_authorizer(note):
                yield from self._list_operands(note, scope)
            case _:
                yield from self._explain_read(note, scope)

    def _list_operands(self, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        for part in note.parts:
            yield from self._list_operand_values(part, scope)

    def _explain_size(self, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        """Yield the number of elements, and of a filtered list the reasons for them."""
        over = note.parts[0]
        yield self._make_part(note, Origin(self._origins.of(over, scope).place, self._origins.reads(note, scope)))
        if isinstance(over.node, Comprehension):
            yield from self._explain_kept(over, scope)
        elif name := self._origins.find_variable(over):
            yield from self._explain_variable(name)

    def _explain_read(self, note: Note, scope: Scope) -> Iterator[DecidingPart]:
        """Yield the value of a part, unless it is a literal of the expression."""
        node = note.node
        if isinstance(node, Literal) or node.id in self._origins.constants:
            return
        origin = self._origins.of(note, scope)
        yield self._make_part(note, Origin(origin.place, self._list_reads(note, scope)))
        name = self._origins.find_variable(note)
        if name and not origin.is_unchanged:
            yield from self._explain_variable(name)

    def _list_reads(self, note: Note, scope: Scope) -> frozenset[Place]:
        """Return the places that may be in an outcome: an error may quote all values that the operation read."""
        if isinstance(note.outcome, EvaluationError) and self._origins.is_path(note.node):
            return self._origins.of(note, scope).reads
        return self._origins.reads(note, scope)

    def _make_part(self, note: Note, origin: Origin) -> DecidingPart:
        return DecidingPart(self._origins.text(note.node), note.outcome, origin.place, self._variable, origin.reads)

    def _explain_variable(self, name: str) -> Iterator[DecidingPart]:
        """Yield the parts that decided a policy variable, once."""
        other = self._origins.tracer.variable(name)
        if other is None or name in self._explained_variables:
            return
        self._explained_variables.add(name)
        reader = _NoteReader(other, name, self._explained_variables, self.left_out)
        yield from reader.explain(other.first, {})


def _is_decisive(node: Comprehension, note: Note, part: Note) -> bool:
    """Return whether a round decided: of `exists_one`, a round that counted."""
    return part.outcome is True if node.fold == "exists_one" else part.outcome is note.outcome


def _asks_authorizer(note: Note) -> bool:
    """Return whether an operation's receiver is an authorizer's value, which is not informative by itself."""
    receiver = note.parts[0].outcome if note.parts else None
    return isinstance(receiver, Opaque) and receiver.TYPE.name.startswith("kubernetes.authorization.")


def _list_deciding(note: Note) -> list[Note]:
    """Return the operands that decided a logical operation."""
    if isinstance(note.node, Call) and note.node.function == "!_":
        return note.parts
    if isinstance(note.outcome, EvaluationError):
        return [part for part in note.parts if isinstance(part.outcome, EvaluationError)]
    return [part for part in note.parts if part.outcome is note.outcome]
