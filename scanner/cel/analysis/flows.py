"""The inputs that an expression returns unchanged, and the inputs from which it computes a value.

Finer than `deep_reads`, for evidence about what a text may hold: lists that were filtered, mapped or joined are traced to
the places of their elements, and so are the variables of a policy. A path has `*` for any element, ends in `#` where only
the shape of a list or map is read, and means all below its end otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from msgspec import Struct

from scanner.cel.analysis.deep_reads import ELEMENTS, SHAPE, Path
from scanner.cel.functions.declaration import ArgumentFlow
from scanner.cel.stack import run_with_room
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

if TYPE_CHECKING:
    from scanner.cel.checking.checker import CheckedTree

BOX: Final = "[]"
"""A list or map that contains the value at the path before."""
_VARIABLES: Final = "variables"
_INDEXES: Final = frozenset({"_[_]", "_[?_]", "_?._"})
_LITERAL_OPERATIONS: Final = frozenset({"add", "remove", "replace", "test"})
_FOLLOWED: Final = frozenset({"map", "filter", "transformList", "transformMap"})
_MOST_PATHS: Final = 20_000
_Places: TypeAlias = "frozenset[Path]"
_Scope: TypeAlias = "Mapping[str, _Places]"
_NOWHERE: Final[_Places] = frozenset()
_OBJECT: Final[_Places] = frozenset({("object",)})


class Flow(Struct, frozen=True):
    """The places whose values a value contains, and the places from which it was computed, as paths."""

    carried: frozenset[Path]
    computed: frozenset[Path]


def find_flow(root: Node, checked: CheckedTree, variables: frozenset[str]) -> Flow:
    """Return the flow of an expression's inputs; paths through `variables` are not resolved."""

    def read() -> Flow:
        reader = _FlowReader(checked, variables)
        return Flow(reader.find_places(root, {}), frozenset(reader.computed))

    return run_with_room(read)


def follow_variables(first: Flow, variables: Callable[[str], Iterable[Flow]]) -> Flow | None:
    """Return the flow with the places of the policy's variables resolved; None where there are more than `_MOST_PATHS`.

    `variables` returns the flow of a variable, or those of all for an empty name.
    """
    carried: set[Path] = set()
    computed: set[Path] = set()
    visited: set[tuple[Path, bool]] = set()
    begun: set[str] = set()
    stack = [*((path, True) for path in first.carried), *((path, False) for path in first.computed)]
    while stack:
        path, is_carried = top = stack.pop()
        if top in visited:
            continue
        visited.add(top)
        if len(visited) > _MOST_PATHS:
            return None
        if path[0] != _VARIABLES:
            (carried if is_carried else computed).add(_unbox(path))
            continue
        name = path[1] if len(path) > 1 and path[1] not in (ELEMENTS, SHAPE, BOX) else ""
        for each in variables(name):
            stack += [(longer, is_carried) for way in each.carried for longer in _continue_path(way, path[2:])]
            if name not in begun:
                stack += [(way, False) for way in each.computed]
        begun.add(name)
    return Flow(frozenset(carried), frozenset(computed))


def _continue_path(path: Path, steps: Path) -> Iterator[Path]:
    for step in steps:
        if step == BOX:
            path = (*path, BOX)
            continue
        longer = _append_step(path, step)
        if longer is None:
            return
        path = longer
    yield path


def _append_step(path: Path, step: str) -> Path | None:
    """Return a path with one more step.

    A step from a box that the expression made leads to its content. The shape of a box is known: None.
    """
    if path[-1] != BOX:
        return (*path, step)
    return None if step == SHAPE else path[:-1]


def _unbox(path: Path) -> Path:
    while path[-1] == BOX:
        path = path[:-1]
    return path


def _append_step_to_all(places: _Places, step: str) -> _Places:
    return frozenset(longer for path in places if (longer := _append_step(path, step)) is not None)


def _box(places: Iterable[Path]) -> _Places:
    return frozenset((*path, BOX) for path in places)


