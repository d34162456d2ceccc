"""How lists and maps were made, for whom it matters: a list that `+` has joined, one of texts and those of a protobuf message.

These are other Go values than the rest. To expressions all lists are alike. Only who converts their values into patches can tell, and says that it wants to know.

Source of truth: `Value()` of the lists of cel-go: `[]ref.Val` for literals and results of macros, `[]any` for `concatList`,
`[]string` for what `split` and `findAll` return.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING

from scanner.cel.values.exact_only import closures_alone

if TYPE_CHECKING:
    from scanner.cel.values.values import Value


class Making(Enum):
    """By what a list or map was made."""

    JOINING = "+"
    SPLITTING = "split"
    MESSAGE = "message"


class Notes:
    """The lists and maps that were made during an evaluation. They are kept, so that none takes the place of another."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[int, tuple[Value, Making]] = {}

    def add(self, made: Value, how: Making) -> None:
        """Keep a list or map."""
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


@contextmanager
def noted() -> Iterator[Notes]:
    """Note, inside the block, how lists are made, among the notes that are taken already if there are any."""
    known = _CURRENT.get()
    if known is not None:
        yield known
        return
    with noting() as notes:
        yield notes


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


def of_message(value: Value) -> Value:
    """Return what a message of protobuf came to, with all the lists and maps inside."""
    notes = _CURRENT.get()
    stack = [value] if notes else []
    while notes and stack:
        part = stack.pop()
        if type(part) is list or type(part) is dict:
            notes.add(part, Making.MESSAGE)
            stack.extend(part.values() if type(part) is dict else part)
    return value
