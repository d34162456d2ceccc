"""What calls cost at run time, in CEL's unit of cost.

Mirrors cel-go's `CostTracker.costCall` with the `CostEstimator` of `k8s.io/apiserver/pkg/cel/library` and the trackers of cel-go's
list and set extensions. Upstream looks for a rule by overload, then by the function's
name, then by overload again; what has none costs 1. An overload is only known where the checker left a single candidate.

Rules: `docs/semantics/cost.md#language`, `docs/semantics/cost.md#functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.authorizer import Authorizer, Decision, GroupCheck, PathCheck, ResourceCheck
from scanner.cel.functions.cidr import Prefix
from scanner.cel.functions.ip import Address
from scanner.cel.functions.named_formats import NamedFormat
from scanner.cel.functions.quantity import Quantity
from scanner.cel.functions.semver import Semver
from scanner.cel.functions.url import Url
from scanner.cel.releases import FUNCTION_COSTS, OPTIONALS_HAVE_SIZES, PREFIX_COSTS
from scanner.cel.values.values import KeyedMap, Lazy, Optional, Value

PER_CALL_LIMIT = 1_000_000
"""What one evaluation of one expression may cost."""
WRAP = 1 << 64
"""Costs are unsigned 64 bit numbers upstream, and wrap around."""
LIST_COST = 10
MAP_COST = 30
STRUCT_COST = 40
TRAVERSAL = 0.1
PATTERN = 0.25
CHECK_COST = 350_000

Seen: TypeAlias = "Value | EvaluationError"
"""An argument or a result as the tracker sees it: an error is a value like any other."""
Rule: TypeAlias = "Callable[[tuple[Seen, ...], Seen], int]"

_SIZED = frozenset({str, bytes, list, dict, KeyedMap})
_REQUIREMENT_COST = LIST_COST + STRUCT_COST
_LIST_CALL_COST = 1 + LIST_COST
_SIGN_BIT = 1 << 63
_EQUALITY = "_==_"


@dataclass(frozen=True, slots=True)
class Price:
    """How a call's cost is computed. `late` rules look at the result; all others can be charged before the call is made."""

    rule: Rule
    late: bool = False


