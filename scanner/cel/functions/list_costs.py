"""The costs of the functions of cel-go's list extension.

Rules: `docs/semantics/cost.md#functions`.
"""

from __future__ import annotations

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.pricing import (
    LIST_COST,
    TRAVERSAL,
    UNIT,
    WRAP,
    Arguments,
    Cost,
    Operands,
    Outcome,
    Price,
    Rule,
    size,
)
from scanner.cel.releases import PREFIX_COSTS
from scanner.cel.values.extent import SizeBound

_CALL_COST = 1 + LIST_COST
_SIGN_BIT = 1 << 63


def _as_unsigned(number: float) -> int:
    """Return a float converted to an unsigned number as Go on amd64 does; out of range that is the highest bit."""
    return int(number) % WRAP if -_SIGN_BIT < number < WRAP else _SIGN_BIT


def _call(factor: float, length: int) -> int:
    return (_as_unsigned(float(length) * factor) + _CALL_COST) % WRAP


def _by_result(_arguments: Arguments, result: Outcome) -> int:
    return _call(1.0, size(result))


def _numbered(arguments: Arguments, _result: Outcome) -> int:
    count = arguments[0]
    return _call(1.0, max(count, 0) if type(count) is int else 1)


def _numbered_or_refused(arguments: Arguments, result: Outcome) -> int:
    """Charge for the list, or for the error in its place."""
    return _call(1.0, 1) if isinstance(result, EvaluationError) else _numbered(arguments, result)


def _flattened(arguments: Arguments, _result: Outcome) -> int:
    depth = arguments[1] if len(arguments) > 1 else 1
    return _call(float(depth) if type(depth) is int else 1.0, size(arguments[0]))


def _flattened_or_refused(arguments: Arguments, result: Outcome) -> int:
    depth = arguments[1]
    if type(depth) is int and depth < 0:
        return _call(1.0, size(arguments[0]))
    return _flattened(arguments, result)


def _self_compared(keys: int) -> Rule:
    """Return the price of a function that compares each element of one of its arguments with every other element."""

    def rule(arguments: Arguments, _result: Outcome) -> int:
        elements = arguments[keys]
        length = size(elements)
        if type(elements) is list and elements and type(elements[0]) in (str, bytes):
            return _call(2.0 + TRAVERSAL, length * length)
        return _call(2.0, length * length)

    return rule


BY_RESULT = Price(_by_result, late=True)
FLATTENED = Price(_flattened)
FLATTENED_OR_REFUSED = Price(_flattened_or_refused).beginning(PREFIX_COSTS, before=FLATTENED)
NUMBERED = Price(_numbered_or_refused, late=True).beginning(PREFIX_COSTS, before=Price(_numbered))
SELF_COMPARED = Price(_self_compared(0))
KEYS_COMPARED = Price(_self_compared(1))


def numbers(operands: Operands) -> SizeBound:
    """Return the extent of a list of numbers, whose length is the operand."""
    count = operands[0].number
    return SizeBound(count, 0.0, count)


def _bound_of_copying(operands: Operands) -> float:
    return operands[0].extent.span + LIST_COST + 2


def _bound_of_numbering(operands: Operands) -> float:
    return operands[0].number + LIST_COST + 2


def _bound_of_flattening(operands: Operands) -> float:
    depth = operands[1].number if len(operands) > 1 else 1.0
    return operands[0].extent.span * depth + LIST_COST + 2


def _bound_of_sorting(operands: Operands) -> float:
    span = sum(operand.extent.span for operand in operands)
    return 2.1 * span * span + LIST_COST + 2


COPIED = Cost(UNIT, _bound_of_copying)
FLATTENING = Cost(UNIT, _bound_of_flattening)
NUMBERING = Cost(UNIT, _bound_of_numbering)
SORTED = Cost(UNIT, _bound_of_sorting)
