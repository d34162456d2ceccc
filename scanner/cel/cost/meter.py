"""What an evaluation has used so far: CEL cost, which the API server limits, and work, which keeps us from hanging.

Some loops and comparisons are nearly free of charge however much there is to do; upstream ends those when the request has taken
too long. Work is counted instead of time, so that the same evaluation always ends the same way.
"""

from __future__ import annotations

from scanner.cel.cost import prices
from scanner.cel.errors import CostExceeded, EvaluationError, EvaluationStopped, Interrupted
from scanner.cel.values.values import KeyedMap, Optional

MOST_WORK = 10_000_000
"""Iterations of loops, and values compared or printed inside other values. Upstream may do ten times as much in its time."""
LONGEST_TEXT = 1 << 24
"""Characters of a text that an evaluation makes; a text that is paid for has at most ten million."""
LONGEST_LIST = 1 << 22


class Meter:
    """Adds up; raises `CostExceeded` beyond the limit and `Interrupted` beyond all patience.

    `cost` stays readable after either, and may then be above the limit. `outcome` is what the counted evaluation came to,
    `stopped` the error that ended it early, if one did.
    """

    __slots__ = ("cost", "limit", "outcome", "stopped", "work")

    def __init__(self, limit: int = prices.PER_CALL_LIMIT) -> None:
        self.cost = 0
        self.limit = limit
        self.work = 0
        self.outcome: prices.Seen = None
        self.stopped: EvaluationStopped | None = None

    def spend(self, amount: int) -> None:
        """Add to the cost. Raises CostExceeded if the limit is exceeded."""
        self.cost = (self.cost + amount) % prices.WRAP
        if self.cost > self.limit:
            raise CostExceeded

    def add_work(self, amount: int) -> None:
        """Add to the work. Raises Interrupted if the limit of work is reached."""
        self.work += amount
        if self.work >= MOST_WORK:
            raise Interrupted

    def limit_size(self, value: prices.Seen) -> prices.Seen:
        """Return a new value; making a long one is work, and there is a limit."""
        if type(value) is str or type(value) is bytes:
            self._make_text(len(value))
        elif type(value) is list:
            self.add_work(len(value) >> 1 if len(value) <= LONGEST_LIST else MOST_WORK)
        return value

    def _make_text(self, length: int) -> None:
        self.add_work(length >> 3 if length <= LONGEST_TEXT else MOST_WORK)

    def check_result_size(self, function: str, values: tuple[prices.Seen, ...]) -> None:
        """Refuse a replacement whose result would be too long to make."""
        if function == "replace":
            self._make_text(_replaced(values))

    def walk(self, values: tuple[prices.Seen, ...], weight: int = 1) -> None:
        """Count the values inside values as work, before something looks at all of them."""
        waiting = [*values]
        while waiting:
            part = waiting.pop()
            if type(part) is str:
                self.add_work(weight * len(part) >> 3)
            elif type(part) is list:
                self.add_work(weight * len(part))
                waiting.extend(part)
            elif type(part) is dict or type(part) is KeyedMap:
                self.add_work(weight * len(part))
                waiting.extend(item for _, item in part.items())
            elif type(part) is Optional and not isinstance(part.value, EvaluationError):
                waiting.append(part.value)


def _replaced(values: tuple[prices.Seen, ...]) -> int:
    """Return the length of what replacing every occurrence gives."""
    text, old, new = values[:3]
    if type(text) is not str or type(old) is not str or type(new) is not str or len(new) <= len(old):
        return 0
    return text.count(old) * len(new)
