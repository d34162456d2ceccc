"""What an evaluation has used so far: CEL cost, which the API server limits, and work, which keeps us from hanging.

Some loops and comparisons are nearly free of charge however much there is to do; upstream ends those when the request has taken
too long. Work is counted instead of time, so that the same evaluation always ends the same way.
"""

from __future__ import annotations

from scanner.cel import cost
from scanner.cel.errors import CostExceeded, EvaluationError, EvaluationStopped, Interrupted
from scanner.cel.values import KeyedMap, Optional

MOST_WORK = 20_000_000
"""Iterations of loops, and values compared or printed inside other values."""
_COPIED_AT_ONCE = 5
"""Two to this power characters or elements are copied in the time that one value takes to be looked at."""
_LENGTHY = frozenset({str, bytes, list})


class Meter:
    """Adds up; raises `CostExceeded` beyond the limit and `Interrupted` beyond all patience.

    `cost` stays readable after either, and may then be above the limit. `outcome` is what the counted evaluation came to,
    `stopped` the error that ended it early, if one did.
    """

    __slots__ = ("cost", "limit", "outcome", "stopped", "work")

    def __init__(self, limit: int = cost.PER_CALL_LIMIT) -> None:
        self.cost = 0
        self.limit = limit
        self.work = 0
        self.outcome: cost.Seen = None
        self.stopped: EvaluationStopped | None = None

    def spend(self, amount: int) -> None:
        """Add to the cost."""
        self.cost = (self.cost + amount) % cost.WRAP
        if self.cost > self.limit:
            raise CostExceeded

    def labour(self, amount: int) -> None:
        """Add to the work."""
        self.work += amount
        if self.work > MOST_WORK:
            raise Interrupted

    def hold(self, value: cost.Seen) -> cost.Seen:
        """Return a new value; making a long one is work."""
        if type(value) in _LENGTHY:
            self.labour(len(value) >> _COPIED_AT_ONCE)  # type: ignore[arg-type]
        return value

    def foresee(self, function: str, values: tuple[cost.Seen, ...]) -> None:
        """Refuse a replacement whose result would be too long to make."""
        if function == "replace":
            self.labour(_replaced(values) >> _COPIED_AT_ONCE)

    def walk(self, values: tuple[cost.Seen, ...]) -> None:
        """Count the values inside values as work, before something looks at all of them."""
        waiting = [*values]
        while waiting:
            part = waiting.pop()
            if type(part) is str:
                self.labour(len(part) >> _COPIED_AT_ONCE)
            elif type(part) is list:
                self.labour(len(part))
                waiting.extend(part)
            elif type(part) is dict or type(part) is KeyedMap:
                self.labour(len(part))
                waiting.extend(item for _, item in part.items())
            elif type(part) is Optional and not isinstance(part.value, EvaluationError):
                waiting.append(part.value)


def _replaced(values: tuple[cost.Seen, ...]) -> int:
    """Return the length of what replacing every occurrence gives."""
    text, old, new = values[:3]
    if type(text) is not str or type(old) is not str or type(new) is not str or len(new) <= len(old):
        return 0
    return text.count(old) * len(new)
