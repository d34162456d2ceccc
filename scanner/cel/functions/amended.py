"""The differences of functions in other Kubernetes releases from 1.36, which the files beside this one describe.

`scanner.cel.releases` has the releases; here are the replacements. Libraries that were added or removed declare that, see
`Library.since`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import cidr, format, lists, named_formats, quantity, strings, url
from scanner.cel.functions.quantity import Quantity
from scanner.cel.releases import (
    BOUNDED_RANGES,
    CLAMPED_SEARCH,
    COPIED_QUANTITIES,
    EMPTY_SEARCH,
    IN_TURN,
    LABEL_KEYS,
    LAST_INDEX_IN_NOTHING,
    NO_NUMBERS_AS_DURATIONS,
    ONE_COLON,
    OPTIONAL_TYPE,
    OVERLAPPING_CIDR,
    PLAIN_POWERS,
    STRICT_TIMESTAMPS,
    ReleaseChange,
    Version,
)
from scanner.cel.values import conversions

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.cel.functions.cidr import Prefix
    from scanner.cel.functions.declaration import Function, Overload, Run
    from scanner.cel.values.values import Value

_LONGEST_RANGE = 1_000_000


@dataclass(frozen=True, slots=True)
class Amendment:
    """An amendment of an overload while a change holds, or with `before` until it holds: `run` replaces it, None removes it."""

    change: ReleaseChange
    overload: str
    run: Run | None
    before: bool = False

    def holds(self, version: Version) -> bool:
        """Return whether the amendment applies to a release."""
        return self.change.holds(version) is not self.before


def _make_outside(position: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {position}")


def _index_within(text: str, part: str, offset: int = 0) -> Value:
    """Search from an offset, which has to be one of the text's."""
    if part and not 0 <= offset < len(text):
        raise _make_outside(offset)
    return strings.index_of(text, part, offset)


def _last_index_within(text: str, part: str, offset: int | None = None) -> Value:
    if not part:
        return len(text) if offset is None else offset
    start = len(text) - 1 if offset is None else offset
    if not 0 <= start < len(text):
        raise _make_outside(start)
    return strings.last_index_before(text, part, start)


def _last_index_in_nonempty(text: str, part: str) -> Value:
    if part and not text:
        raise _make_outside(-1)
    return strings.last_index_of(text, part)


def _index_clamped(text: str, part: str, offset: int) -> Value:
    if offset < 0:
        raise _make_outside(offset)
    return strings.index_of(text, part, min(offset, len(text)))


def _last_index_clamped(text: str, part: str, offset: int) -> Value:
    if offset < 0:
        raise _make_outside(offset)
    return strings.last_index_before(text, part, offset) if part else min(offset, len(text))


def _starts_with_cidr(prefix: Prefix, other: Prefix) -> bool:
    """Return whether a network contains another network's own address: its host bits were not masked."""
    return prefix.length <= other.length and cidr.mask(prefix).address.equals(other.address)


def _compute_in_place(compute: Callable[[Quantity, Quantity], Quantity]) -> Callable[[Quantity, Quantity], Quantity]:
    """Return arithmetic whose receiver, when it is a big decimal, becomes the result, with all quantities that share it."""

    def run(left: Quantity, right: Quantity) -> Quantity:
        result = compute(left, right)
        if left.small:
            return result
        sharing = left.sharing or [left]
        sharing.append(result)
        for quantity_ in sharing:
            quantity_.unscaled, quantity_.exponent, quantity_.sharing = result.unscaled, result.exponent, sharing
        return result

    return run


_add_in_place, _subtract_in_place = _compute_in_place(quantity.add), _compute_in_place(quantity.subtract)


def _range_within_bounds(size: int) -> Value:
    if size < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {size}")
    if size > _LONGEST_RANGE:
        raise EvaluationError(f"lists.range: size {size} exceeds maximum allowed ({_LONGEST_RANGE})")
    return lists.make_range(size)


