"""Explanations without notes: the reasons of an expression that only compares values at fixed places of documents.

Its reasons are the values themselves: they are read from the documents, and the expression is evaluated as
always. `reasons.explain` explains every other expression, and every evaluation with an error or a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from scanner.cel.analysis.go_values import is_selection
from scanner.cel.errors import EvaluationError
from scanner.cel.explanation.places import VARIABLES
from scanner.cel.syntax.tree import Call, Identifier, Node, Select
from scanner.cel.syntax.unparse import unparse

if TYPE_CHECKING:
    from scanner.cel.analysis.analysis import Analysis
    from scanner.cel.explanation.places import Place
    from scanner.cel.program import Program
    from scanner.cel.values.values import Value

_COMPARISONS = frozenset(
    {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "startsWith", "endsWith", "contains", "matches"}
)
_MOST_PARTS = 20
_PLAIN = (str, int, float, bool, type(None))
_Form: TypeAlias = Literal["value", "presence", "size"]


class Part(NamedTuple):
    """A part of an expression whose value is a reason: the value at a place, its presence, or its size."""

    text: str
    place: Place
    form: _Form


class DirectReason(NamedTuple):
    """The value of a part, and the places whose content may be in it."""

    part: Part
    outcome: Value
    reads: frozenset[Place]


def direct_reasons(program: Program, activation: Mapping[str, object]) -> tuple[Value, list[DirectReason]] | None:
    """Return the value of an expression and its reasons; None if only notes can explain it."""
    parts = _parts(program.analysis)
    if parts is None:
        return None
    reasons: list[DirectReason] = []
    for part in parts:
        reason = _reason(part, activation)
        if reason is None:
            return None
        reasons.append(reason)
    try:
        return program.evaluate(activation), reasons
    except EvaluationError:
        return None


def _reason(part: Part, activation: Mapping[str, object]) -> DirectReason | None:
    steps = part.place if part.form != "presence" else part.place[:-1]
    value: object = activation
    for step in steps:
        if value is activation:
            value = activation.get(str(step), activation)
        elif (type(value) is dict and type(step) is str and step in value) or (
            type(value) is list and type(step) is int and 0 <= step < len(value)
        ):
            value = cast("Any", value)[step]
        else:
            return None
    return _of_value(part, value)


def _of_value(part: Part, value: object) -> DirectReason | None:
    match part.form, value:
        case "presence", dict():
            return DirectReason(part, part.place[-1] in value, frozenset()) if type(value) is dict else None
        case "size", dict() | list() if type(value) in (dict, list):
            return DirectReason(part, len(value), frozenset())
        case "size", str():
            return DirectReason(part, len(value), frozenset({part.place}))
        case "value", _ if type(value) in (dict, list, *_PLAIN):
            return DirectReason(part, value, frozenset({part.place}))
        case _:
            return None


@lru_cache(maxsize=4096)
def _parts(analysis: Analysis) -> tuple[Part, ...] | None:
    """The parts whose values are reasons, in the order of evaluation; None for an expression with other operations."""
    try:
        parts = tuple(dict.fromkeys(_Outline(analysis).compared(analysis.root)))
    except _OtherOperation:
        return None
    return parts if 0 < len(parts) <= _MOST_PARTS else None


class _OtherOperation(Exception):
    """An expression has an operation whose reasons depend on the evaluation."""


class _Outline:
    """The parts of one expression."""

    def __init__(self, analysis: Analysis) -> None:
        self._checked = analysis.checked
        self._constants = analysis.folded.constants

    def compared(self, node: Node) -> Iterator[Part]:
        """Yield the parts of a node. Raises _OtherOperation."""
        if node.id in self._constants:
            return
        match node:
            case Call(function="size"):
                place = self._place(self._operands(node)[0])
                yield Part(unparse(node), place, "size")
            case Call(function=function) if function in _COMPARISONS or function == "!_":
                for operand in self._operands(node):
                    yield from self.compared(operand)
            case Select(test=True, operand=operand, field=field) if node.id not in self._checked.names:
                yield Part(unparse(node), (*self._place(operand), field), "presence")
            case _:
                yield Part(unparse(node), self._place(node), "value")

    def _operands(self, node: Call) -> tuple[Node, ...]:
        return node.arguments if node.target is None else (node.target, *node.arguments)

    def _place(self, node: Node) -> Place:
        """The place of a chain of fields and constant keys. Raises _OtherOperation for any other node."""
        match node:
            case Identifier() if self._checked.names.get(node.id, VARIABLES) != VARIABLES:
                return (self._checked.names[node.id],)
            case Select(operand=operand, field=field) if is_selection(node, self._checked):
                return (*self._place(operand), field)
            case Call(function="_[_]", arguments=(operand, key)) if key.id in self._constants:
                step = self._constants[key.id]
                if type(step) in (str, int):
                    return (*self._place(operand), step)  # type: ignore[arg-type] # one of these types
        raise _OtherOperation
