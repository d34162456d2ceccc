"""A record of the lists from `+`, from `split`, or from a message of protobuf: their Go types differ when they become patches.

To expressions all lists are alike. Only a caller that converts values into patches distinguishes them, and requests the record.

Source of truth: `Value()` of the lists of cel-go: `[]ref.Val` for literals and results of macros, `[]any` for `concatList`,
`[]string` for the results of `split` and `findAll`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING

from scanner.cel.values.exact_only import force_closures

if TYPE_CHECKING:
    from scanner.cel.values.values import Value


class ListKind(Enum):
    """The origin of a list or map."""

    JOINED = "+"
    SPLIT = "split"
    MESSAGE = "message"


class ListKinds:
    """The lists and maps that an evaluation made. They are kept, so that none takes the place of another."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[int, tuple[Value, ListKind]] = {}

    def add(self, value: Value, kind: ListKind) -> None:
        """Keep a list or map."""
        self._made[id(value)] = (value, kind)

    def of(self, value: object) -> ListKind | None:
        """Return the origin of a list or map; None for any other value, and for a list whose origin makes no difference."""
        record = self._made.get(id(value))
        return record[1] if record else None


_CURRENT: ContextVar[ListKinds | None] = ContextVar("list_kinds", default=None)


@contextmanager
def record_lists_anew() -> Iterator[ListKinds]:
    """Record the origins of lists inside the block, in a new record; only the closures evaluate there."""
    kinds = ListKinds()
    token = _CURRENT.set(kinds)
    try:
        with force_closures():
            yield kinds
    finally:
        _CURRENT.reset(token)


@contextmanager
def record_lists() -> Iterator[ListKinds]:
    """Record the origins of lists inside the block, in the active record if there is one."""
    current = _CURRENT.get()
    if current is not None:
        yield current
        return
    with record_lists_anew() as kinds:
        yield kinds


def join_lists(left: list[Value], right: list[Value]) -> list[Value]:
    """Return `left + right`; a list joined with an empty list stays the same."""
    kinds = _CURRENT.get()
    if kinds is None:
        return left + right
    if not left or not right:
        return left or right
    whole = left + right
    kinds.add(whole, ListKind.JOINED)
    return whole


def make_text_list(values: list[Value]) -> list[Value]:
    """Return a list of texts that a function made, and record it: Go's type of it is `[]string`."""
    if kinds := _CURRENT.get():
        kinds.add(values, ListKind.SPLIT)
    return values


def record_message(value: Value) -> Value:
    """Return the value of a message of protobuf, with all the lists and maps inside recorded."""
    kinds = _CURRENT.get()
    stack = [value] if kinds else []
    while kinds and stack:
        part = stack.pop()
        if type(part) is list or type(part) is dict:
            kinds.add(part, ListKind.MESSAGE)
            stack.extend(part.values() if type(part) is dict else part)
    return value
