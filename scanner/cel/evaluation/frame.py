"""The frame of closures: a list of values, with a marker for absent ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from scanner.cel.values.values import Value

Frame: TypeAlias = "list[Value]"

Evaluate: TypeAlias = "Callable[[Frame], Value]"


class _Missing:
    """The marker in the frame for a declared variable that the activation does not have."""

    __slots__ = ()


MISSING = _Missing()
