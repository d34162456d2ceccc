"""The usage of an evaluation: CEL cost, which the API server limits, and work, which Assay limits so that it does not hang.

Some loops and comparisons cost almost nothing for any amount of data; upstream ends those at the timeout of the request. Work is
counted instead of time, so that the same evaluation always has the same result.

Rules: `docs/semantics/cost.md#limits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.errors import CostExceeded, EvaluationError, EvaluationStopped, Interrupted
from scanner.cel.functions.pricing import WRAP
from scanner.cel.values.values import KeyedMap, Optional

if TYPE_CHECKING:
    from scanner.cel.functions.pricing import Outcome

PER_CALL_LIMIT = 1_000_000
"""The maximum cost of one evaluation of one expression."""
MOST_WORK = 10_000_000
"""Iterations of loops, and values compared or printed inside other values. Upstream may do ten times as much in its time."""
LONGEST_TEXT = 1 << 24
"""Characters of a text that an evaluation makes; a text whose cost is charged has at most ten million."""
LONGEST_LIST = 1 << 22


class Meter:
    """A counter; raises `CostExceeded` above the cost limit and `Interrupted` above the work limit.

    `cost` is in cost units, `work` in iterations of loops. Both stay readable after either error, and may then be above the limit.
    `outcome` is the value or the error of the counted evaluation, `stopped` the error that ended it early, if one did.
    """

    __slots__ = ("cost", "limit", "outcome", "stopped", "work")

    def __init__(self, limit: int = PER_CALL_LIMIT) -> None:
        self.cost = 0
        self.limit = limit
        self.work = 0
        self.outcome: Outcome = None
        self.stopped: EvaluationStopped | None = None

    def spend(self, amount: int) -> None:
        """Add cost units, modulo 2^64 as upstream. Raises CostExceeded if the limit is exceeded."""
        self.cost = (self.cost + amount) % WRAP
        if self.cost > self.limit:
            raise CostExceeded

    def add_work(self, amount: int) -> None:
        """Add iterations to the work. Raises Interrupted if the limit of work is reached."""
        self.work += amount
        if self.work >= MOST_WORK:
            raise Interrupted

    def limit_size(self, value: Outcome) -> Outcome:
        """Return a new value unchanged, and add the work of making it. Raises Interrupted for a text or list that is too long."""
        if type(value) is str or type(value) is bytes:
            self.make_text(len(value))
        elif type(value) is list:
            self.add_work(len(value) >> 1 if len(value) <= LONGEST_LIST else MOST_WORK)
        return value

    def make_text(self, length: int) -> None:
        """Add the work of making a text of so many code points or bytes. Raises Interrupted for more than `LONGEST_TEXT`."""
        self.add_work(length >> 3 if length <= LONGEST_TEXT else MOST_WORK)

    def walk(self, values: tuple[Outcome, ...], weight: int = 1) -> None:
        """Add the work of reading values with all values inside them, before a call does; `weight` multiplies it.

        Raises Interrupted if the limit of work is reached.
        """
        stack = [*values]
        while stack:
            part = stack.pop()
            if type(part) is str:
                self.add_work(weight * len(part) >> 3)
            elif type(part) is list:
                self.add_work(weight * len(part))
                stack.extend(part)
            elif type(part) is dict or type(part) is KeyedMap:
                self.add_work(weight * len(part))
                stack.extend(item for _, item in part.items())
            elif type(part) is Optional and not isinstance(part.value, EvaluationError):
                stack.append(part.value)