class _FlowReader:
    def __init__(self, checked: CheckedTree, variables: frozenset[str]) -> None:
        self._checked = checked
        self._variables = variables
        self.computed: set[Path] = set()

    def find_places(self, node: Node, scope: _Scope) -> _Places:
        """Return the places of a value, or of its parts; collect the places from which it was computed."""
        name = self._checked.names.get(node.id)
        if name is not None and isinstance(node, Identifier | Select):
            return self._read_name(node, name, scope)
        match node:
            case Select(operand=operand, field=field, test=test):
                places = self.find_places(operand, scope)
                return self._find_shape(places) if test else _append_step_to_all(places, _write_key(field))
            case Call():
                return self._find_call(node, scope)
            case ListLiteral() if not node.optional:
                return _box(path for element in node.elements for path in self.find_places(element, scope))
            case MapLiteral():
                return self._find_map(node, scope)
            case StructLiteral():
                return self._find_struct(node, scope)
            case Comprehension():
                return self._find_loop(node, scope)
            case _:
                return self._compute_from(children(node), scope)

    def _read_name(self, node: Node, name: str, scope: _Scope) -> _Places:
        if isinstance(node, Identifier) and node.id not in self._checked.globals and name in scope:
            return scope[name]
        return frozenset({tuple(name.split("."))}) if name in self._variables else _NOWHERE

    def _find_shape(self, places: _Places) -> _Places:
        self.computed |= _append_step_to_all(places, SHAPE)
        return _NOWHERE

    def _compute_from(self, nodes: Iterable[Node], scope: _Scope) -> _Places:
        for node in nodes:
            self.computed |= self.find_places(node, scope)
        return _NOWHERE

    def _find_call(self, node: Call, scope: _Scope) -> _Places:
        call = self._checked.calls.get(node.id)
        arguments = tuple(children(node)) if call is None else call.arguments
        if node.function in _INDEXES and len(arguments) == len(node.arguments):
            operand, key = arguments
            constant = key.value if isinstance(key, Literal) else None
            self._compute_from([key], scope)
            return _append_step_to_all(
                self.find_places(operand, scope), _write_key(constant) if isinstance(constant, str) else ELEMENTS
            )
        if node.function == "_?_:_":
            self._compute_from(arguments[:1], scope)
            return self._join_all(arguments[1:], scope)
        return self._follow_arguments(arguments, ArgumentFlow.COMPUTES if call is None else call.function.flow, scope)

    def _follow_arguments(self, arguments: tuple[Node, ...], flow: ArgumentFlow, scope: _Scope) -> _Places:
        """Return the flow of a call's arguments into its result."""
        match flow:
            case ArgumentFlow.COUNTS:
                self.computed |= {(*_unbox(path), SHAPE) for path in self._join_all(arguments, scope)}
                return _NOWHERE
            case ArgumentFlow.PASSES | ArgumentFlow.CARRIES:
                return self._join_all(arguments, scope)
            case ArgumentFlow.SORTS | ArgumentFlow.READS:
                self._compute_from(arguments[1:], scope)
                return self.find_places(arguments[0], scope)
            case ArgumentFlow.COMPUTES:
                return self._compute_from(arguments, scope)
            case _:
                assert_never(flow)

    def _join_all(self, nodes: Iterable[Node], scope: _Scope) -> _Places:
        return frozenset(path for node in nodes for path in self.find_places(node, scope))

    def _find_map(self, node: MapLiteral, scope: _Scope) -> _Places:
        self._compute_from((entry.key for entry in node.entries), scope)
        return _box(self._join_all((entry.value for entry in node.entries), scope))

    def _find_struct(self, node: StructLiteral, scope: _Scope) -> _Places:
        """Return the flow of a literal.

        The path of a patch is not in the result; the source of a copy or move counts as computed from.
        """
        if node.type_name.lstrip(".") != "JSONPatch":
            return _box(self._join_all((entry.value for entry in node.entries), scope))
        fields = {entry.name: entry.value for entry in node.entries}
        value = fields.pop("value", None)
        self._compute_from(fields.values(), scope)
        operation, source = fields.get("op"), fields.get("from")
        if not (isinstance(operation, Literal) and operation.value in _LITERAL_OPERATIONS):
            self.computed |= _find_target(source)
        return _NOWHERE if value is None else _box(self.find_places(value, scope))

    def _find_loop(self, node: Comprehension, scope: _Scope) -> _Places:
        over = self.find_places(node.start if node.fold == "bind" else node.range, scope)
        if node.fold == "bind":
            return self.find_places(node.result, {**scope, node.accumulator: over})
        self._find_shape(over)
        element = _append_step_to_all(over, ELEMENTS)
        inner = {**scope, node.variable: element}
        if node.second_variable is not None:
            inner[node.second_variable] = element
        self._compute_from([] if node.predicate is None else [node.predicate], inner)
        if node.body is None or node.is_open or node.fold not in _FOLLOWED:
            self.computed |= over if node.is_open else _NOWHERE
            return self._compute_from([] if node.body is None else [node.body], inner)
        return _box(self.find_places(node.body, inner))


def _write_key(name: str) -> str:
    return name if name not in (ELEMENTS, SHAPE, BOX) else ELEMENTS


def _find_target(source: Node | None) -> _Places:
    """Return the target of the `from` of an operation; the whole object where it cannot be determined."""
    if not isinstance(source, Literal) or not isinstance(source.value, str):
        return _OBJECT
    steps = source.value.split("/")[1:]
    return frozenset({("object", *(_write_key(step.replace("~1", "/").replace("~0", "~")) for step in steps))})
