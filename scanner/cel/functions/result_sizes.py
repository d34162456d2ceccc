"""The maximum extent of a function's result, from the extents of its operands.

A function whose result is a number, a bool or the like needs no such rule. A function without one may return anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.values.extent import NOTHING, SizeBound, combine_extents

if TYPE_CHECKING:
    from scanner.cel.functions.pricing import Operands

ResultSize: TypeAlias = "Callable[[Operands], SizeBound]"
ESCAPED = 8.0
"""Characters that a character may take when it is escaped."""
_SLACK = 64.0
"""Characters of a printed number, time or address."""


def nothing(_operands: Operands) -> SizeBound:
    """Return the extent of a value without parts that an expression can read."""
    return NOTHING


def parts(operands: Operands) -> SizeBound:
    """Return the maximum extent of a value that contains parts of the operands without repetition."""
    return combine_extents(operand.extent for operand in operands)


def text(operands: Operands) -> SizeBound:
    """Return the maximum extent of a text, or bytes, that represents the operands."""
    return SizeBound(0.0, ESCAPED * sum(operand.extent.characters for operand in operands) + _SLACK)


def pieces(operands: Operands) -> SizeBound:
    """Return the maximum extent of a list of the pieces of a text."""
    characters = sum(operand.extent.characters for operand in operands)
    return SizeBound(2 * characters + 2, 2 * characters, 2 * characters + 2)
