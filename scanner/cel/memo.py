"""What a function made of the texts it has seen: names, images and quantities repeat heavily in a cluster.

The memory is bounded, in entries and in the length of a text; which texts it holds decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

MOST = 4096
LONGEST = 256
_Result = TypeVar("_Result")


class Remembered(dict[str, _Result]):
    """`remembered[text]` is `function(text)`; what raises is asked again."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[str], _Result]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, text: str) -> _Result:
        """Ask the function."""
        result = self._function(text)
        if type(text) is str and len(text) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
            self[text] = result
        return result
