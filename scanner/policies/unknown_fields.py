"""Unknown fields of manifests: misspelled names that kubectl refuses, and that the API server drops with a warning.

Source of truth: `fieldValidation` of kube-apiserver: kubectl sends `Strict`, and most other clients send `Warn`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from scanner.model.nearest import nearest

_SHOWN: Final = 10
_LONGEST: Final = 100


class UnknownField(NamedTuple):
    """A field that its type does not have: `path`, such as `spec.variables[0].type`, and the most similar field, or empty."""

    path: str
    alike: str = ""

    def __str__(self) -> str:
        """The path, and the field that the author may have meant."""
        path = self.path if len(self.path) <= _LONGEST else f"{self.path[:_LONGEST]}…"
        return f"{path} (did you mean {self.alike}?)" if self.alike else path


def unknown_field(path: str, name: str, known: Iterable[str]) -> UnknownField:
    """The unknown field `name` at a path, whose type has the `known` fields."""
    return UnknownField(path, nearest(name, known))


def shown(fields: Sequence[UnknownField]) -> str:
    """Unknown fields as a list; of many, the first ones and the number of the others."""
    named = ", ".join(map(str, islice(fields, _SHOWN)))
    return f"{named} and {len(fields) - _SHOWN:,} more" if len(fields) > _SHOWN else named
