"""The maximum cost of an expression, from the size of the values that it reads.

Counting takes several times as long as evaluating, and hardly any expression on any object comes near a limit. A bound proves that:
below the limit an evaluation need not be counted. It adds up every node of the tree as if all were evaluated, and bounds the work
as well as the cost, so that an uncounted evaluation is also fast.

All formulas are polynomials without negative coefficients. Therefore a loop over a document needs no product where its body reads
the element alone: the elements of a list together are not larger than the list, so the body is charged once for the
whole list, and for each element only its cost on an empty value.

Nested loops need a product. Where the list is a plain path into the document, the caller can give its length, which then counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, assert_never

from scanner.cel.analysis import reads
from scanner.cel.analysis.go_values import OBJECTS, is_selection
from scanner.cel.evaluation.planner import list_terms
from scanner.cel.functions.pricing import LIST_COST, MAP_COST, STRUCT_COST, Operand
from scanner.cel.protobuf.messages import MESSAGES
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
    walk,
)
from scanner.cel.values.extent import (
    BOUNDLESS,
    NOTHING,
    UNKNOWN,
    SizeBound,
    add_conversion,
    combine_extents,
    find_extent,
)

if TYPE_CHECKING:
    from scanner.cel.analysis.constants import FoldedTree
    from scanner.cel.checking.checker import CheckedTree
    from scanner.cel.functions.declaration import Function
    from scanner.cel.functions.pricing import Operands

_SCALARS = frozenset({"null", "timestamp", "duration", "type"})
_DEEPEST = 6
"""The maximum depth of nested loops; the bound of each is computed twice, on an empty value and on the whole value."""
_OVERHEADS = {
    "all": 4.0,
    "exists": 5.0,
    "exists_one": 4.0,
    "map": 13.0,
    "filter": 13.0,
    "transformList": 13.0,
    "transformMap": 4.0,
    "transformMapEntry": 3.0,
}
"""The maximum bookkeeping cost of a fold per iteration."""


class Bound(NamedTuple):
    """The maximum cost in cost units, `UNKNOWN` where there is none, and the maximum extent of the value."""

    cost: float
    extent: SizeBound


def find_bound(
    root: Node,
    checked: CheckedTree,
    folded: FoldedTree,
    extents: Mapping[str, SizeBound],
    lengths: Mapping[reads.Path, float] = MappingProxyType({}),
) -> Bound:
    """Return the bound of an expression; `extents` are those of the values that it reads, `variables.x` under that name.

    `lengths` are upper limits of the numbers of entries in the ranges of loops, by path, where they are known. The bound covers
    the uncharged work of calls, too.
    """
    return _Bounds(checked, folded, extents, lengths).bound_node(root, extents, 0)


def _add_conversion(literal: Bound, fields: int) -> Bound:
    """Return the bound of a message, whose values are converted; the conversion takes time in proportion to their size."""
    return Bound(literal.cost + literal.extent.span, add_conversion(literal.extent, fields))


def find_ranges(root: Node, checked: CheckedTree) -> frozenset[reads.Path]:
    """Return the paths into `object` and `oldObject` over which loops run, as tuples of names."""
    paths = (_find_path(node.range, checked) for node in walk(root) if isinstance(node, Comprehension))
    return frozenset(path for path in paths if path is not None)


def _find_path(node: Node, checked: CheckedTree) -> reads.Path | None:
    """Return the path of an expression that selects from a document, unless a variable of a macro shadows its root."""
    fields: list[str] = []
    while isinstance(node, Select) and not node.test and node.id not in checked.names:
        fields.append(node.field)
        node = node.operand
    name = checked.names.get(node.id, "")
    return (name, *reversed(fields)) if name in OBJECTS else None


class _Bounds:
    def __init__(
        self,
        checked: CheckedTree,
        folded: FoldedTree,
        extents: Mapping[str, SizeBound],
        lengths: Mapping[reads.Path, float],
    ) -> None:
        self._checked = checked
        self._folded = folded
        self._extents = extents
        self._lengths = lengths

    def bound_node(self, node: Node, scope: Mapping[str, SizeBound], depth: int) -> Bound:
        """Return the bound of a node; `depth` is the number of loops around it."""
        if node.id in self._folded.constants:
            return Bound(0.0, find_extent(self._folded.constants[node.id]))
        match node:
            case Literal(value=value):
                return Bound(0.0, find_extent(value))
            case Identifier():
                return Bound(1.0, scope.get(self._checked.names[node.id], BOUNDLESS))
            case Select():
                return self._bound_select(node, scope, depth)
            case Call():
                return self._bound_call(node, scope, depth)
            case ListLiteral(elements=elements):
                return self._bound_literal(elements, LIST_COST, scope, depth)
            case MapLiteral(entries=entries):
                return self._bound_literal([s for e in entries for s in (e.key, e.value)], MAP_COST, scope, depth)
            case StructLiteral(entries=fields):
                literal_bound = self._bound_literal([field.value for field in fields], STRUCT_COST, scope, depth)
                return (
                    _add_conversion(literal_bound, len(fields))
                    if self._checked.names[node.id] in MESSAGES
                    else literal_bound
                )
            case Comprehension():
                return self._bound_comprehension(node, scope, depth)
            case _:
                assert_never(node)

    def _bound_select(self, node: Select, scope: Mapping[str, SizeBound], depth: int) -> Bound:
        name = self._checked.names.get(node.id)
        if name is not None:
            return Bound(1.0, scope.get(name, BOUNDLESS))
        if not node.test and self._is_variables(node.operand):
            return Bound(2.0, scope.get(f"variables.{node.field}", BOUNDLESS))
        if node.test and self._is_on_conditional(node.operand):
            return Bound(UNKNOWN, BOUNDLESS)
        base = self._bound_base(node.operand, scope, depth)
        return Bound(base.cost + 1, NOTHING if node.test and not self._can_be_kept(node) else base.extent)

    def _is_on_conditional(self, node: Node) -> bool:
        """Return whether a path begins with a conditional: a presence test there refunds a cost, perhaps below zero."""
        while is_selection(node, self._checked):
            node = next(children(node))
        return isinstance(node, Call) and node.function == "_?_:_"

    def _is_variables(self, node: Node) -> bool:
        return isinstance(node, Identifier) and self._checked.names.get(node.id) == "variables"

    def _can_be_kept(self, node: Select) -> bool:
        """Return whether a presence test may give an optional, see `exact`."""
        return self._checked.types[node.operand.id].name == "optional_type"

    def _bound_base(self, node: Node, scope: Mapping[str, SizeBound], depth: int) -> Bound:
        """Return the bound of the operand of a selection; reading it costs 1 where it is not a path itself."""
        base = self.bound_node(node, scope, depth)
        is_path = isinstance(node, Identifier | Select) or is_selection(node, self._checked)
        return base if is_path else Bound(base.cost + 1, base.extent)

    def _bound_literal(
        self, nodes: tuple[Node, ...] | list[Node], price: float, scope: Mapping[str, SizeBound], depth: int
    ) -> Bound:
        parts = [self.bound_node(node, scope, depth) for node in nodes]
        return Bound(
            price + sum(part.cost for part in parts), combine_extents((p.extent for p in parts), entries=len(parts))
        )

    # --- calls

    def _bound_call(self, node: Call, scope: Mapping[str, SizeBound], depth: int) -> Bound:
        if is_selection(node, self._checked):
            operand, key = node.arguments
            base, index = self._bound_base(operand, scope, depth), self.bound_node(key, scope, depth)
            return Bound(base.cost + index.cost + 1, base.extent)
        if node.function in ("_&&_", "_||_"):
            return Bound(sum(self.bound_node(term, scope, depth).cost for term in list_terms(node)), NOTHING)
        resolution = self._checked.calls[node.id]
        parts = [self.bound_node(argument, scope, depth) for argument in resolution.arguments]
        operands = tuple(
            Operand(part.extent, argument, argument.id in self._folded.constants)
            for part, argument in zip(parts, resolution.arguments, strict=True)
        )
        paid = sum(part.cost for part in parts)
        if node.id in self._folded.sets:
            return Bound(paid + 1, NOTHING)
        function = resolution.function
        most = None if function.cost is None else function.cost.bound
        own_cost = UNKNOWN if most is None else most(operands)
        return Bound(paid + own_cost, self._find_result_extent(node, function, operands))

    def _find_result_extent(self, node: Call, function: Function, operands: Operands) -> SizeBound:
        type_ = self._checked.types[node.id]
        is_scalar = type_.family in _SCALARS or (type_.family == "primitive" and type_.name not in ("string", "bytes"))
        if is_scalar:
            return NOTHING
        return BOUNDLESS if function.result is None else function.result(operands)

    # --- comprehensions

    def _bound_comprehension(self, node: Comprehension, scope: Mapping[str, SizeBound], depth: int) -> Bound:
        if depth >= _DEEPEST or node.is_open:
            return Bound(UNKNOWN, BOUNDLESS)
        if node.fold == "bind":
            start = self.bound_node(node.start, scope, depth)
            result = self.bound_node(node.result, {**scope, node.accumulator: start.extent}, depth)
            return Bound(start.cost + result.cost + 1, result.extent)
        over = self.bound_node(node.range, scope, depth)
        times = min(over.extent.elements, over.extent.widest, self._find_length(node.range, scope))
        on_nothing = self._bound_iteration(node, scope, NOTHING, depth + 1)
        on_all = self._bound_iteration(node, scope, over.extent.pool(), depth + 1)
        cost = over.cost + 4 + times * (on_nothing.cost + _OVERHEADS[node.fold]) + on_all.cost
        return Bound(cost, self._find_fold_extent(node, over.extent, times, (on_nothing.extent, on_all.extent)))

    def _find_length(self, node: Node, scope: Mapping[str, SizeBound]) -> float:
        path = _find_path(node, self._checked) if self._lengths else None
        is_hidden = path is None or scope.get(path[0]) is not self._extents.get(path[0])
        return UNKNOWN if path is None or is_hidden else self._lengths.get(path, UNKNOWN)

    def _bound_iteration(
        self, node: Comprehension, scope: Mapping[str, SizeBound], element: SizeBound, depth: int
    ) -> Bound:
        inside = {**scope, node.variable: element}
        if node.second_variable is not None:
            inside[node.second_variable] = element
        cost, extent = 0.0, NOTHING
        for part in (node.predicate, node.body):
            if part is not None:
                measured = self.bound_node(part, inside, depth)
                cost, extent = cost + measured.cost, measured.extent
        return Bound(cost, extent)

    def _find_fold_extent(
        self, node: Comprehension, over: SizeBound, times: float, bodies: tuple[SizeBound, SizeBound]
    ) -> SizeBound:
        if node.fold in ("all", "exists", "exists_one"):
            return NOTHING
        on_nothing, on_all = bodies
        elements = times * (1 + on_nothing.elements) + on_all.elements
        characters = times * on_nothing.characters + on_all.characters + over.characters
        return SizeBound(elements, characters, elements)