def _amend_before(change: ReleaseChange, overload: str, run: Run) -> Amendment:
    return Amendment(change, overload, run, before=True)


def _make_constant(value: Value) -> Run:
    return lambda: value


AMENDMENTS = (
    _amend_before(EMPTY_SEARCH, "string_index_of_string", _index_within),
    _amend_before(EMPTY_SEARCH, "string_index_of_string_int", _index_within),
    _amend_before(EMPTY_SEARCH, "string_last_index_of_string", _last_index_within),
    _amend_before(EMPTY_SEARCH, "string_last_index_of_string_int", _last_index_within),
    Amendment(LAST_INDEX_IN_NOTHING, "string_last_index_of_string", _last_index_in_nonempty),
    Amendment(CLAMPED_SEARCH, "string_index_of_string_int", _index_clamped),
    Amendment(CLAMPED_SEARCH, "string_last_index_of_string_int", _last_index_clamped),
    _amend_before(OVERLAPPING_CIDR, "cidr_contains_cidr", _starts_with_cidr),
    _amend_before(
        OVERLAPPING_CIDR, "cidr_contains_cidr_string", lambda prefix, text: _starts_with_cidr(prefix, cidr.parse(text))
    ),
    _amend_before(PLAIN_POWERS, "string_format", format.format_before_1_33),
    _amend_before(OPTIONAL_TYPE, "string_format", format.format_before_1_31),
    _amend_before(ONE_COLON, "string_to_url", url.parse_loosely),
    _amend_before(ONE_COLON, "is_url_string", url.is_loose_url),
    _amend_before(ONE_COLON, "format.uri", _make_constant(named_formats.LOOSE_FORMATS["uri"])),
    _amend_before(ONE_COLON, "format-named", named_formats.make_lookup(named_formats.LOOSE_FORMATS)),
    *(
        _amend_before(LABEL_KEYS, f"format.{name}", _make_constant(first))
        for name, first in named_formats.FIRST_FORMATS.items()
    ),
    _amend_before(LABEL_KEYS, "format-named", named_formats.make_lookup(named_formats.FIRST_FORMATS)),
    _amend_before(COPIED_QUANTITIES, "quantity_add", _add_in_place),
    _amend_before(
        COPIED_QUANTITIES, "quantity_add_int", lambda left, right: _add_in_place(left, quantity.make_from_int(right))
    ),
    _amend_before(COPIED_QUANTITIES, "quantity_sub", _subtract_in_place),
    _amend_before(
        COPIED_QUANTITIES,
        "quantity_sub_int",
        lambda left, right: _subtract_in_place(left, quantity.make_from_int(right)),
    ),
    Amendment(NO_NUMBERS_AS_DURATIONS, "int64_to_duration", None),
    Amendment(BOUNDED_RANGES, "lists_range", _range_within_bounds),
    Amendment(STRICT_TIMESTAMPS, "string_to_timestamp", conversions.to_timestamp_strictly),
)


def amend_functions(version: Version, functions: dict[str, Function]) -> dict[str, Function]:
    """Return functions, by name, with the overloads of a release."""
    amendments = {amendment.overload: amendment for amendment in AMENDMENTS if amendment.holds(version)}
    amended = {name: _amend(function, amendments) for name, function in functions.items()} if amendments else functions
    if not IN_TURN.holds(version):
        return amended
    return {name: replace(function, in_turn=True) for name, function in amended.items()}


def _amend(function: Function, amendments: dict[str, Amendment]) -> Function:
    if not any(overload.id in amendments for overload in function.overloads):
        return function
    overloads = (_replace(overload, amendments.get(overload.id)) for overload in function.overloads)
    return replace(function, overloads=tuple(overload for overload in overloads if overload is not None))


def _replace(overload: Overload, amendment: Amendment | None) -> Overload | None:
    if amendment is None:
        return overload
    return None if amendment.run is None else replace(overload, run=amendment.run)