def size(value: Seen) -> int:
    """Return a value's size: characters, bytes or entries; 1 for what has none."""
    if type(value) in _SIZED:
        return len(value)  # type: ignore[arg-type] # the set holds classes that have a length
    if type(value) is Address:
        return 4 if value.version == 4 else 16  # noqa: PLR2004 (IP versions)
    if type(value) is Prefix:
        return -(-value.length // 8)
    if isinstance(value, Lazy):
        return len(tuple(value.names()))
    return 1


def inner_size(value: Seen) -> int:
    """Return a value's size, that of what is inside for an optional."""
    while type(value) is Optional and value.present:
        value = value.value
    return size(value)


def tenth(number: float) -> int:
    """Return a tenth, rounded up: what it costs to traverse so many characters."""
    return math.ceil(number * TRAVERSAL)


def search_cost(characters: int, pattern: int) -> int:
    """Return what a search costs in so many characters for a pattern of such a length."""
    return math.ceil((1.0 + characters) * TRAVERSAL) * math.ceil(pattern * PATTERN)


def price(function: str, overload_id: str, version: tuple[int, int] = (1, 36)) -> Price:
    """Return the price of a call in a Kubernetes release; `overload_id` is empty where several overloads are possible."""
    if PREFIX_COSTS.holds(version) and overload_id in _WITH_PREFIX_COSTS:
        return _WITH_PREFIX_COSTS[overload_id]
    own = _BY_OVERLOAD if OPTIONALS_HAVE_SIZES.holds(version) else _WITHOUT_SIZES_OF_OPTIONALS
    if not FUNCTION_COSTS.holds(version):
        return _BY_TRACKED_OVERLOAD.get(overload_id) or own.get(overload_id) or ONE
    return (
        _BY_TRACKED_OVERLOAD.get(overload_id)
        or _BY_FUNCTION.get((function, overload_id))
        or _BY_FUNCTION.get(function)
        or own.get(_EQUALITY if function == _EQUALITY else overload_id)
        or ONE
    )


# --- the standard functions


def _one(_arguments: tuple[Seen, ...], _result: Seen) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class _Standard:
    """The rules of CEL's own functions, by what counts as the size of a value."""

    size: Callable[[Seen], int]

    def traversed(self, arguments: tuple[Seen, ...], _result: Seen) -> int:
        return tenth(self.size(arguments[0]))

    def members(self, arguments: tuple[Seen, ...], _result: Seen) -> int:
        return self.size(arguments[1])

    def compared(self, arguments: tuple[Seen, ...], _result: Seen) -> int:
        return tenth(min(self.size(arguments[0]), self.size(arguments[1])))

    def equal(self, arguments: tuple[Seen, ...], result: Seen) -> int:
        return 1 if type(arguments[0]) in _OPAQUE else self.compared(arguments, result)

    def concatenated(self, arguments: tuple[Seen, ...], _result: Seen) -> int:
        return tenth(self.size(arguments[0]) + self.size(arguments[1]))

    def matched(self, arguments: tuple[Seen, ...], _result: Seen) -> int:
        return search_cost(self.size(arguments[0]), self.size(arguments[1]))

    def contained(self, arguments: tuple[Seen, ...], _result: Seen) -> int:
        return tenth(self.size(arguments[0])) * tenth(self.size(arguments[1]))

    def prices(self) -> dict[str, Price]:
        """Return the price of each overload that has one."""
        return {
            **dict.fromkeys(_TRAVERSING, Price(self.traversed)),
            "in_list": Price(self.members),
            **dict.fromkeys(_COMPARISONS, Price(self.compared)),
            _EQUALITY: Price(self.equal),
            "add_string": Price(self.concatenated),
            "add_bytes": Price(self.concatenated),
            "matches_string": Price(self.matched),
            "contains_string": Price(self.contained),
        }


_STANDARD = _Standard(inner_size)


# --- Kubernetes' functions


_OPAQUE = frozenset(
    {
        Quantity,
        Address,
        Prefix,
        NamedFormat,
        Url,
        Semver,
        Authorizer,
        PathCheck,
        GroupCheck,
        ResourceCheck,
        Decision,
    }
)


def _checked(_arguments: tuple[Seen, ...], _result: Seen) -> int:
    return CHECK_COST


def _selected(arguments: tuple[Seen, ...], _result: Seen) -> int:
    length = size(arguments[1])
    return LIST_COST + tenth(length) + math.ceil(math.ceil(length * 0.5) * float(_REQUIREMENT_COST))


def _walked(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return traversal(arguments[0])


def traversal(value: Seen) -> int:
    """Return what it costs to walk a whole value: 1 for each number, a tenth of its bytes for each string, rounded down."""
    total = 0
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if type(part) is str:
            total += int(len(part.encode("utf-8", "surrogatepass")) * TRAVERSAL)
        elif type(part) is bytes:
            total += int(len(part) * TRAVERSAL)
        elif type(part) is list:
            waiting.extend(part)
        elif type(part) is dict or type(part) is KeyedMap:
            waiting.extend(side for entry in part.items() for side in entry)
        else:
            total += 1
    return total


def _read(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return tenth(size(arguments[0]))


def _rewritten(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return tenth(float(size(arguments[0])) * 2)


def _joined(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return tenth(float(_joined_length(*arguments)) * 2)


def _joined_length(parts: Seen, separator: Seen = "") -> int:
    """Return the length of a text before it is made; a failed call counts as one character."""
    if type(parts) is not list or type(separator) is not str or any(type(part) is not str for part in parts):
        return 1
    return sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)


def _found(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return search_cost(size(arguments[0]), size(arguments[1]))


def _contains_ip(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return tenth(2 * size(arguments[0]))


def _contains_ip_text(arguments: tuple[Seen, ...], result: Seen) -> int:
    return _contains_ip(arguments, result) + tenth(size(arguments[1]))


def _contains_cidr(arguments: tuple[Seen, ...], result: Seen) -> int:
    return _contains_ip(arguments, result) + tenth(size(arguments[0])) + 1


def _contains_cidr_text(arguments: tuple[Seen, ...], result: Seen) -> int:
    return _contains_cidr(arguments, result) + tenth(size(arguments[1]))


def _validated(arguments: tuple[Seen, ...], _result: Seen) -> int:
    format_ = arguments[0]
    return search_cost(size(arguments[1]), format_.complexity) if type(format_) is NamedFormat else 1


# --- the list and set extensions


def _as_unsigned(number: float) -> int:
    """Return what Go on amd64 makes of a float converted to an unsigned number; out of range that is the highest bit."""
    return int(number) % WRAP if -_SIGN_BIT < number < WRAP else _SIGN_BIT


def _list_call(factor: float, length: int) -> int:
    return (_as_unsigned(float(length) * factor) + _LIST_CALL_COST) % WRAP


def _output(_arguments: tuple[Seen, ...], result: Seen) -> int:
    return _list_call(1.0, size(result))


def _ranged(arguments: tuple[Seen, ...], _result: Seen) -> int:
    count = arguments[0]
    return _list_call(1.0, max(count, 0) if type(count) is int else 1)


def _ranged_or_refused(arguments: tuple[Seen, ...], result: Seen) -> int:
    """Charge for the list, or for the error that takes its place."""
    return _list_call(1.0, 1) if isinstance(result, EvaluationError) else _ranged(arguments, result)


def _flattened(arguments: tuple[Seen, ...], _result: Seen) -> int:
    depth = arguments[1] if len(arguments) > 1 else 1
    return _list_call(float(depth) if type(depth) is int else 1.0, size(arguments[0]))


def _flattened_or_refused(arguments: tuple[Seen, ...], result: Seen) -> int:
    depth = arguments[1]
    if type(depth) is int and depth < 0:
        return _list_call(1.0, size(arguments[0]))
    return _flattened(arguments, result)


def _affixed(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return tenth(inner_size(arguments[1]))


def _self_compared(elements: Seen) -> int:
    length = size(elements)
    if type(elements) is list and elements and type(elements[0]) in (str, bytes):
        return _list_call(2.0 + TRAVERSAL, length * length)
    return _list_call(2.0, length * length)


def _sorted(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return _self_compared(arguments[0])


def _sorted_by(arguments: tuple[Seen, ...], _result: Seen) -> int:
    return _self_compared(arguments[1])


def _crossed(times: int) -> Rule:
    return lambda arguments, _result: 1 + times * size(arguments[0]) * size(arguments[1])


# --- the tables

ONE = Price(_one)
_ELEMENTS = (
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "string",
    "uint",
)
_BY_TRACKED_OVERLOAD = {
    "list_slice": Price(_output, late=True),
    "list_flatten": Price(_flattened),
    "list_flatten_int": Price(_flattened),
    "lists_range": Price(_ranged),
    "list_reverse": Price(_output, late=True),
    "list_distinct": Price(_sorted),
    **{f"list_{name}_sort": Price(_sorted) for name in _ELEMENTS},
    **{f"list_{name}_sortByAssociatedKeys": Price(_sorted_by) for name in _ELEMENTS},
    "list_sets_contains_list": Price(_crossed(1)),
    "list_sets_intersects_list": Price(_crossed(1)),
    "list_sets_equivalent_list": Price(_crossed(2)),
}
_READING = (
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
)
_BY_FUNCTION: dict[object, Price] = {
    "check": Price(_checked),
    "fieldSelector": Price(_selected),
    "labelSelector": Price(_selected),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), Price(_walked)),
    **dict.fromkeys(_READING, Price(_read)),
    ("ip", "cidr_ip"): ONE,
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), Price(_rewritten)),
    "join": Price(_joined),
    "find": Price(_found),
    "findAll": Price(_found),
    "containsIP": Price(_contains_ip),
    ("containsIP", "cidr_contains_ip_string"): Price(_contains_ip_text),
    "containsCIDR": Price(_contains_cidr),
    ("containsCIDR", "cidr_contains_cidr_string"): Price(_contains_cidr_text),
    "validate": Price(_validated),
}
_TRAVERSING = (
    "starts_with_string",
    "ends_with_string",
    "string_to_bytes",
    "bytes_to_string",
    "strings_quote",
    "string_format",
)
_COMPARISONS = (
    *(
        f"{name}_{kind}"
        for name in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    ),
    "equals",
    "not_equals",
)
_BY_OVERLOAD = _STANDARD.prices()
_WITHOUT_SIZES_OF_OPTIONALS = _Standard(size).prices()
_WITH_PREFIX_COSTS = {
    "starts_with_string": Price(_affixed),
    "ends_with_string": Price(_affixed),
    "matches": Price(_STANDARD.matched),
    "list_flatten_int": Price(_flattened_or_refused),
    "lists_range": Price(_ranged_or_refused, late=True),
    "dyn_includes": Price(_walked),
}
