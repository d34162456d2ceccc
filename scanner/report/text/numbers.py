"""Numbers, shares and lists as text."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, floor


def plural(number: int, singular: str, several: str = "") -> str:
    """`1 object`, `1,234 objects`."""
    return f"{number:,} {singular if number == 1 else several or singular + 's'}"


def percent_floor(share: float) -> str:
    """A share (0 to 1) as a percentage with one decimal, rounded down: 0.99996 is 99.9 %, not 100 %."""
    return f"{floor(share * 1000 + 1e-9) / 10:.1f} %"


def percent_ceil(share: float) -> str:
    """A share (0 to 1) as a percentage with one decimal, rounded up."""
    return f"{ceil(share * 1000 - 1e-9) / 10:.1f} %"


def join_texts(items: Iterable[str]) -> str:
    """The items as text: `a, b`."""
    return ", ".join(items)
