"""Values that are computed once, when a program is built: constants, sets for lookups, and compiled patterns.

Mirrors `interpreter/planner.go` and `decorators.go` of cel-go with its optimisations on. Folding is part of the semantics: a
constant that cannot be converted rejects the whole expression (`program instantiation failed: …`), at any place; `x in []` is
false even when `x` is an error; and constants cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from scanner.cel.errors import EvaluationError, InstantiationError
from scanner.cel.functions import regex
from scanner.cel.syntax.tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    children,
)
from scanner.cel.values import access
from scanner.cel.values.values import UINT_MAX, UInt, Value, make_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scanner.cel.checking.checker import CheckedTree, ResolvedCall
    from scanner.cel.checking.env import Environment

_HASHABLE = frozenset({bool, int, UInt, float, str})

Key = tuple[type, Value]
"""A member of a set: equal numbers of different types are different members."""


class FoldedTree(Struct):
    """The facts that are constant before evaluation, by node id.

    `constants`: the values of nodes that are constant. `sets`: the members of the constant list on the right of an `in`.
    `patterns`: the compiled constant pattern of a search.
    """

    constants: dict[int, Value] = field(default_factory=dict)
    sets: dict[int, frozenset[Key]] = field(default_factory=dict)
    patterns: dict[int, regex.Pattern] = field(default_factory=dict)


def fold(root: Node, checked: CheckedTree, environment: Environment) -> FoldedTree:
    """Return the constants of a tree. Raises `InstantiationError` when the computation of a constant fails."""
    folded = FoldedTree()
    for node in _list_bottom_up(root, checked):
        try:
            _fold_node(node, checked, environment, folded)
        except EvaluationError as error:
            raise InstantiationError(str(error)) from None
    return folded


def _list_bottom_up(root: Node, checked: CheckedTree) -> Iterator[Node]:
    """Yield the nodes in the order in which upstream plans them: operands first, left to right."""
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, has_children_done = stack.pop()
        if has_children_done:
            yield node
            continue
        stack.append((node, True))
        if node.id not in checked.names or not isinstance(node, Select):
            stack.extend((child, False) for child in reversed(_list_planned_children(node, checked)))


def _list_planned_children(node: Node, checked: CheckedTree) -> tuple[Node, ...]:
    if isinstance(node, Comprehension):
        return node.start, node.range, node.condition, node.step, node.result
    call = checked.calls.get(node.id)
    return tuple(children(node)) if call is None else call.arguments


def _fold_node(node: Node, checked: CheckedTree, environment: Environment, folded: FoldedTree) -> None:
    match node:
        case Literal():
            folded.constants[node.id] = node.value
        case Identifier() | Select():
            _fold_name(node, checked, environment, folded)
        case ListLiteral(elements=elements, optional=optional):
            if not optional and all(element.id in folded.constants for element in elements):
                folded.constants[node.id] = [folded.constants[element.id] for element in elements]
        case MapLiteral():
            _fold_map(node, folded)
        case Call():
            _reject_impossible_index(node, folded)
            call = checked.calls.get(node.id)
            if call is not None:
                _fold_call(node, call, folded)
        case StructLiteral():
            name = checked.names[node.id]
            if environment.maker(name) is None:
                raise EvaluationError(f"unknown type: {name}")
        case _:
            pass


def _fold_name(node: Node, checked: CheckedTree, environment: Environment, folded: FoldedTree) -> None:
    name = checked.names.get(node.id)
    if name is None:
        return
    constant = environment.constant(name)
    if constant is not None:
        folded.constants[node.id] = constant
    if checked.types[node.id].family != "type":
        return
    denoted = environment.find_type(name)
    if denoted is None:
        raise EvaluationError(f"reference to undefined type: {name}")
    folded.constants[node.id] = denoted


def _fold_map(node: MapLiteral, folded: FoldedTree) -> None:
    constants = folded.constants
    if all(entry.key.id in constants and entry.value.id in constants and not entry.optional for entry in node.entries):
        constants[node.id] = make_map([(constants[entry.key.id], constants[entry.value.id]) for entry in node.entries])


def _reject_impossible_index(node: Call, folded: FoldedTree) -> None:
    """Raise for a constant that cannot be a key or index; upstream detects it at planning."""
    if node.function in ("_[_]", "_[?_]") and node.arguments[1].id in folded.constants:
        access.require_key(folded.constants[node.arguments[1].id])


def _fold_call(node: Call, call: ResolvedCall, folded: FoldedTree) -> None:
    function = call.function
    constants = folded.constants
    if call.overload_ids == ("in_list",) and call.arguments[1].id in constants:
        _fold_membership(node, constants[call.arguments[1].id], folded)
    elif function.folds and len(call.arguments) == 1 and call.arguments[0].id in constants:
        constants[node.id] = function.find_run(call.overload_ids)(constants[call.arguments[0].id])
    elif function.with_pattern is not None and len(call.arguments) > 1:
        pattern = constants.get(call.arguments[1].id)
        if type(pattern) is str:
            folded.patterns[node.id] = regex.compile_pattern(pattern)


def _fold_membership(node: Call, members: Value, folded: FoldedTree) -> None:
    if type(members) is not list or any(type(member) not in _HASHABLE for member in members):
        return
    if not members:
        folded.constants[node.id] = False
        return
    folded.sets[node.id] = frozenset(key for member in members for key in _list_spellings(member))


def _list_spellings(member: Value) -> Iterator[Key]:
    """Yield a member and the equal number in the other numeric types, where upstream adds it."""
    yield type(member), member
    if type(member) is float:
        if member.is_integer() and -(2.0**63) < member < 2.0**63:
            yield int, int(member)
        if member.is_integer() and 0 <= member < float(UINT_MAX):
            yield UInt, UInt(int(member))
    elif type(member) is int:
        yield float, float(member)
        if member >= 0:
            yield UInt, UInt(member)
    elif type(member) is UInt:
        yield float, float(member)
        if member < 1 << 63:
            yield int, int(member)
