"""Calls that are syntax: has, the comprehensions, optMap, sortBy.

A macro is recognised by name, number of arguments and whether there is a receiver, before types are known. Everything that a
macro writes has the place of its parenthesis.

Rules: `docs/semantics/cel-syntax.md#macros`, `docs/semantics/cel-libraries.md#lists`,
`docs/semantics/cel-libraries.md#two-variables`, `docs/semantics/cel-libraries.md#optional-values`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.releases import COPIED_TARGETS, FIRST, HIDDEN_ACCUMULATOR, LISTS, TWO_VARIABLES, Version
from scanner.cel.syntax.tree import (
    Call,
    Comprehension,
    FieldEntry,
    Fold,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    walk,
)

if TYPE_CHECKING:
    from scanner.cel.values.values import Value

ACCUMULATOR = "@result"
_OLD_ACCUMULATOR = "__result__"
_SORTED_INPUT = "@__sortBy_input__"
_UNUSED = "#unused"
_NOT_A_NAME = "argument must be a simple name"
_NOT_AN_IDENTIFIER = "argument is not an identifier"


class BadMacro(Exception):
    """A macro whose arguments have the wrong shape; the message is upstream's."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class NodeWriter:
    """A factory of nodes at one place."""

    def __init__(self, new_id: Callable[[], int], offset: int, version: Version = (1, 36)) -> None:
        self._new_id = new_id
        self._offset = offset
        self.is_hidden = HIDDEN_ACCUMULATOR.holds(version)
        self.accumulator = ACCUMULATOR if self.is_hidden else _OLD_ACCUMULATOR
        self.copies = COPIED_TARGETS.holds(version)

    def literal(self, value: Value) -> Literal:
        """Return a constant at the macro's place."""
        return Literal(self._new_id(), self._offset, value)

    def name(self, name: str = "") -> Identifier:
        """Return an identifier, by default the accumulator."""
        return Identifier(self._new_id(), self._offset, name or self.accumulator)

    def call(self, function: str, *arguments: Node) -> Call:
        """Return a call without a receiver."""
        return Call(self._new_id(), self._offset, function, arguments)

    def member(self, target: Node, function: str, *arguments: Node) -> Call:
        """Return a call with a receiver."""
        return Call(self._new_id(), self._offset, function, arguments, target)

    def list(self, *elements: Node) -> ListLiteral:
        """Return a list literal."""
        return ListLiteral(self._new_id(), self._offset, elements)

    def map(self) -> MapLiteral:
        """Return an empty map literal."""
        return MapLiteral(self._new_id(), self._offset, ())

    def select(self, operand: Node, field: str) -> Select:
        """Return a selection, `operand.field`."""
        return Select(self._new_id(), self._offset, operand, field)

    def presence(self, operand: Node, field: str) -> Select:
        """Return a presence test, `has(operand.field)`."""
        return Select(self._new_id(), self._offset, operand, field, test=True)

    def bind(self, variable: str, value: Node, result: Node) -> Comprehension:
        """Return a fold over an empty list whose accumulator is a variable: the form of `cel.bind`."""
        return Comprehension(
            self._new_id(),
            self._offset,
            fold="bind",
            range=self.list(),
            variable=_UNUSED,
            second_variable=None,
            accumulator=variable,
            start=value,
            condition=self.literal(False),  # noqa: FBT003
            step=self.name(variable),
            result=result,
        )

    def duplicate(self, node: Node) -> Node:
        """Return a copy of a tree, with new ids, at its own places; entries of real copies have the place of the macro."""
        other = copy.copy(node)
        other.id = self._new_id()
        match other:
            case Select():
                other.operand = self.duplicate(other.operand)
            case Call():
                other.arguments = tuple(self.duplicate(argument) for argument in other.arguments)
                other.target = None if other.target is None else self.duplicate(other.target)
            case ListLiteral():
                other.elements = tuple(self.duplicate(element) for element in other.elements)
            case MapLiteral():
                other.entries = tuple(self._duplicate_entry(entry) for entry in other.entries)
            case StructLiteral():
                other.entries = tuple(self._duplicate_field(entry) for entry in other.entries)
            case Comprehension():
                self._duplicate_fold(other)
            case _:
                pass
        return other

    def _duplicate_entry(self, entry: MapEntry) -> MapEntry:
        key, value = self.duplicate(entry.key), self.duplicate(entry.value)
        return MapEntry(self._new_id(), self._get_copied_offset(entry), key, value, entry.optional)

    def _duplicate_field(self, entry: FieldEntry) -> FieldEntry:
        value = self.duplicate(entry.value)
        return FieldEntry(self._new_id(), self._get_copied_offset(entry), entry.name, value, entry.optional)

    def _get_copied_offset(self, entry: MapEntry | FieldEntry) -> int:
        """Return the offset of a copied entry."""
        return self._offset if self.copies else entry.offset

    def _duplicate_fold(self, fold: Comprehension) -> None:
        """Copy the parts of a fold, and find the copies of the predicate and the body inside the copied step."""
        original = fold.step
        fold.range = self.duplicate(fold.range)
        fold.start = self.duplicate(fold.start)
        fold.condition = self.duplicate(fold.condition)
        fold.step = self.duplicate(fold.step)
        fold.result = self.duplicate(fold.result)
        fold.predicate = _find_counterpart(original, fold.step, fold.predicate)
        fold.body = _find_counterpart(original, fold.step, fold.body)


