"""Explanations without notes: the reasons of an expression that only compares values at fixed places of documents.

Its reasons are the values themselves: they are read from the documents, and the expression is evaluated as
always. `reasons.explain` explains every other expression, and every evaluation with an error or a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.errors import EvaluationError
from scanner.cel.explanation.explained import DecidingPart, Explanation
from scanner.cel.explanation.places import VARIABLES
from scanner.cel.syntax.tree import Call, Identifier, Node, Select
from scanner.cel.syntax.unparse import unparse

if TYPE_CHECKING:
    from scanner.cel.analysis.analysis import Analysis
    from scanner.cel.explanation.places import Place
    from scanner.cel.program import Program

_COMPARISONS = frozenset(
    {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "startsWith", "endsWith", "contains", "matches"}
)
_MOST_PARTS = 20
_READABLE = frozenset({dict, list, str, int, float, bool, type(None)})
_ABSENT = object()
_Form: TypeAlias = Literal["value", "presence", "size"]


class _DirectPart(NamedTuple):
    """A part of an expression whose value is a reason: the value at a place, its presence, or its size.

    `steps` lead from the document `root` to the place, or for its presence to the map around it; `itself` has the place alone.
    """

    text: str
    place: Place
    form: _Form
    root: str
    steps: Place
    itself: frozenset[Place]


class DirectParts(NamedTuple):
    """The parts of an expression whose values are its reasons, and the names of the documents that they are in.

    Those of two expressions with equal parts are one instance.
    """

    parts: tuple[_DirectPart, ...]
    roots: frozenset[str]


def explain_directly(program: Program, activation: Mapping[str, object]) -> Explanation | None:
    """Return the explanation of an expression; None if only notes can explain it.

    `activation` needs only the variables that the expression reads.
    """
    direct = find_direct_parts(program)
    reasons = None if direct is None else read_direct_parts(direct, activation)
    if reasons is None:
        return None
    try:
        return Explanation(program.evaluate(activation), reasons)
    except EvaluationError:
        return None


def find_direct_parts(program: Program) -> DirectParts | None:
    """Return the parts of an expression whose values are its reasons; None if only notes can explain it."""
    return _find_parts(program.analysis)


def read_direct_parts(direct: DirectParts, activation: Mapping[str, object]) -> tuple[DecidingPart, ...] | None:
    """Return the values of the parts of an expression; None where one of them is missing."""
    reasons: list[DecidingPart] = []
    for part in direct.parts:
        reason = _read_part(part, activation)
        if reason is None:
            return None
        reasons.append(reason)
    return tuple(reasons)


def _read_part(part: _DirectPart, activation: Mapping[str, object]) -> DecidingPart | None:
    value: Any = activation.get(part.root, _ABSENT)
    for step in part.steps:
        if (type(value) is dict and type(step) is str and step in value) or (
            type(value) is list and type(step) is int and 0 <= step < len(value)
        ):
            value = value[step]  # type: ignore[index] # a key of this dict, or an index of this list
        else:
            return None
    return _read_value(part, value)


def _read_value(part: _DirectPart, value: Any) -> DecidingPart | None:
    text, place, form, _, _, itself = part
    kind = type(value)
    if form == "value":
        return DecidingPart(text, value, place, "", itself) if kind in _READABLE else None
    if form == "presence":
        return DecidingPart(text, place[-1] in value, place) if kind is dict else None
    if kind is str:
        return DecidingPart(text, len(value), place, "", itself)
    return DecidingPart(text, len(value), place) if kind is dict or kind is list else None


@lru_cache(maxsize=4096)
def _find_parts(analysis: Analysis) -> DirectParts | None:
    """The parts whose values are reasons, in the order of evaluation; None for an expression with other operations."""
    try:
        parts = tuple(dict.fromkeys(_PartFinder(analysis).list_parts(analysis.root)))
    except _OtherOperation:
        return None
    return _make_direct_parts(parts) if 0 < len(parts) <= _MOST_PARTS else None


@lru_cache(maxsize=4096)
def _make_direct_parts(parts: tuple[_DirectPart, ...]) -> DirectParts:
    return DirectParts(parts, frozenset(part.root for part in parts))


def _make_part(node: Node, place: Place, form: _Form) -> _DirectPart:
    root, *steps = place[:-1] if form == "presence" else place
    return _DirectPart(unparse(node), place, form, str(root), tuple(steps), frozenset({place}))


class _OtherOperation(Exception):
    """An expression has an operation whose reasons depend on the evaluation."""


class _PartFinder:
    """The parts of one expression."""

    def __init__(self, analysis: Analysis) -> None:
        self._checked = analysis.checked
        self._constants = analysis.folded.constants

    def list_parts(self, node: Node) -> Iterator[_DirectPart]:
        """Yield the parts of a node. Raises _OtherOperation."""
        if node.id in self._constants:
            return
        match node:
            case Call(function="size"):
                place = self._find_place(self._list_operands(node)[0])
                yield _make_part(node, place, "size")
            case Call(function=function) if function in _COMPARISONS or function == "!_":
                for operand in self._list_operands(node):
                    yield from self.list_parts(operand)
            case Select(test=True, operand=operand, field=field) if node.id not in self._checked.names:
                yield _make_part(node, (*self._find_place(operand), field), "presence")
            case _:
                yield _make_part(node, self._find_place(node), "value")

    def _list_operands(self, node: Call) -> tuple[Node, ...]:
        return node.arguments if node.target is None else (node.target, *node.arguments)

    def _find_place(self, node: Node) -> Place:
        """The place of a chain of fields and constant keys. Raises _OtherOperation for any other node."""
        match node:
            case Identifier() if self._checked.names.get(node.id, VARIABLES) != VARIABLES:
                return (self._checked.names[node.id],)
            case Select(operand=operand, field=field) if is_selection(node, self._checked):
                return (*self._find_place(operand), field)
            case Call(function="_[_]", arguments=(operand, key)) if key.id in self._constants:
                step = self._constants[key.id]
                if type(step) in (str, int):
                    return (*self._find_place(operand), step)  # type: ignore[arg-type] # one of these types
        raise _OtherOperation
