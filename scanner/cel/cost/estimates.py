"""What calls cost at most, and what is in their results at most: the tables behind `bounds`.

Each estimate is the rule of `cost` with every rounding up done generously, plus the work that upstream does not charge for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from scanner.cel.cost.extent import BOUNDLESS, NOTHING, UNKNOWN, SizeBound, together
from scanner.cel.cost.prices import CHECK_COST, LIST_COST
from scanner.cel.functions.named_formats import FORMATS
from scanner.cel.syntax.tree import Call, Identifier, Literal

if TYPE_CHECKING:
    from scanner.cel.syntax.tree import Node

_SLACK = 64.0
"""Characters of a printed number, time or address."""
_LONGEST_NUMBER = 512.0
_ESCAPED = 8.0
_BYTES = 4.0
_LONG_PRECISION = re.compile(r"\.\d{3}")


class Operand(NamedTuple):
    """An argument of a call: what is in it, and what it is where that is known beforehand."""

    extent: SizeBound
    node: Node
    is_constant: bool

    @property
    def read(self) -> float:
        """What it costs at most to read it from end to end."""
        return self.extent.span / 10 + 1


Operands: TypeAlias = tuple[Operand, ...]
_Estimate: TypeAlias = Callable[[Operands], float]
_Result: TypeAlias = Callable[[Operands], SizeBound]


# --- what calls cost: see `cost`, with every rounding up done generously


def _compared(operands: Operands) -> float:
    """Bound a comparison, which ends with the smaller operand: a constant one where there is one."""
    smaller = next((one for one in operands if one.is_constant), operands[0])
    return smaller.read + smaller.extent.elements


def _concatenated(operands: Operands) -> float:
    return sum(one.read for one in operands)


def _membership(operands: Operands) -> float:
    """Bound a search in a list, which compares what is looked for with every member."""
    whole = operands[1].extent
    return 2 + 2 * whole.elements + whole.characters / 10


def _search(operands: Operands) -> float:
    return (operands[0].read + 1) * (operands[1].extent.span / 4 + 1)


def _contained(operands: Operands) -> float:
    return operands[0].read * operands[1].read


def _read(operands: Operands) -> float:
    return operands[0].read


def _rewritten(operands: Operands) -> float:
    return 2 * sum(one.read for one in operands)


def _printed(operands: Operands) -> float:
    return sum(one.read + one.extent.elements for one in operands)


def _walked(operands: Operands) -> float:
    whole = operands[0].extent
    return 1 + 2 * whole.elements + _BYTES * whole.characters / 10


def _joined(operands: Operands) -> float:
    return 2 * _join(operands).span / 10 + 1


def _selector(operands: Operands) -> float:
    return LIST_COST + operands[1].read + 50 * (operands[1].extent.span / 2 + 1)


def _address(operands: Operands) -> float:
    return 16 + 3 * sum(one.read for one in operands)


def _validated(operands: Operands) -> float:
    longest = max(format_.complexity for format_ in FORMATS.values())
    made = operands[0].node
    complexity = longest
    if isinstance(made, Call) and isinstance(made.target, Identifier) and made.target.name == "format":
        complexity = FORMATS[made.function].complexity if made.function in FORMATS else longest
    return (operands[1].read + 1) * (complexity / 4 + 1)


def _copied(operands: Operands) -> float:
    return operands[0].extent.span + LIST_COST + 2


def _ranged(operands: Operands) -> float:
    return _range(operands).elements + LIST_COST + 2


def _flattened(operands: Operands) -> float:
    depth = _number(operands[1]) if len(operands) > 1 else 1.0
    return operands[0].extent.span * depth + LIST_COST + 2


def _squared(operands: Operands) -> float:
    span = sum(one.extent.span for one in operands)
    return 2.1 * span * span + LIST_COST + 2


def _crossed(operands: Operands) -> float:
    left, right = operands
    return 1 + 2 * left.extent.span * right.extent.span


def _number(operand: Operand) -> float:
    """Return a constant number that is not negative; anything else may be anything."""
    value = operand.node.value if isinstance(operand.node, Literal) else None
    return float(value) if type(value) is int and value >= 0 else UNKNOWN


COSTS: dict[str, _Estimate] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    **dict.fromkeys(("_+_", "startsWith", "endsWith"), _concatenated),
    "@in": _membership,
    **dict.fromkeys(("matches", "find", "findAll"), _search),
    "contains": _contained,
    **dict.fromkeys(("isSorted", "sum", "max", "min"), _walked),
    **dict.fromkeys(("indexOf", "lastIndexOf", "includes"), lambda operands: _walked(operands) + _printed(operands)),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _rewritten),
    "format": _printed,
    "join": _joined,
    "check": lambda _operands: float(CHECK_COST),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("containsIP", "containsCIDR"), _address),
    "validate": _validated,
    **dict.fromkeys(("slice", "reverse"), _copied),
    "lists.range": _ranged,
    "flatten": _flattened,
    **dict.fromkeys(("distinct", "sort", "@sortByAssociatedKeys"), _squared),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _crossed),
    **dict.fromkeys(
        (
            "bytes",
            "string",
            "strings.quote",
            "url",
            "lowerAscii",
            "upperAscii",
            "substring",
            "trim",
            "jsonpatch.escapeKey",
            "cidr",
            "isIP",
            "isCIDR",
            "ip",
            "quantity",
            "isQuantity",
            "semver",
            "isSemver",
        ),
        _read,
    ),
}

# --- what is in their results, where it is not a number or the like


def _parts(operands: Operands) -> SizeBound:
    """Bound what is made of the operands without repeating any of it."""
    return together(one.extent for one in operands)


def _text(operands: Operands) -> SizeBound:
    """Bound a text, or bytes, that stands for the operands."""
    return SizeBound(0.0, _ESCAPED * sum(one.extent.characters for one in operands) + _SLACK)


def _pieces(operands: Operands) -> SizeBound:
    """Bound the pieces of a text."""
    characters = sum(one.extent.characters for one in operands)
    return SizeBound(2 * characters + 2, 2 * characters, 2 * characters + 2)


def _replaced(operands: Operands) -> SizeBound:
    text, _, new = operands[:3]
    return SizeBound(0.0, text.extent.characters + (text.extent.characters + 1) * new.extent.characters)


def _join(operands: Operands) -> SizeBound:
    parts = operands[0].extent
    separator = operands[1].extent.characters if len(operands) > 1 else 0.0
    return SizeBound(0.0, parts.characters + parts.elements * separator)


def _formatted(operands: Operands) -> SizeBound:
    template, arguments = operands
    written = template.node.value if isinstance(template.node, Literal) else None
    if type(written) is not str or _LONG_PRECISION.search(written):
        return BOUNDLESS
    whole = arguments.extent
    return SizeBound(0.0, len(written) + _ESCAPED * whole.characters + _LONGEST_NUMBER * (whole.elements + 1))


def _range(operands: Operands) -> SizeBound:
    number = _number(operands[0])
    return SizeBound(number, 0.0, number)


def _faults(operands: Operands) -> SizeBound:
    return SizeBound(16.0, 4096.0 + _BYTES * operands[1].extent.characters, 16.0)


RESULTS: dict[str, _Result] = {
    **dict.fromkeys(
        (
            "_?_:_",
            "_+_",
            "@sortByAssociatedKeys",
            "charAt",
            "cidr",
            "distinct",
            "dyn",
            "find",
            "first",
            "flatten",
            "ip",
            "isSorted",
            "last",
            "lowerAscii",
            "masked",
            "max",
            "min",
            "optional.none",
            "optional.of",
            "optional.ofNonZeroValue",
            "optional.unwrap",
            "or",
            "@orValue",
            "orValue",
            "quantity",
            "reverse",
            "semver",
            "slice",
            "sort",
            "substring",
            "sum",
            "trim",
            "unwrapOpt",
            "upperAscii",
            "url",
            "value",
            "add",
            "sub",
        ),
        _parts,
    ),
    **dict.fromkeys(
        (
            "bytes",
            "string",
            "strings.quote",
            "jsonpatch.escapeKey",
            "getScheme",
            "getHost",
            "getHostname",
            "getPort",
            "getEscapedPath",
        ),
        _text,
    ),
    **dict.fromkeys(("split", "findAll", "getQuery"), _pieces),
    **dict.fromkeys(
        ("path", "group", "serviceAccount", "resource", "subresource", "namespace", "name", "check"),
        lambda _operands: NOTHING,
    ),
    **dict.fromkeys(("fieldSelector", "labelSelector", "format.named"), lambda _operands: NOTHING),
    **{f"format.{name}": (lambda _operands: NOTHING) for name in FORMATS},
    "replace": _replaced,
    "join": _join,
    "format": _formatted,
    "lists.range": _range,
    "validate": _faults,
}
