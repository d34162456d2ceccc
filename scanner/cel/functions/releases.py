"""What functions of other Kubernetes releases do differently from those of 1.36, which the files beside this one describe.

Mirrors the cel-go releases that Kubernetes 1.30 to 1.37 vendor, where their libraries were mended or tightened. Functions
that came or went as a whole say so themselves, see `Library.since`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import cidr, format, lists, quantity, strings
from scanner.cel.functions.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.cel.functions.cidr import Prefix
    from scanner.cel.functions.declaration import Function, Overload, Run
    from scanner.cel.values import Value

Version = tuple[int, int]
_FIRST: Version = (1, 0)
_LAST: Version = (2, 0)
_LONGEST_RANGE = 1_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """From `since` to before `until` an overload runs something else or, where `run` is None, does not exist."""

    overload: str
    run: Run | None
    since: Version = _FIRST
    until: Version = _LAST


def _outside(position: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {position}")


def _index_within(text: str, part: str, offset: int = 0) -> Value:
    """Search from an offset, which has to be one of the text's."""
    if part and not 0 <= offset < len(text):
        raise _outside(offset)
    return strings.index_of(text, part, offset)


def _last_index_within(text: str, part: str, offset: int | None = None) -> Value:
    if not part:
        return len(text) if offset is None else offset
    start = len(text) - 1 if offset is None else offset
    if not 0 <= start < len(text):
        raise _outside(start)
    return strings.last_index_before(text, part, start)


def _last_index_in_something(text: str, part: str) -> Value:
    if part and not text:
        raise _outside(-1)
    return strings.last_index_of(text, part)


def _index_clamped(text: str, part: str, offset: int) -> Value:
    if offset < 0:
        raise _outside(offset)
    return strings.index_of(text, part, min(offset, len(text)))


def _last_index_clamped(text: str, part: str, offset: int) -> Value:
    if offset < 0:
        raise _outside(offset)
    return strings.last_index_before(text, part, offset) if part else min(offset, len(text))


def _starts_with_cidr(prefix: Prefix, other: Prefix) -> bool:
    """Whether another network begins with this network's own address: the host bits were not masked."""
    masked = cidr.masked(prefix).address
    return prefix.length <= other.length and masked == other.address


def _in_place(compute: Callable[[Quantity, Quantity], Quantity]) -> Callable[[Quantity, Quantity], Quantity]:
    """Return arithmetic whose receiver, when it is a big decimal, becomes the result, with all that share it."""

    def run(left: Quantity, right: Quantity) -> Quantity:
        result = compute(left, right)
        if left.small:
            return result
        sharing = left.sharing or [left]
        sharing.append(result)
        for one in sharing:
            one.unscaled, one.exponent, one.sharing = result.unscaled, result.exponent, sharing
        return result

    return run


_add_in_place, _subtract_in_place = _in_place(quantity.add), _in_place(quantity.subtract)


def _range_within_bounds(size: int) -> Value:
    if size < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {size}")
    if size > _LONGEST_RANGE:
        raise EvaluationError(f"lists.range: size {size} exceeds maximum allowed ({_LONGEST_RANGE})")
    return lists.range_of(size)


DIFFERENCES = (
    Difference("string_index_of_string", _index_within, until=(1, 32)),
    Difference("string_index_of_string_int", _index_within, until=(1, 32)),
    Difference("string_last_index_of_string", _last_index_within, until=(1, 32)),
    Difference("string_last_index_of_string_int", _last_index_within, until=(1, 32)),
    Difference("string_last_index_of_string", _last_index_in_something, since=(1, 32), until=(1, 34)),
    Difference("string_index_of_string_int", _index_clamped, since=(1, 37)),
    Difference("string_last_index_of_string_int", _last_index_clamped, since=(1, 37)),
    Difference("cidr_contains_cidr", _starts_with_cidr, until=(1, 33)),
    Difference(
        "cidr_contains_cidr_string", lambda prefix, text: _starts_with_cidr(prefix, cidr.parse(text)), until=(1, 33)
    ),
    Difference("string_format", format.with_spaced_powers, until=(1, 33)),
    Difference("quantity_add", _add_in_place, until=(1, 37)),
    Difference("quantity_add_int", lambda one, two: _add_in_place(one, quantity.of_int(two)), until=(1, 37)),
    Difference("quantity_sub", _subtract_in_place, until=(1, 37)),
    Difference("quantity_sub_int", lambda one, two: _subtract_in_place(one, quantity.of_int(two)), until=(1, 37)),
    Difference("int64_to_duration", None, since=(1, 37)),
    Difference("lists_range", _range_within_bounds, since=(1, 37)),
)


def as_of(version: Version, functions: dict[str, Function]) -> dict[str, Function]:
    """Return functions as they are in a release."""
    known = {entry.overload: entry for entry in DIFFERENCES if entry.since <= version < entry.until}
    if not known:
        return functions
    return {name: _amended(function, known) for name, function in functions.items()}


def _amended(function: Function, known: dict[str, Difference]) -> Function:
    if not any(overload.id in known for overload in function.overloads):
        return function
    overloads = (_replaced(overload, known.get(overload.id)) for overload in function.overloads)
    return replace(function, overloads=tuple(overload for overload in overloads if overload is not None))


def _replaced(overload: Overload, difference: Difference | None) -> Overload | None:
    if difference is None:
        return overload
    return None if difference.run is None else replace(overload, run=difference.run)
