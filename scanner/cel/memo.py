"""A cache of a function's results by text: names, images and quantities repeat heavily in a cluster.

The cache is bounded, in entries and in the length of a text; its content does not affect results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

MOST = 4096
LONGEST = 256
_Result = TypeVar("_Result")


class ResultCache(dict[str, _Result]):
    """A cache: `remembered[text]` is `function(text)`; an error is not cached."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[str], _Result]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, text: str) -> _Result:
        """Return the function's result for a text; cache it for a text of at most `LONGEST` code points.

        Errors of the function pass through and are not cached. A cache of `MOST` entries is emptied first.
        """
        result = self._function(text)
        if type(text) is str and len(text) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
            self[text] = result
        return result
