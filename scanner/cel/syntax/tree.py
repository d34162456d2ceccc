"""The syntax tree, after macros: plain nodes with the offset that an error about them points at.

Offsets follow cel-go: a selection is at its dot, an operator at its sign, a call at its parenthesis, everything that a macro
writes at the parenthesis of the macro. `id` numbers the nodes of one tree; the checker's results are keyed by it.
`depth` counts the nesting below a node the way upstream's recursion limit does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as Choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scanner.cel.values.values import Value


@dataclass(slots=True, eq=False)
class Literal:
    """A constant: None, bool, int, UInt, float, str or bytes."""

    id: int
    offset: int
    value: Value
    depth: int = 0


@dataclass(slots=True, eq=False)
class Identifier:
    """A name; a leading dot is kept in it."""

    id: int
    offset: int
    name: str
    depth: int = 0


@dataclass(slots=True, eq=False)
class Select:
    """`operand.field`; as a presence test, `has(operand.field)`."""

    id: int
    offset: int
    operand: Node
    field: str
    test: bool = False
    depth: int = 0


@dataclass(slots=True, eq=False)
class Call:
    """A function or operator; `target` is the receiver of a member call."""

    id: int
    offset: int
    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None
    depth: int = 0


@dataclass(slots=True, eq=False)
class ListLiteral:
    """`[a, ?b]`; `optional` holds the indexes of the elements marked with `?`."""

    id: int
    offset: int
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    depth: int = 0


@dataclass(slots=True, eq=False)
class MapEntry:
    """`key: value` of a map literal."""

    id: int
    offset: int
    key: Node
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapLiteral:
    """`{key: value, ?key: optional}`."""

    id: int
    offset: int
    entries: tuple[MapEntry, ...]
    depth: int = 0


@dataclass(slots=True, eq=False)
class FieldEntry:
    """`field: value` of a struct literal."""

    id: int
    offset: int
    name: str
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class StructLiteral:
    """`Type{field: value}`."""

    id: int
    offset: int
    type_name: str
    entries: tuple[FieldEntry, ...]
    depth: int = 0


Fold: TypeAlias = Choice[
    "all", "exists", "exists_one", "map", "filter", "transformList", "transformMap", "transformMapEntry", "bind"
]


@dataclass(slots=True, eq=False)
class Comprehension:
    """The expansion of a macro: a fold, in full for the checker and the cost, and by name for the evaluators.

    `fold`, `predicate` and `body` share their nodes with `step`; `bind` evaluates `accumulator_start` once and then `result`.
    `is_open`: an argument names the accumulator, so that only the full form can be evaluated. `twin`: the original of a part of
    `start` that is a copy, where upstream has the same node twice.
    """

    id: int
    offset: int
    fold: Fold
    range: Node
    variable: str
    second_variable: str | None
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node
    predicate: Node | None = field(default=None)
    body: Node | None = field(default=None)
    is_open: bool = False
    twin: Node | None = field(default=None)
    depth: int = 0


Node: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes right below a node, in order of evaluation; those of a comprehension are its full form."""
    match node:
        case Literal() | Identifier():
            return
        case Select(operand=operand):
            yield operand
        case Call(target=target, arguments=arguments):
            if target is not None:
                yield target
            yield from arguments
        case ListLiteral(elements=elements):
            yield from elements
        case MapLiteral(entries=entries):
            for entry in entries:
                yield entry.key
                yield entry.value
        case StructLiteral(entries=fields):
            for initializer in fields:
                yield initializer.value
        case Comprehension():
            yield from (node.range, node.start, node.condition, node.step, node.result)


def walk(root: Node) -> Iterator[Node]:
    """Yield a tree's nodes, parents first, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(tuple(children(node))))
