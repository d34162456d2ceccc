"""Evidence: the values that decided the outcome of a check, without the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

FieldPlace: TypeAlias = "tuple[str | int, ...]"
"""The place of a field: the name of its document (`object`, `params` or `namespaceObject`), then keys and indexes."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A part of an expression, or a field, that decided the outcome, and its value.

    `value` is text in CEL's notation, cut and redacted, or the text of an error if `erred`. `path` is the place of the value in
    the object (`spec.containers[2].image`), or below the name of another document (`params.data.limit`); it is empty for a
    computed value. `variable` names the policy variable whose expression has the part. In a language without expressions, the
    expression is the path of a field, and the value of a field that is not set is `not set`.
    """

    expression: str
    value: str
    path: str = ""
    variable: str = ""
    erred: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """The reasons in the order of evaluation, the number of those left out, and an excerpt of the object.

    `excerpt` is the path and the fields of the map around the first deciding field, redacted, at most 512 bytes; empty where
    nothing stands beside that field.
    """

    reasons: tuple[Reason, ...] = ()
    left_out: int = 0
    excerpt: str = ""

    def __bool__(self) -> bool:
        """Return whether there is a reason."""
        return bool(self.reasons)


NO_EVIDENCE = Evidence()
