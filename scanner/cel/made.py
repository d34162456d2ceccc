"""How lists were made, for whom it matters: a list that `+` has joined and one of texts are other Go values than the rest.

To expressions all lists are alike. Only who converts their values into patches can tell, and says that it wants to know.

Source of truth: `Value()` of the lists of cel-go: `[]ref.Val` for literals and results of macros, `[]any` for `concatList`,
`[]string` for what `split` and `findAll` return.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING

from scanner.cel.telling import closures_alone

if TYPE_CHECKING:
    from scanner.cel.values import Value


class Making(Enum):
    """By what a list was made."""

    JOINING = "+"
    SPLITTING = "split"


class Notes:
    """The lists that were made during an evaluation. They are kept, so that none takes the place of another."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[int, tuple[list[Value], Making]] = {}

    def add(self, made: list[Value], how: Making) -> None:
        """Keep a list."""
        self._lists[id(made)] = (made, how)

    def of(self, value: object) -> Making | None:
        """Return by what a value was made, None where that makes no difference."""
        known = self._lists.get(id(value))
        return known[1] if known else None


_CURRENT: ContextVar[Notes | None] = ContextVar("made", default=None)


@contextmanager
def noting() -> Iterator[Notes]:
    """Note, inside the block, how lists are made."""
    notes = Notes()
    token = _CURRENT.set(notes)
    try:
        with closures_alone():
            yield notes
    finally:
        _CURRENT.reset(token)


def joined(left: list[Value], right: list[Value]) -> list[Value]:
    """Return `left + right`; joined with nothing, a list stays what it is."""
    notes = _CURRENT.get()
    if notes is None:
        return left + right
    if not left or not right:
        return left or right
    made = left + right
    notes.add(made, Making.JOINING)
    return made


def texts(values: list[Value]) -> list[Value]:
    """Return a list of texts that a function made."""
    if notes := _CURRENT.get():
        notes.add(values, Making.SPLITTING)
    return values
