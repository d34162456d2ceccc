"""The vocabulary of function prices: the exact cost of a call at run time, and its maximum before evaluation.

Mirrors `CostTracker.costCall` of cel-go's `interpreter/runtimecost.go` with `CostEstimator.CallCost` of apiserver's
`pkg/cel/library/cost.go` and the trackers of cel-go's list and set extensions. A library declares a `Cost` for each function, and
a `Price` for an overload whose price differs. `scanner.cel.cost` interprets both. All costs are in cost units. A bound follows the
same rule, rounds up at every step, and adds the work that upstream does not charge.

Rules: `docs/semantics/cost.md#functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from scanner.cel.errors import EvaluationError
from scanner.cel.releases import FIRST, FUNCTION_COSTS, OPTIONALS_HAVE_SIZES, ReleaseChange, Version
from scanner.cel.syntax.tree import Literal
from scanner.cel.values.extent import UNKNOWN, SizeBound
from scanner.cel.values.values import KeyedMap, Opaque, Optional, Value

if TYPE_CHECKING:
    from scanner.cel.syntax.tree import Node

WRAP = 1 << 64
"""Costs are unsigned 64 bit numbers upstream, and wrap around."""
LIST_COST = 10
MAP_COST = 30
STRUCT_COST = 40
TRAVERSAL = 0.1
PATTERN = 0.25

Outcome: TypeAlias = "Value | EvaluationError"
"""An argument or a result as the tracker receives it: an error is a value like any other."""
Arguments: TypeAlias = "tuple[Outcome, ...]"
Rule: TypeAlias = "Callable[[Arguments, Outcome], int]"
"""The cost of a call from its arguments and its result; only late rules get the result."""
_Measure: TypeAlias = "Callable[[Outcome], int]"

_SIZED = frozenset({str, bytes, list, dict, KeyedMap})
_BYTES = 4.0
"""Bytes that a character takes in UTF-8, at most."""


@dataclass(frozen=True, slots=True)
class Price:
    """The rule for the cost of a call.

    `late` rules read the result; all others can be charged before the call is made. The price holds from the release `since`
    on; `before` is the price of earlier ones, None where those have no price of their own for such a call.
    """

    rule: Rule
    late: bool = False
    since: Version = FIRST
    before: Price | None = None

    def price_in(self, version: Version) -> Price | None:
        """Return the price of a release; None where a call costs 1 there."""
        price: Price | None = self
        while price is not None and version < price.since:
            price = price.before
        return price

    def begin_with(self, change: ReleaseChange, before: Price | None = None) -> Price:
        """Return the price as one that comes with a change; `before` is the price of earlier releases."""
        return replace(self, since=change.since, before=before)


class Operand(NamedTuple):
    """An argument of a call before it is evaluated: its extent, its expression, and whether that is constant."""

    extent: SizeBound
    node: Node
    is_constant: bool

    @property
    def read(self) -> float:
        """The maximum cost of reading the operand completely, in cost units."""
        return self.extent.span / 10 + 1

    @property
    def number(self) -> float:
        """The number of a literal that is not negative; `UNKNOWN` for any other operand."""
        value = self.node.value if isinstance(self.node, Literal) else None
        return float(value) if type(value) is int and value >= 0 else UNKNOWN


Operands: TypeAlias = tuple[Operand, ...]
Bound: TypeAlias = "Callable[[Operands], float]"
"""The highest cost of a call, from the extents of its operands."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a call that is not charged, in iterations of a loop.

    It reads everything inside its arguments, `weight` times as slow as an iteration; with `shortest`, only inside the
    argument that ends a comparison first. `characters` is the length of the text that it makes, in code points, where that may be
    too long.
    """

    weight: int = 0
    shortest: bool = False
    characters: Callable[[tuple[Value, ...]], int] | None = None


NO_WORK = Work()
COMPARING = Work(weight=2)
COMPARING_SHORTEST = Work(weight=2, shortest=True)
PRINTING = Work(weight=4)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a function: of each call (unless its overload has another price), and the maximum of any call.

    `bound` None: unknown, so that an evaluation with such a call is always counted.
    """

    price: Price
    bound: Bound | None
    work: Work = NO_WORK

    def add_work(self, work: Work) -> Cost:
        """Return the cost with work that is not charged."""
        return replace(self, work=work)

    def begin_with(self, change: ReleaseChange) -> Cost:
        """Return the cost with a price that comes with a change; before it, a call costs 1."""
        return replace(self, price=self.price.begin_with(change))


# --- sizes


def measure_size(value: Outcome) -> int:
    """Return a value's size: code points, bytes or entries; 1 for a value without a size, errors included.

    Mirrors `actualSize` of cel-go's `interpreter/runtimecost.go`.
    """
    if type(value) in _SIZED:
        return len(value)  # type: ignore[arg-type] # the set holds classes that have a length
    return value.cost_size() if isinstance(value, Opaque) else 1


def measure_inner_size(value: Outcome) -> int:
    """Return a value's size as from 1.33 on; of an optional, the size of its content."""
    while type(value) is Optional and value.present:
        value = value.value
    return measure_size(value)


def take_tenth(number: float) -> int:
    """Return a tenth, rounded up: the cost of reading so many code points."""
    return math.ceil(number * TRAVERSAL)


def price_search(characters: int, pattern: int) -> int:
    """Return the cost of a search in so many code points for a pattern of such a length in code points."""
    return math.ceil((1.0 + characters) * TRAVERSAL) * math.ceil(pattern * PATTERN)


