"""The functions that generated code calls, and the exception with which it gives up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.values import access
from scanner.cel.values.values import NONE, Optional, Value

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unforeseen(Exception):
    """A generated function has no answer for a value."""


def unforeseen() -> Value:
    """Give up: raise."""
    raise Unforeseen


def keys(container: Value) -> Value:
    """Return what a comprehension runs over, other than a list."""
    if type(container) is dict:
        return container
    raise Unforeseen


def pairs(container: Value) -> Iterable[tuple[Value, Value]]:
    """Return what a comprehension of two variables runs over."""
    if type(container) is dict or type(container) is list:
        return access.pairs(container)
    raise Unforeseen


def at(container: Value, key: Value) -> Value:
    """Return `container[key]` of a list or a map of strings."""
    if type(container) is list and type(key) is int and 0 <= key < len(container):
        return container[key]
    if type(container) is dict and type(key) is str:
        return container[key]
    raise Unforeseen


def look_up(container: Value, key: Value) -> Value:
    """Return what is under a key or index of a list or a map, or `NONE`."""
    if type(container) is dict or type(container) is list:
        item = access.look_up(container, key)
        return NONE if item is None else item[0]
    raise Unforeseen


def unwrapped(optional: Value) -> Optional:
    """Return a value that is an optional."""
    if type(optional) is Optional:
        return optional
    raise Unforeseen
