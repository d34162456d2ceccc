"""An explanation: the value of an expression, and the values that decided it. Named tuples, because a scan makes many."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scanner.cel.errors import EvaluationError
    from scanner.cel.explanation.places import Place
    from scanner.cel.values.values import Value

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class DecidingPart(NamedTuple):
    """A part of an expression and its value.

    `place` is its place in a document, empty for a computed value; `reads` is every place whose content may be in it;
    `variable` names the policy variable whose expression contains the part.
    """

    text: str
    outcome: Value | EvaluationError
    place: Place = ()
    variable: str = ""
    reads: frozenset[Place] = frozenset()

    @property
    def path(self) -> str:
        """The place as users write it, in the object or below the name of another document."""
        return write_path(self.place)


class Explanation(NamedTuple):
    """The value of an expression, its reasons in order of evaluation, and the number of reasons left out."""

    outcome: Value | EvaluationError
    reasons: tuple[DecidingPart, ...]
    left_out: int = 0


@lru_cache(maxsize=4096)
def write_path(place: Place) -> str:
    """Return a place as users write it: `spec.containers[2].image`, `params.data['max.size']`. The object has no name in it."""
    root, *steps = place or ("",)
    path = "" if root == "object" and steps else str(root)
    for step in steps:
        path = f"{path}[{step}]" if isinstance(step, int) else _append_key(path, step)
    return path


def _append_key(path: str, key: str) -> str:
    if _PLAIN.fullmatch(key) is None:
        escaped = key.replace("\\", "\\\\").replace("'", "\\'")
        return f"{path}['{escaped}']"
    return f"{path}.{key}" if path else key