def measure_traversal(value: Outcome) -> int:
    """Return the cost of walking a whole value: 1 for each number, a tenth of its bytes for each string, rounded down.

    Mirrors `traversalCost` of apiserver's `pkg/cel/library/cost.go`.
    """
    total = 0
    stack = [value]
    while stack:
        part = stack.pop()
        if type(part) is str:
            total += int(len(part.encode("utf-8", "surrogatepass")) * TRAVERSAL)
        elif type(part) is bytes:
            total += int(len(part) * TRAVERSAL)
        elif type(part) is list:
            stack.extend(part)
        elif type(part) is dict or type(part) is KeyedMap:
            stack.extend(side for pair in part.items() for side in pair)
        else:
            total += 1
    return total


# --- bounds


def limit_cost(amount: float) -> Bound:
    """Return the bound of calls that cost at most so many cost units."""
    return lambda _operands: amount


def bound_read(operands: Operands) -> float:
    """Return the maximum cost of a call that reads its first operand."""
    return operands[0].read


def bound_reads(operands: Operands) -> float:
    """Return the maximum cost of a call that reads all its operands."""
    return sum(operand.read for operand in operands)


def bound_rewrite(operands: Operands) -> float:
    """Return the maximum cost of a call that makes a text of its operands."""
    return 2 * bound_reads(operands)


def bound_print(operands: Operands) -> float:
    """Return the maximum cost of a call that prints its operands with their contents."""
    return sum(operand.read + operand.extent.elements for operand in operands)


def bound_walk(operands: Operands) -> float:
    """Return the maximum cost of a call that walks its first operand with its contents."""
    whole = operands[0].extent
    return 1 + 2 * whole.elements + _BYTES * whole.characters / 10


def bound_comparison(operands: Operands) -> float:
    """Return the maximum cost of a comparison, which ends with the smaller operand: a constant operand where there is one."""
    smaller = next((operand for operand in operands if operand.is_constant), operands[0])
    return smaller.read + smaller.extent.elements


def bound_search(operands: Operands) -> float:
    """Return the maximum cost of a search in the first operand for the pattern of the second."""
    return (operands[0].read + 1) * (operands[1].extent.span / 4 + 1)


# --- prices


def make_price(rule: Rule, *, late: bool = False) -> Price:
    """Return the price that a rule of Kubernetes' own estimator computes, which came with `FUNCTION_COSTS`.

    `late`: the rule reads the result of the call.
    """
    return Price(rule, late).begin_with(FUNCTION_COSTS)


def _price_by_size(rule: Callable[[_Measure], Rule]) -> Price:
    """Return a price of CEL's own functions, by what counts as the size of a value in a release."""
    return Price(rule(measure_inner_size)).begin_with(OPTIONALS_HAVE_SIZES, before=Price(rule(measure_size)))


def _price_read(measure: _Measure) -> Rule:
    return lambda arguments, _result: take_tenth(measure(arguments[0]))


def _price_comparison(measure: _Measure) -> Rule:
    return lambda arguments, _result: take_tenth(min(measure(arguments[0]), measure(arguments[1])))


def _price_equality(measure: _Measure) -> Rule:
    compare = _price_comparison(measure)

    def rule(arguments: Arguments, result: Outcome) -> int:
        first = arguments[0]
        return 1 if isinstance(first, Opaque) and first.EQUAL_AT_ONCE else compare(arguments, result)

    return rule


def _price_join(measure: _Measure) -> Rule:
    return lambda arguments, _result: take_tenth(measure(arguments[0]) + measure(arguments[1]))


def _price_search(measure: _Measure) -> Rule:
    return lambda arguments, _result: price_search(measure(arguments[0]), measure(arguments[1]))


def _price_find(measure: _Measure) -> Rule:
    return lambda arguments, _result: take_tenth(measure(arguments[0])) * take_tenth(measure(arguments[1]))


def _price_visit(measure: _Measure) -> Rule:
    return lambda arguments, _result: measure(arguments[1])


def _make_equality_price() -> Price:
    """Return the price of `==`: Kubernetes' estimator makes an exception for its own types."""
    before = Price(_price_comparison(measure_size))
    first = Price(_price_equality(measure_size)).begin_with(FUNCTION_COSTS, before)
    return Price(_price_equality(measure_inner_size)).begin_with(OPTIONALS_HAVE_SIZES, first)


UNIT = Price(lambda _arguments, _result: 1)
TRAVERSED = _price_by_size(_price_read)
COMPARED = _price_by_size(_price_comparison)
EQUATED = _make_equality_price()
CONCATENATED = _price_by_size(_price_join)
SEARCHED = _price_by_size(_price_search)
CONTAINED = _price_by_size(_price_find)
VISITED = _price_by_size(_price_visit)
AFFIXED = Price(lambda arguments, _result: take_tenth(measure_inner_size(arguments[1])))
"""The cost of a prefix or suffix test: a tenth of the argument's length."""
READ_PRICE = make_price(lambda arguments, _result: take_tenth(measure_size(arguments[0])))
WALKED_PRICE = make_price(lambda arguments, _result: measure_traversal(arguments[0]))

ONE = Cost(UNIT, limit_cost(1.0))
"""The price of a call that costs 1, for any arguments."""
READ = Cost(READ_PRICE, bound_read)
REWRITTEN = Cost(
    make_price(lambda arguments, _result: take_tenth(float(measure_size(arguments[0])) * 2)), bound_rewrite
)
WALKED = Cost(WALKED_PRICE, bound_walk)
SEARCHED_IN = Cost(
    make_price(lambda arguments, _result: price_search(measure_size(arguments[0]), measure_size(arguments[1]))),
    bound_search,
)
SOUGHT = Cost(WALKED_PRICE, lambda operands: bound_walk(operands) + bound_print(operands), work=COMPARING)
"""An element, or a part of a text, is looked for from one end to the other."""
CONVERTED = Cost(UNIT, bound_read)
"""A conversion costs 1, unless it is one between texts and bytes."""