def _find_counterpart(original: Node, duplicate: Node, wanted: Node | None) -> Node | None:
    """Return the node of a copied step that corresponds to `wanted` in the original; steps nest at most three deep."""
    if original is wanted:
        return duplicate
    pairs: list[tuple[Node, Node]] = []
    match original, duplicate:
        case Call(arguments=left), Call(arguments=right):
            pairs = list(zip(left, right, strict=True))
        case ListLiteral(elements=left), ListLiteral(elements=right):
            pairs = list(zip(left, right, strict=True))
        case _:
            pass
    for part, copied in pairs:
        counterpart = _find_counterpart(part, copied, wanted)
        if counterpart is not None:
            return counterpart
    return None


Expand: TypeAlias = Callable[[NodeWriter, Node, tuple[Node, ...]], Node]
Macro: TypeAlias = tuple[str, int, bool, Expand]
ANY_NUMBER = -1


def _expand_has(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    del target
    match arguments[0]:
        case Select(test=False) as select:
            return write.presence(select.operand, select.field)
        case other:
            raise BadMacro("invalid argument to has() macro", other.offset)


def _read_variable(argument: Node, complaint: str) -> str:
    if not isinstance(argument, Identifier):
        raise BadMacro(complaint, argument.offset)
    return argument.name


def _reject_accumulator(name: str, argument: Node) -> None:
    if name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise BadMacro("iteration variable overwrites accumulator variable", argument.offset)


def _read_one_variable(write: NodeWriter, argument: Node, complaint: str) -> tuple[str, None]:
    name = _read_variable(argument, complaint)
    if write.is_hidden:
        _reject_accumulator(name, argument)
    return name, None


def _read_two_variables(first: Node, second: Node) -> tuple[str, str]:
    names = _read_variable(first, _NOT_A_NAME), _read_variable(second, _NOT_A_NAME)
    if names[0] == names[1]:
        raise BadMacro(f"duplicate variable name: {names[0]}", second.offset)
    _reject_accumulator(names[0], first)
    _reject_accumulator(names[1], second)
    return names


def _write_fold(
    write: NodeWriter,
    fold: Fold,
    over: Node,
    variables: tuple[str, str | None],
    start: Node,
    condition: Node,
    step: Node,
    result: Node,
    *,
    predicate: Node | None = None,
    body: Node | None = None,
) -> Node:
    return Comprehension(
        write.literal(None).id,
        start.offset,
        fold,
        over,
        variables[0],
        variables[1],
        write.accumulator,
        start,
        condition,
        step,
        result,
        predicate=predicate,
        body=body,
        is_open=not write.is_hidden and _names_accumulator(variables, predicate, body),
    )


def _names_accumulator(variables: tuple[str, str | None], *parts: Node | None) -> bool:
    """Return whether the arguments of a macro use the name of its accumulator."""
    return variables[0] == _OLD_ACCUMULATOR or any(
        isinstance(node, Identifier) and node.name.removeprefix(".") == _OLD_ACCUMULATOR
        for part in parts
        if part is not None
        for node in walk(part)
    )


def _write_all(write: NodeWriter, over: Node, variables: tuple[str, str | None], predicate: Node) -> Node:
    start = write.literal(True)  # noqa: FBT003
    condition = write.call("@not_strictly_false", write.name())
    step = write.call("_&&_", write.name(), predicate)
    return _write_fold(write, "all", over, variables, start, condition, step, write.name(), predicate=predicate)


def _write_exists(write: NodeWriter, over: Node, variables: tuple[str, str | None], predicate: Node) -> Node:
    start = write.literal(False)  # noqa: FBT003
    condition = write.call("@not_strictly_false", write.call("!_", write.name()))
    step = write.call("_||_", write.name(), predicate)
    return _write_fold(write, "exists", over, variables, start, condition, step, write.name(), predicate=predicate)


def _write_exists_one(write: NodeWriter, over: Node, variables: tuple[str, str | None], predicate: Node) -> Node:
    start = write.literal(0)
    condition = write.literal(True)  # noqa: FBT003
    increment = write.call("_+_", write.name(), write.literal(1))
    step = write.call("_?_:_", predicate, increment, write.name())
    result = write.call("_==_", write.name(), write.literal(1))
    return _write_fold(write, "exists_one", over, variables, start, condition, step, result, predicate=predicate)


def _write_collect(
    write: NodeWriter, fold: Fold, over: Node, variables: tuple[str, str | None], predicate: Node | None, body: Node
) -> Node:
    """Write the fold of map, filter and transformList."""
    start = write.list()
    condition = write.literal(True)  # noqa: FBT003
    step: Node = write.call("_+_", write.name(), write.list(body))
    if predicate is not None:
        step = write.call("_?_:_", predicate, step, write.name())
    return _write_fold(
        write, fold, over, variables, start, condition, step, write.name(), predicate=predicate, body=body
    )


def _write_insert(
    write: NodeWriter, fold: Fold, over: Node, variables: tuple[str, str], rest: tuple[Node, ...]
) -> Node:
    """Write the fold of transformMap and transformMapEntry; `rest` is an optional predicate and the body."""
    *predicates, body = rest
    start = write.map()
    condition = write.literal(True)  # noqa: FBT003
    keys = (write.name(variables[0]),) if fold == "transformMap" else ()
    step: Node = write.call("cel.@mapInsert", write.name(), *keys, body)
    predicate = predicates[0] if predicates else None
    if predicate is not None:
        step = write.call("_?_:_", predicate, step, write.name())
    return _write_fold(
        write, fold, over, variables, start, condition, step, write.name(), predicate=predicate, body=body
    )


Quantifier: TypeAlias = Callable[[NodeWriter, Node, tuple[str, str | None], Node], Node]


def _make_quantifier(make: Quantifier) -> Expand:
    def expand(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
        return make(write, target, _read_one_variable(write, arguments[0], _NOT_A_NAME), arguments[1])

    return expand


def _make_pair_quantifier(make: Quantifier) -> Expand:
    def expand(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
        return make(write, target, _read_two_variables(arguments[0], arguments[1]), arguments[2])

    return expand


def _expand_map(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    variables = _read_one_variable(write, arguments[0], _NOT_AN_IDENTIFIER)
    predicate = arguments[1] if len(arguments) == 3 else None  # noqa: PLR2004
    return _write_collect(write, "map", target, variables, predicate, arguments[-1])


def _expand_filter(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    variables = _read_one_variable(write, arguments[0], _NOT_AN_IDENTIFIER)
    return _write_collect(write, "filter", target, variables, arguments[1], arguments[0])


def _expand_transform_list(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    variables = _read_two_variables(arguments[0], arguments[1])
    predicate = arguments[2] if len(arguments) == 4 else None  # noqa: PLR2004
    return _write_collect(write, "transformList", target, variables, predicate, arguments[-1])


def _expand_transform_map(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    return _write_insert(write, "transformMap", target, _read_two_variables(arguments[0], arguments[1]), arguments[2:])


def _expand_transform_map_entry(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    return _write_insert(
        write, "transformMapEntry", target, _read_two_variables(arguments[0], arguments[1]), arguments[2:]
    )


def _expand_optional_map(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    body = _bind_optional(write, target, arguments, "optMap() variable name must be a simple identifier")
    return _guard_presence(write, target, write.call("optional.of", body))


def _expand_optional_flat_map(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    body = _bind_optional(write, target, arguments, "optFlatMap() variable name must be a simple identifier")
    return _guard_presence(write, target, body)


def _bind_optional(write: NodeWriter, target: Node, arguments: tuple[Node, ...], complaint: str) -> Comprehension:
    name = _read_variable(arguments[0], complaint)
    bound = write.bind(name, write.member(write.duplicate(target), "value"), arguments[1])
    bound.twin = None if write.copies else target
    return bound


def _guard_presence(write: NodeWriter, target: Node, then: Node) -> Node:
    return write.call("_?_:_", write.member(target, "hasValue"), then, write.call("optional.none"))


def _expand_sort_by(write: NodeWriter, target: Node, arguments: tuple[Node, ...]) -> Node:
    if isinstance(target, Literal | MapLiteral | StructLiteral):
        raise BadMacro(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression", target.offset
        )
    keys = _expand_map(write, write.name(_SORTED_INPUT), arguments)
    return write.bind(_SORTED_INPUT, target, write.member(write.name(_SORTED_INPUT), "@sortByAssociatedKeys", keys))


MACROS: dict[tuple[str, int, bool], Expand] = {
    ("has", 1, False): _expand_has,
    ("all", 2, True): _make_quantifier(_write_all),
    ("exists", 2, True): _make_quantifier(_write_exists),
    ("exists_one", 2, True): _make_quantifier(_write_exists_one),
    ("map", 2, True): _expand_map,
    ("map", 3, True): _expand_map,
    ("filter", 2, True): _expand_filter,
    ("all", 3, True): _make_pair_quantifier(_write_all),
    ("exists", 3, True): _make_pair_quantifier(_write_exists),
    ("existsOne", 3, True): _make_pair_quantifier(_write_exists_one),
    ("exists_one", 3, True): _make_pair_quantifier(_write_exists_one),
    ("transformList", 3, True): _expand_transform_list,
    ("transformList", 4, True): _expand_transform_list,
    ("transformMap", 3, True): _expand_transform_map,
    ("transformMap", 4, True): _expand_transform_map,
    ("transformMapEntry", 3, True): _expand_transform_map_entry,
    ("transformMapEntry", 4, True): _expand_transform_map_entry,
    ("optMap", 2, True): _expand_optional_map,
    ("optFlatMap", 2, True): _expand_optional_flat_map,
    ("sortBy", 2, True): _expand_sort_by,
}
"""Name, number of arguments, whether it is a member call."""
_TWO_VARIABLES = frozenset({"existsOne", "transformList", "transformMap", "transformMapEntry"})


def find_macro(name: str, size: int, version: Version, *, member: bool) -> Expand | None:
    """Return the expansion of the macro with this name and number of arguments; None where the release has none."""
    return MACROS.get((name, size, member)) if _find_first_release(name, size) <= version else None


def _find_first_release(name: str, size: int) -> Version:
    if name == "sortBy":
        return LISTS.since
    quantifies_pairs = size == 3 and name in ("all", "exists", "exists_one")  # noqa: PLR2004
    return TWO_VARIABLES.since if name in _TWO_VARIABLES or quantifies_pairs else FIRST
