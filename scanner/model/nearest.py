"""The known name that is most like an unknown one, for messages about a misspelled name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LONGEST: Final = 100
"""Longer names are no misspelled ones, and comparing them takes long."""


def find_nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like `name`; empty if none is."""
    if len(name) > _LONGEST:
        return ""
    lower = {each.lower(): each for each in known if len(each) <= _LONGEST}
    if name.lower() in lower:
        return lower[name.lower()]
    return next((lower[match] for match in get_close_matches(name.lower(), lower, n=1)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as a question with a space before it; empty if no name is like it."""
    alike = find_nearest(name, known)
    return f" Did you mean {alike}?" if alike else ""
