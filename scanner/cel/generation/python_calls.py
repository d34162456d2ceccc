"""The functions that generated code calls, and the exception for values that it does not handle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scanner.cel.values import access
from scanner.cel.values.values import NONE, Optional, Value

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unforeseen(Exception):
    """A value that a generated function does not handle."""


def unforeseen() -> Value:
    """Raise Unforeseen, so that the closures decide."""
    raise Unforeseen


def keys(container: Value) -> Value:
    """Return the map over which a comprehension runs. Raises Unforeseen for a map that is not a dict."""
    if type(container) is dict:
        return container
    raise Unforeseen


def pairs(container: Value) -> Iterable[tuple[Value, Value]]:
    """Return the pairs over which a comprehension of two variables runs. Raises Unforeseen for a map that is not a dict."""
    if type(container) is dict or type(container) is list:
        return access.pairs(container)
    raise Unforeseen


def at(container: Value, key: Value) -> Value:
    """Return `container[key]` of a list or a map of strings.

    Raises Unforeseen for any other container or key, and KeyError for an absent key.
    """
    if type(container) is list and type(key) is int and 0 <= key < len(container):
        return container[key]
    if type(container) is dict and type(key) is str:
        return container[key]
    raise Unforeseen


def look_up(container: Value, key: Value) -> Value:
    """Return the value under a key or index, or `NONE`. Raises Unforeseen for a container that is neither a list nor a dict."""
    if type(container) is dict or type(container) is list:
        item = access.look_up(container, key)
        return NONE if item is None else item[0]
    raise Unforeseen


def unwrapped(optional: Value) -> Optional:
    """Return an optional unchanged. Raises Unforeseen for any other value."""
    if type(optional) is Optional:
        return optional
    raise Unforeseen
